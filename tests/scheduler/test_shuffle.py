"""Sending pods away that plugins say should not be where they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import pytest

from muster.scheduler import conf, plugins
from muster.scheduler.framework import ExtensionPoints, Plugin
from muster.scheduler.session import Session
from muster.scheduler.specs import TaskStatus
from muster.scheduler.task import TaskInfo
from muster.testing import Cluster, configuration, evictions, nodes, pod, pod_group, pods


class Tidy(Plugin):
    """Wants pods of priority 7 gone."""

    name: ClassVar[str] = "tidy"

    def register(self, points: ExtensionPoints) -> None:
        points.add("victim_tasks", _sevens)


def _sevens(_session: Session, running: Sequence[TaskInfo]) -> list[TaskInfo]:
    return [task for task in running if task.spec.priority == 7]


@pytest.fixture
def tidying(monkeypatch: pytest.MonkeyPatch) -> conf.SchedulerConfiguration:
    monkeypatch.setitem(plugins.PLUGINS, "tidy", Tidy)
    return configuration("allocate, shuffle", ["tidy"], ["predicates"])


def test_running_pods_that_a_plugin_names_are_evicted(tidying: conf.SchedulerConfiguration) -> None:
    cluster = Cluster.of(nodes("n", 1, cpu=9), pod_group("g", 0), pods("g", 2, node="n-0"), configuration=tidying)
    cluster.add(pod("x", "g", priority=7, node="n-0"), pod("y", "g", priority=7, node="n-0", status=TaskStatus.BOUND))
    outcome = cluster.cycle()
    assert evictions(outcome) == {"x"}
    assert [(each.reason, each.by) for each in outcome.evictions] == [("shuffle", "default/g")]
    assert not cluster.cycle().evictions


def test_nobody_goes_when_no_plugin_names_anybody() -> None:
    cluster = Cluster.of(nodes("n", 1), pods("", 1, node="n-0"), configuration=configuration("shuffle", ["gang"]))
    assert not cluster.cycle().evictions
