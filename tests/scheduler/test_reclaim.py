"""Taking room back from queues that use more than is theirs."""

from __future__ import annotations

from typing import Any

import pytest

from muster.scheduler.outcome import Outcome
from muster.scheduler.queue import QueueInfo
from muster.scheduler.specs import Phase, QueueSpec, TaskStatus
from muster.testing import Cluster, Spec, bindings, configuration, evictions, nodes, pod, pod_group, pods, queue
from tests.scheduler.audit import audit

FAIR = configuration("enqueue, allocate, reclaim", ["priority", "gang", "conformance"], ["proportion", "predicates"])


def running(name: str, count: int, least: int = 0, *, node: str = "n-0", cpu: float = 1, **options: Any) -> list[Spec]:
    return [pod_group(name, least, phase=Phase.RUNNING, **options), *pods(name, count, cpu, node=node)]


def waiting(name: str, count: int, least: int | None = None, *, cpu: float = 1, **options: Any) -> list[Spec]:
    members = count if least is None else least
    return [pod_group(name, members, phase=Phase.INQUEUE, **options), *pods(name, count, cpu)]


def pipelined(outcome: Outcome) -> dict[str, str]:
    return {each.pod: each.node for each in outcome.pipelined}


def two_queues(*specs: Any, cpu: float = 4) -> Cluster:
    return Cluster.of(nodes("n", 1, cpu=cpu), queue("q1"), queue("q2"), *specs, configuration=FAIR)


def test_a_queue_below_what_it_deserves_takes_room_from_one_above_and_is_bound_when_it_is_free() -> None:
    cluster = two_queues(running("a", 4, queue="q1"), waiting("b", 2, queue="q2"))
    outcome = cluster.cycle()
    assert evictions(outcome) == {"a-w-2", "a-w-3"}
    assert {(each.reason, each.by) for each in outcome.evictions} == {("reclaim", "default/b")}
    assert pipelined(outcome) == {"b-w-0": "n-0", "b-w-1": "n-0"}
    cluster.settle(outcome)
    cluster.add(pods("a", 2, first=20))
    assert bindings(cluster.cycle()) == {"b-w-0": "n-0", "b-w-1": "n-0"}
    audit(cluster.cache)


def test_no_more_than_the_queue_deserves_is_taken() -> None:
    cluster = two_queues(running("a", 4, queue="q1"), waiting("b", 3, queue="q2"))
    assert not cluster.cycle().evictions


def test_a_queue_that_is_not_reclaimable_keeps_what_it_has() -> None:
    cluster = two_queues(running("a", 4, queue="q1"), waiting("b", 1, queue="q2"))
    cluster.cache.set_queue(QueueSpec("q1", reclaimable=False))
    assert not cluster.cycle().evictions


@pytest.mark.parametrize(
    "changes", [{"preemptable": False}, {"status": TaskStatus.BOUND}, {"namespace": "kube-system"}, {"ours": False}]
)
def test_only_running_pods_that_may_be_evicted_are_reclaimed(changes: dict[str, Any]) -> None:
    cluster = two_queues(running("a", 1, cpu=4, queue="q1"), waiting("b", 1, queue="q2"))
    cluster.change_pod("a-w-0", **changes)
    assert not cluster.cycle().evictions


def test_pods_of_the_same_queue_are_not_reclaimed() -> None:
    cluster = two_queues(running("a", 4, queue="q1"), waiting("b", 1, queue="q1"))
    assert not cluster.cycle().evictions


def test_a_gang_takes_nothing_when_it_would_still_lack_a_member() -> None:
    cluster = two_queues(
        running("a", 4, queue="q1"),
        pod_group("b", 2, phase=Phase.INQUEUE, queue="q2"),
        pod("b-w-0", "b", 1),
        pod("b-w-1", "b", 3),
    )
    assert not cluster.cycle().evictions


def test_the_queue_that_comes_last_loses_its_pods_first() -> None:
    cluster = Cluster.of(nodes("n", 1, cpu=6), [queue(name) for name in ("q1", "q2", "q3")], configuration=FAIR)
    cluster.add(running("a", 4, queue="q1"), running("c", 2, cpu=1, queue="q3"), waiting("b", 2, queue="q2"))
    assert evictions(cluster.cycle()) == {"a-w-2", "a-w-3"}


