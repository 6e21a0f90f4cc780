from __future__ import annotations

from dataclasses import replace

import pytest

from muster.scheduler.job import JobInfo
from muster.scheduler.parking import Helps, Relief
from muster.scheduler.plugins.cdp import is_protected
from muster.testing import Cluster, configuration, gang, nodes, pod

CONF = configuration("enqueue, allocate", ["gang", "cdp"], ["predicates"])


def protected(cluster: Cluster, until: float | None) -> None:
    cluster.add(replace(pod("victim", "old", cpu=1, node="n-0"), cooldown_until=until))


@pytest.mark.parametrize(
    ("until", "safe"), [(None, False), (1_000_001.0, True), (1_000_000.0, False), (999_999.0, False)]
)
def test_a_pod_is_protected_until_it_has_cooled_down(until: float | None, safe: bool) -> None:
    cluster = Cluster.of(nodes("n", 1), configuration=CONF)
    protected(cluster, until)
    assert is_protected(cluster.cache.tasks["uid-victim"], cluster.now) is safe


def test_when_a_protection_ends_a_cycle_is_run_and_everybody_is_asked_again() -> None:
    cluster = Cluster.of(nodes("n", 1, cpu=2), configuration=CONF)
    protected(cluster, cluster.now + 60)
    cluster.add(gang("waits", 1, cpu=2))
    assert cluster.cycle().wake_at == cluster.now + 60
    asked: list[bool] = []
    wake = cluster.cache.lot.wake

    def spy(relief: Relief, helps: Helps) -> list[JobInfo]:
        asked.append(relief.everything)
        return wake(relief, helps)

    cluster.cache.lot.wake = spy  # type: ignore[method-assign]
    assert cluster.cycle(seconds=60).wake_at != cluster.now
    cluster.cycle(seconds=1)
    assert asked == [True, False]
