"""The model under events that come late, twice, or in the wrong order."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muster.scheduler.reasons import Code
from muster.scheduler.specs import Phase, TaskStatus
from muster.testing import (
    Cluster,
    bindings,
    dated,
    gang,
    node,
    nodes,
    pod,
    pod_group,
    pods,
    queue,
    resources,
)
from tests.scheduler.audit import audit, snapshot


def bound() -> Cluster:
    cluster = Cluster.of(nodes("n", 1, cpu=4), gang("g", 2))
    assert len(cluster.cycle().bindings) == 2
    return cluster


def task(cluster: Cluster, name: str = "g-w-0") -> tuple[TaskStatus, str | None]:
    found = cluster.cache.tasks[f"uid-{name}"]
    return found.status, found.node


def test_a_pod_that_we_bind_stays_binding_until_the_watch_shows_its_node() -> None:
    cluster = bound()
    cluster.change_pod("g-w-0", priority=7)
    assert task(cluster) == (TaskStatus.BINDING, "n-0")
    cluster.change_pod("g-w-0", status=TaskStatus.BOUND, node="n-0")
    assert task(cluster) == (TaskStatus.BOUND, "n-0")
    cluster.change_pod("g-w-0", status=TaskStatus.PENDING, node=None)
    assert task(cluster) == (TaskStatus.PENDING, None)
    audit(cluster.cache)


def test_a_pod_that_somebody_else_bound_elsewhere_is_where_they_put_it() -> None:
    cluster = bound()
    cluster.add(node("other"))
    cluster.change_pod("g-w-0", status=TaskStatus.BOUND, node="other")
    assert task(cluster) == (TaskStatus.BOUND, "other")
    audit(cluster.cache)


def test_a_pod_deleted_while_we_bind_it_keeps_its_place_until_we_know() -> None:
    cluster = bound()
    cluster.change_pod("g-w-0", status=TaskStatus.RELEASING)
    assert task(cluster) == (TaskStatus.RELEASING, "n-0")
    cluster.cache.bind_failed("uid-g-w-0")
    assert task(cluster) == (TaskStatus.RELEASING, None)
    audit(cluster.cache)


def test_a_failed_bind_makes_the_pod_pending_and_frees_its_node() -> None:
    cluster = bound()
    cluster.cache.bind_failed("uid-g-w-0")
    assert task(cluster) == (TaskStatus.PENDING, None)
    assert cluster.cache.nodes["n-0"].idle.milli_cpu == 3000
    audit(cluster.cache)


def test_a_bind_that_fails_after_it_was_confirmed_changes_nothing() -> None:
    cluster = bound()
    cluster.change_pod("g-w-0", status=TaskStatus.RUNNING, node="n-0")
    cluster.cache.bind_failed("uid-g-w-0")
    cluster.cache.bind_failed("nobody")
    assert task(cluster) == (TaskStatus.RUNNING, "n-0")


def evicted() -> Cluster:
    cluster = Cluster.of(
        nodes("n", 1, cpu=1), pod_group("g", 2, phase=Phase.RUNNING), pods("g", 1, node="n-0"), pods("g", 1, first=1)
    )
    cluster.cycle()
    assert [each.pod for each in cluster.cycle(seconds=61).evictions] == ["g-w-0"]
    return cluster


def test_an_evicted_pod_is_leaving_although_the_watch_does_not_show_it_yet() -> None:
    cluster = evicted()
    cluster.change_pod("g-w-0", priority=3)
    assert task(cluster) == (TaskStatus.RELEASING, "n-0")
    cluster.change_pod("g-w-0", status=TaskStatus.RELEASING)
    assert task(cluster) == (TaskStatus.RELEASING, "n-0")
    audit(cluster.cache)


def test_a_failed_eviction_makes_the_pod_what_it_was() -> None:
    cluster = evicted()
    cluster.cache.evict_failed("uid-g-w-0")
    cluster.cache.evict_failed("uid-g-w-0")
    assert task(cluster) == (TaskStatus.RUNNING, "n-0")
    audit(cluster.cache)


def test_pods_and_podgroups_may_come_before_their_nodes_and_queues() -> None:
    specs = [*gang("g", 2, queue="late"), pod("old", "g", node="n-0"), queue("late"), *nodes("n", 1)]
    forth, back = Cluster.of(specs), Cluster.of(specs[::-1])
    for cluster in (forth, back):
        audit(cluster.cache)
        assert set(bindings(cluster.cycle())) == {"g-w-0", "g-w-1"}
        assert cluster.cache.nodes["n-0"].used.milli_cpu == 3000


def test_telling_the_same_twice_changes_nothing_and_wakes_nobody() -> None:
    specs = [*nodes("n", 1, cpu=1), *gang("g", 2), queue("q")]
    cluster = Cluster()
    old = [dated(spec, 5.0) for spec in specs]
    cluster.add(old)
    cluster.cycle()
    before = snapshot(cluster.cache)
    cluster.add(old)
    assert not cluster.cache.waiting
    assert not cluster.cache.relief
    assert snapshot(cluster.cache) == before


def test_a_removed_node_takes_its_resources_with_it_but_not_its_pods() -> None:
    cluster = Cluster.of(nodes("n", 2), gang("g", 2))
    cluster.settle(cluster.cycle())
    cluster.cache.remove_node("n-0")
    assert cluster.cache.total == resources(4, 16, 110)
    audit(cluster.cache)
    assert not bindings(cluster.cycle())
    cluster.delete(*[name for name, where in cluster.placed().items() if where == "n-0"])
    assert "n-0" not in cluster.cache.nodes
    audit(cluster.cache)


def test_a_podgroup_that_moves_to_another_queue_takes_its_accounts_along() -> None:
    cluster = Cluster.of(nodes("n", 1), queue("a"), queue("b"), gang("g", 2, queue="a"))
    cluster.settle(cluster.cycle())
    cluster.add(pod_group("g", 2, queue="b"))
    assert cluster.cache.queues["a"].allocated.is_empty()
    assert cluster.cache.queues["b"].allocated.milli_cpu == 2000
    audit(cluster.cache)


def test_a_recreated_podgroup_starts_anew() -> None:
    cluster = bound()
    cluster.cache.set_pod_group(replace(pod_group("g", 2, creation=9.0), uid="another"))
    assert cluster.phase("g") is Phase.PENDING


def test_a_removed_podgroup_leaves_its_pods_waiting_with_that_reason() -> None:
    cluster = Cluster.of(gang("g", 1))
    cluster.cycle()
    cluster.cache.remove_pod_group("default/g")
    cluster.cycle()
    reason = cluster.cache.jobs["default/g"].reason
    assert reason is not None
    assert reason.code is Code.POD_GROUP_MISSING
    cluster.delete("g-w-0")
    assert "default/g" not in cluster.cache.jobs
    audit(cluster.cache)


@pytest.mark.parametrize(("named", "charged"), [("q", "q"), ("", "default")])
def test_pods_whose_podgroup_is_deleted_are_charged_to_the_queue_that_they_name(named: str, charged: str) -> None:
    """P5: whether Muster saw the PodGroup or not. They still hold that quota (P2)."""
    runs = [pod(f"g-w-{index}", "g", node="n-0", queue=named) for index in range(2)]
    newcomer = gang("new", 1, 3, queue="q")
    seen, unseen = (Cluster.of(nodes("n", 2), queue("q", capability=resources(4)), runs) for _ in range(2))
    seen.add(pod_group("g", 2, queue="q", phase=Phase.RUNNING))
    seen.cycle()
    seen.cache.remove_pod_group("default/g")
    for cluster in (seen, unseen):
        cluster.add(newcomer)
        assert bindings(cluster.cycle()) == ({} if named else {"new-w-0": "n-1"})
        assert cluster.cache.queues[charged].allocated.milli_cpu == 2000
        audit(cluster.cache)


def test_a_queue_that_only_pods_without_podgroup_name_is_gone_with_them() -> None:
    cluster = Cluster.of(nodes("n", 1), pod("g-w-0", "g", node="n-0", queue="nowhere"))
    cluster.cycle()
    assert "nowhere" in cluster.cache.queues
    cluster.delete("g-w-0")
    cluster.cycle()
    assert "nowhere" not in cluster.cache.queues
    audit(cluster.cache)


def test_a_pod_without_a_group_gets_one_of_its_own_that_is_never_written() -> None:
    cluster = Cluster.of(nodes("n", 1), queue("q"), pod("loner", queue="q"))
    outcome = cluster.cycle()
    assert bindings(outcome) == {"loner": "n-0"}
    assert not outcome.pod_groups
    assert cluster.cache.queues["q"].allocated.milli_cpu == 1000
    cluster.delete("loner")
    assert not cluster.cache.jobs
    audit(cluster.cache)


def test_pods_of_others_occupy_nodes_but_are_never_placed() -> None:
    cluster = Cluster.of(nodes("n", 1, cpu=2), pod("theirs", node="n-0", cpu=1.5, ours=False), pod("new", ours=False))
    outcome = cluster.cycle()
    assert not outcome.bindings
    assert cluster.cache.nodes["n-0"].idle.milli_cpu == 500
    assert not cluster.cache.jobs
    audit(cluster.cache)


@pytest.mark.parametrize("status", [TaskStatus.SUCCEEDED, TaskStatus.FAILED])
def test_a_finished_pod_holds_nothing(status: TaskStatus) -> None:
    cluster = bound()
    cluster.change_pod("g-w-0", status=status, node="n-0")
    assert cluster.cache.nodes["n-0"].idle.milli_cpu == 3000
    audit(cluster.cache)


def test_a_pod_may_change_its_group() -> None:
    cluster = Cluster.of(nodes("n", 1), gang("a", 1), pod_group("b", 1))
    cluster.change_pod("a-w-0", job="default/b")
    assert not cluster.cache.jobs["default/a"].tasks
    assert set(cluster.cache.jobs["default/b"].tasks) == {"uid-a-w-0"}
    audit(cluster.cache)


def test_our_own_status_coming_back_is_no_news() -> None:
    cluster = Cluster.of(nodes("n", 1, cpu=1), gang("g", 2))
    said = cluster.cycle().pod_groups["default/g"]
    spec = cluster.cache.jobs["default/g"].spec
    assert spec is not None
    stored = replace(spec, phase=said.phase, conditions=said.conditions, running=0, succeeded=0, failed=0)
    cluster.cache.set_pod_group(stored)
    assert not cluster.cache.waiting
    assert not cluster.cycle().pod_groups
    cluster.cache.set_pod_group(replace(stored, phase=Phase.UNKNOWN))
    assert cluster.cycle().pod_groups["default/g"].phase is said.phase