def test_plugins_may_say_which_queue_loses_first(monkeypatch: pytest.MonkeyPatch) -> None:
    from muster.scheduler.victims import in_order
    from tests.scheduler.test_evictable import session_of, task
    from tests.scheduler.test_framework import saying

    def order(cluster: Cluster, *plugins: Any) -> list[str]:
        session = session_of(cluster, list(plugins))
        candidates = [task(session, name) for name in ("a-w-0", "a-w-1", "c-w-0")]
        job = cluster.cache.jobs["default/b"]
        return [each.spec.name for each in in_order(session, job, candidates)]

    cluster = Cluster.of(nodes("n", 1, cpu=6), [queue(name) for name in ("q1", "q2", "q3")], configuration=FAIR)
    cluster.add(running("a", 2, queue="q1"), running("c", 1, queue="q3"), waiting("b", 2, queue="q2"))
    assert order(cluster) == ["c-w-0", "a-w-1", "a-w-0"], "the younger queue"

    def first(_session: Any, left: QueueInfo, _right: QueueInfo, taker: QueueInfo) -> int:
        assert taker.name == "q2"
        return -1 if left.name == "q1" else 1

    plugin = saying("victim_queue_order")
    monkeypatch.setattr(type(plugin), "register", lambda _self, points: points.add("victim_queue_order", first))
    assert order(cluster, plugin) == ["a-w-1", "a-w-0", "c-w-0"]


def test_an_overused_queue_takes_nothing() -> None:
    cluster = two_queues(
        running("a", 2, queue="q1"),
        running("b", 2, queue="q2"),
        waiting("c", 1, queue="q2"),
    )
    assert not cluster.cycle().evictions


def test_a_queue_that_lost_pods_does_not_take_them_back() -> None:
    """volcano#4947."""
    cluster = two_queues(running("a", 4, queue="q1"), waiting("b", 2, queue="q2"))
    for round_ in range(5):
        outcome = cluster.cycle()
        assert round_ == 0 or not outcome.evictions
        cluster.settle(outcome)
        cluster.add(pods("a", len(outcome.evictions), first=10 * round_ + 10))
    assert {"b-w-0", "b-w-1"} <= set(cluster.placed())


def test_a_queue_may_take_from_who_evicted_it_what_that_one_grew_by_since() -> None:
    cluster = two_queues(running("a", 4, queue="q1"), waiting("b", 2, 1, queue="q2"))
    first = cluster.cycle()
    assert evictions(first) == {"a-w-3"}
    cluster.settle(first)
    cluster.settle(cluster.cycle())
    cluster.delete("a-w-0", "a-w-1", "a-w-2")
    cluster.add(pods("b", 3, first=5))
    while (outcome := cluster.cycle()).bindings:
        cluster.settle(outcome)
    grown = {name for name in cluster.placed() if name.startswith("b-")} - {"b-w-0"}
    assert len(grown) == 3
    cluster.cache.set_pod_group(pod_group("a", 2, queue="q1", phase=Phase.INQUEUE, creation=cluster.now))
    cluster.add(pods("a", 2, first=20))
    assert evictions(cluster.cycle()) < grown


def test_a_gang_that_failed_is_asked_again_when_pods_that_it_may_take_begin_to_run() -> None:
    cluster = two_queues(running("a", 4, queue="q1"), waiting("b", 1, queue="q2"))
    for index in range(4):
        cluster.change_pod(f"a-w-{index}", status=TaskStatus.BOUND)
    assert not cluster.cycle().evictions
    assert cluster.cache.jobs["default/b"].parked is not None
    for index in range(4):
        cluster.change_pod(f"a-w-{index}", status=TaskStatus.RUNNING)
    assert evictions(cluster.cycle()) == {"a-w-3"}


def test_free_room_is_left_to_allocate_where_that_comes_later() -> None:
    """A promise of room that is there already would keep the gang from being bound, in every cycle anew."""
    cluster = two_queues(running("a", 2, queue="q1"), waiting("b", 2, queue="q2"))
    cluster.configuration = configuration("enqueue, reclaim, allocate", ["priority", "gang"], ["proportion"])
    outcome = cluster.cycle()
    assert not outcome.evictions
    assert bindings(outcome) == {"b-w-0": "n-0", "b-w-1": "n-0"}


def test_free_room_that_allocate_is_left_is_kept_from_the_jobs_behind_until_then() -> None:
    cluster = two_queues(
        running("a", 3, queue="q1"), waiting("first", 1, queue="q2"), waiting("second", 1, queue="q2"), cpu=4
    )
    cluster.configuration = configuration("enqueue, reclaim, allocate", ["priority", "gang"], ["proportion"])
    outcome = cluster.cycle()
    assert bindings(outcome) == {"first-w-0": "n-0"}
    assert evictions(outcome) == {"a-w-2"}
    assert pipelined(outcome) == {"second-w-0": "n-0"}
