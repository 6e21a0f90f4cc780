from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from muster.scheduler.conf import build_framework
from muster.scheduler.framework import Framework
from muster.scheduler.job import JobInfo
from muster.scheduler.parking import Helps, Relief
from muster.scheduler.selectors import LabelSelector, Operator, Requirement
from muster.scheduler.session import Session
from muster.scheduler.specs import PodDisruptionBudgetSpec, TaskStatus
from muster.scheduler.task import TaskInfo
from muster.testing import Cluster, configuration, gang, nodes, pod, pod_group

CONF = configuration("enqueue, allocate", ["pdb"])
WEB = LabelSelector((Requirement("app", Operator.IN, ("web",)),))


def budget(allowed: int, selector: LabelSelector | None = WEB, **options: object) -> PodDisruptionBudgetSpec:
    return replace(PodDisruptionBudgetSpec("default", "b", selector, allowed), **options)  # type: ignore[arg-type]


def cluster_of(*budgets: PodDisruptionBudgetSpec, web: int = 3) -> Cluster:
    cluster = Cluster.of(nodes("n", 1, cpu=9), budgets, pod_group("g", 1), configuration=CONF)
    cluster.add(replace(pod(f"web-{index}", "g", node="n-0"), labels={"app": "web"}) for index in range(web))
    cluster.add(pod("plain", "g", node="n-0"), pod("new", "g"))
    return cluster


def opened(cluster: Cluster, framework: Framework | None = None) -> Session:
    session = Session(cluster.cache, framework or build_framework(CONF), CONF, cluster.now)
    for plugin in session.framework.plugins:
        plugin.on_session_open(session)
    return session


def running(cluster: Cluster) -> list[TaskInfo]:
    return [task for task in cluster.cache.tasks.values() if task.status is TaskStatus.RUNNING]


def victims(cluster: Cluster, session: Session | None = None) -> list[str]:
    session = session or opened(cluster)
    found = session.framework.preemptable(session, cluster.cache.tasks["uid-new"], running(cluster))
    return [task.spec.name for task in found]


@pytest.mark.parametrize(
    ("budgets", "expected"),
    [
        pytest.param([], "web-0 web-1 web-2 plain", id="no budget"),
        pytest.param([budget(2)], "web-0 web-1 plain", id="as many as it allows"),
        pytest.param([budget(0)], "plain", id="none"),
        pytest.param([budget(0, LabelSelector())], "", id="an empty selector is about all pods of the namespace"),
        pytest.param([budget(0, None)], "web-0 web-1 web-2 plain", id="without a selector it is about none"),
        pytest.param([budget(0, namespace="other")], "web-0 web-1 web-2 plain", id="another namespace"),
        pytest.param([budget(1), budget(2, name="c")], "web-0 plain", id="every budget must allow it"),
        pytest.param([budget(1, disrupted=frozenset({"web-1"}))], "web-0 web-1 plain", id="counted already"),
    ],
)
def test_nobody_is_evicted_against_a_budget(budgets: list[PodDisruptionBudgetSpec], expected: str) -> None:
    assert victims(cluster_of(*budgets)) == expected.split()


def test_what_was_decided_before_in_the_cycle_uses_the_budget_up() -> None:
    cluster = cluster_of(budget(2))
    session = opened(cluster)
    statement = session.statement()
    statement.evict(cluster.cache.tasks["uid-web-0"], "preempt")
    assert victims(cluster, session) == ["web-1", "plain"]
    statement.discard()
    assert victims(cluster, session) == ["web-0", "web-1", "plain"]


def test_an_eviction_that_the_api_server_does_not_show_yet_uses_the_budget_up() -> None:
    cluster = cluster_of(budget(2))
    session = opened(cluster)
    statement = session.statement()
    statement.evict(cluster.cache.tasks["uid-web-0"], "preempt")
    statement.commit(by="default/g")
    session.close()
    cluster.cache.changed.clear()
    assert victims(cluster) == ["web-1", "plain"]
    cluster.change_pod("web-0", status=TaskStatus.RELEASING)
    cluster.add(budget(1))
    assert victims(cluster) == ["web-1", "plain"]


def test_shuffle_heeds_budgets_too() -> None:
    cluster = cluster_of(budget(1))
    session = opened(cluster)

    def everybody(_session: Session, tasks: Sequence[TaskInfo]) -> Sequence[TaskInfo]:
        return tasks

    session.framework.tiers[0].victim_tasks.append(everybody)
    found = session.framework.victim_tasks(session, running(cluster))
    assert [task.spec.name for task in found] == ["web-0", "plain"]


def test_a_budget_alone_names_no_victims() -> None:
    cluster = cluster_of(budget(9))
    session = opened(cluster)
    assert session.framework.victim_tasks(session, running(cluster)) == []


@pytest.mark.parametrize(
    ("change", "asked"),
    [(budget(2), True), (budget(0), False), (budget(1, LabelSelector()), True), (None, True)],
)
def test_everybody_is_asked_again_when_a_budget_allows_more(
    change: PodDisruptionBudgetSpec | None, asked: bool
) -> None:
    cluster = cluster_of(budget(1))
    cluster.add(gang("waits", 1, cpu=99))
    cluster.cycle()
    heard: list[bool] = []
    wake = cluster.cache.lot.wake

    def spy(relief: Relief, helps: Helps) -> list[JobInfo]:
        heard.append(relief.everything)
        return wake(relief, helps)

    cluster.cache.lot.wake = spy  # type: ignore[method-assign]
    if change is None:
        cluster.cache.remove_disruption_budget("default/b")
    else:
        cluster.add(change)
    cluster.cycle()
    assert heard == [asked]
