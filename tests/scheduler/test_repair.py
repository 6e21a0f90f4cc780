"""P1 after the commit: a gang below its minimum is completed or taken down."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muster.scheduler.specs import Phase, PodGroupSpec, PriorityClassSpec, TaskStatus
from muster.testing import (
    Cluster,
    bindings,
    configuration,
    evictions,
    gang,
    node,
    nodes,
    pod,
    pod_group,
    pods,
    resources,
)
from tests.scheduler.audit import audit


def running(count: int = 3, minimum: int | None = None) -> Cluster:
    """A gang of 1-CPU pods that runs on nodes of 1 CPU."""
    cluster = Cluster.of(nodes("n", count, cpu=1), gang("g", count, min_member=minimum))
    cluster.run()
    assert cluster.phase("g") is Phase.RUNNING
    return cluster


def test_after_a_failed_bind_the_rest_of_the_gang_is_completed_first() -> None:
    cluster = Cluster.of(nodes("n", 2, cpu=1), gang("g", 2))
    assert len(cluster.cycle().bindings) == 2
    cluster.add(gang("newcomer", 1))
    cluster.cache.bind_failed("uid-g-w-1")
    outcome = cluster.cycle()
    assert set(bindings(outcome)) == {"g-w-1"}, "the newcomer must not take the stranded gang's place"


def test_a_gang_that_can_not_be_completed_in_time_is_taken_down_by_itself() -> None:
    cluster = running()
    cluster.delete("g-w-2")
    cluster.cache.remove_node("n-2")
    outcome = cluster.cycle()
    assert outcome.wake_at == cluster.now + 60
    assert outcome.pod_groups["default/g"].broken_since == cluster.now
    assert not outcome.evictions
    assert not cluster.cycle(seconds=59).evictions
    outcome = cluster.cycle(seconds=1)
    assert evictions(outcome) == {"g-w-0", "g-w-1"}
    assert {(each.reason, each.by) for each in outcome.evictions} == {("rollback", "default/g")}
    assert outcome.pod_groups["default/g"].broken_since is None
    audit(cluster.cache)


def test_after_the_rollback_the_gang_waits_as_a_whole_and_others_get_its_nodes() -> None:
    cluster = running()
    cluster.delete("g-w-2")
    cluster.cache.remove_node("n-2")
    cluster.cycle()
    cluster.add(gang("other", 2))
    assert not cluster.cycle().bindings
    cluster.settle(cluster.cycle(seconds=60))
    assert set(bindings(cluster.cycle())) == {"other-w-0", "other-w-1"}


def test_a_replacement_in_time_ends_it() -> None:
    cluster = running()
    cluster.delete("g-w-2")
    cluster.cycle()
    cluster.add(pod("g-w-3", "g"))
    outcome = cluster.cycle(seconds=30)
    assert set(bindings(outcome)) == {"g-w-3"}
    cluster.settle(outcome)
    assert cluster.cycle().pod_groups["default/g"].broken_since is None
    assert not cluster.cycle(seconds=600).evictions


def test_a_gang_whose_minimum_rose_is_not_a_fragment() -> None:
    cluster = running(count=2)
    cluster.add(pod_group("g", 3), pod("g-w-2", "g"))
    cluster.cycle()
    assert not cluster.cycle(seconds=600).evictions
    cluster.delete("g-w-1")
    cluster.cycle()
    assert evictions(cluster.cycle(seconds=60)) == {"g-w-0"}, "below the minimum that it had"


@pytest.mark.parametrize(
    ("group", "evicted"),
    [
        pytest.param(pod_group("g", 3, phase=Phase.RUNNING), True, id="nothing is known of the past"),
        pytest.param(pod_group("g", 3, phase=Phase.RUNNING, running=1), True, id="three were bound, one ran already"),
        pytest.param(pod_group("g", 3, phase=Phase.RUNNING, running=2), True, id="three were bound, two ran already"),
        pytest.param(pod_group("g", 3, phase=Phase.RUNNING, minimum_met=3, running=1), True, id="it had three"),
        pytest.param(pod_group("g", 3, phase=Phase.UNKNOWN, minimum_met=2), False, id="it had two: the minimum rose"),
        pytest.param(pod_group("g", 3, phase=Phase.UNKNOWN, minimum_met=0), False, id="it had no minimum"),
        pytest.param(pod_group("g", 3, phase=Phase.INQUEUE, running=0), True, id="killed while it was being bound"),
        pytest.param(pod_group("g", 2, phase=Phase.RUNNING, running=2), False, id="whole"),
        pytest.param(pod_group("g", 2, phase=Phase.RUNNING, minimum_met=3), False, id="whole: the minimum fell"),
        pytest.param(pod_group("g", 0, phase=Phase.RUNNING), False, id="the job is done"),
    ],
)
def test_after_a_restart_a_fragment_is_told_from_a_gang_that_grows(group: PodGroupSpec, evicted: bool) -> None:
    cluster = Cluster.of(
        nodes("n", 2, cpu=1),
        group,
        pods("g", 1, node="n-0"),
        pods("g", 1, first=1, node="n-1"),
    )
    cluster.cycle()
    assert bool(cluster.cycle(seconds=60).evictions) is evicted


def test_the_minimum_that_a_gang_met_is_noted_as_long_as_it_has_pods_on_nodes() -> None:
    def note() -> int | None:
        said = cluster.cache.jobs["default/g"].published
        assert said is not None
        return said.minimum_met

    cluster = Cluster.of(nodes("n", 2, cpu=1), gang("g", 3))
    cluster.cycle()
    assert note() is None
    cluster.add(nodes("m", 1, cpu=1))
    outcome = cluster.cycle()
    assert len(outcome.bindings) == 3
    assert note() == 3, "with the bindings: a restart may come at any time"
    cluster.settle(outcome)
    cluster.add(pod_group("g", 4))
    cluster.cycle()
    assert note() == 3, "the fourth has no room yet"
    cluster.add(nodes("o", 1, cpu=1), pod("g-w-3", "g"))
    cluster.settle(cluster.cycle())
    assert note() == 4
    cluster.delete("g-w-0")
    cluster.cycle()
    assert note() == 4
    cluster.settle(cluster.cycle(seconds=60))
    cluster.cycle()
    assert note() is None, "taken down: it starts as a whole again"


def test_a_gang_that_grew_and_lost_a_member_is_completed_after_a_restart_as_before_it() -> None:
    """Two of three members had nodes when the minimum rose to four; one of them was lost, and found a place again."""
    group = pod_group("g", 4, phase=Phase.UNKNOWN, minimum_met=2, broken_since=999_990.0)
    cluster = Cluster.of(nodes("n", 2, cpu=1), group, pods("g", 2, node="n-0"))
    cluster.change_pod("g-w-1", node="n-1")
    assert cluster.cycle().pod_groups["default/g"].broken_since is None
    assert not cluster.cycle(seconds=60).evictions


def test_the_time_a_gang_has_been_broken_survives_a_restart() -> None:
    now = Cluster().now
    group = pod_group("g", 2, phase=Phase.UNKNOWN, running=1, broken_since=now - 50)
    cluster = Cluster.of(nodes("n", 1, cpu=1), group, pods("g", 1, node="n-0"))
    assert cluster.cycle().wake_at == now + 10
    assert evictions(cluster.cycle(seconds=10)) == {"g-w-0"}


def test_no_time_in_the_future_keeps_a_fragment_on_its_nodes() -> None:
    now = Cluster().now
    group = pod_group("g", 2, phase=Phase.UNKNOWN, running=1, broken_since=now + 1e9)
    cluster = Cluster.of(nodes("n", 1, cpu=1), group, pods("g", 1, node="n-0"))
    assert cluster.cycle().wake_at == now + 60
    assert evictions(cluster.cycle(seconds=60)) == {"g-w-0"}


@pytest.mark.parametrize("status", [TaskStatus.SUCCEEDED])
def test_a_gang_whose_members_succeed_one_after_the_other_is_not_broken(status: TaskStatus) -> None:
    cluster = running()
    cluster.change_pod("g-w-0", status=status)
    cluster.delete("g-w-1")
    cluster.cycle()
    assert not cluster.cycle(seconds=600).evictions


def test_a_gang_that_the_cycle_itself_has_broken_is_watched_from_then_on() -> None:
    """A configuration without `gang` may take members below a minimum; no event has to come for that to be noticed."""
    taking = configuration("enqueue, allocate, preempt", ["priority"], ["predicates"])
    cluster = Cluster.of(node("n", 2), PriorityClassSpec("high", 100), gang("low", 2), configuration=taking)
    cluster.run()
    cluster.add(pod_group("high", 1, priority_class="high"), pod("high-0", "high", priority=100))
    outcome = cluster.cycle()
    assert len(evictions(outcome)) == 1
    assert outcome.wake_at == cluster.now + 60
    assert outcome.pod_groups["default/low"].broken_since == cluster.now


def test_a_finished_job_keeps_its_pods() -> None:
    cluster = running()
    cluster.add(pod_group("g", 0))
    cluster.delete("g-w-1", "g-w-2")
    cluster.cycle()
    assert not cluster.cycle(seconds=600).evictions


def test_losing_an_extra_member_breaks_nothing() -> None:
    cluster = running(minimum=2)
    cluster.delete("g-w-2")
    assert cluster.cycle().wake_at is None
    assert not cluster.cycle(seconds=600).evictions


def test_the_time_can_be_set() -> None:
    cluster = running()
    cluster.configuration = replace(cluster.configuration, gang_repair_timeout=5.0)
    cluster.delete("g-w-2")
    assert cluster.cycle().wake_at == cluster.now + 5
    assert cluster.cycle(seconds=5).evictions


def test_a_member_still_being_bound_is_taken_down_too() -> None:
    cluster = Cluster.of(nodes("n", 2, cpu=1), gang("g", 2))
    cluster.cycle()
    cluster.cache.bind_failed("uid-g-w-1")
    cluster.cache.remove_node("n-1")
    cluster.cycle()
    assert evictions(cluster.cycle(seconds=60)) == {"g-w-0"}
    cluster.cache.bind_failed("uid-g-w-0")
    assert cluster.cache.tasks["uid-g-w-0"].node is None
    audit(cluster.cache)


def test_a_lost_role_breaks_a_gang_that_has_enough_pods_otherwise() -> None:
    cluster = Cluster.of(
        nodes("n", 1, cpu=4), pod_group("g", 2, roles={"head": 1}), pod("head", "g", role="head"), pods("g", 2)
    )
    cluster.run()
    cluster.delete("head")
    cluster.cycle()
    assert evictions(cluster.cycle(seconds=60)) == {"g-w-0", "g-w-1"}


def test_the_reservation_of_a_gang_that_can_not_be_placed_ends_but_its_turn_stays() -> None:
    """P7; volcano#5006: an admitted gang that finds no nodes must not keep quota for ever."""
    cluster = Cluster.of(nodes("n", 2, cpu=3), gang("big", 2, 2), gang("old", 2, 2), gang("late", 1, 2))
    cluster.cache.set_task(replace(pod("x", node="n-0", cpu=1.5, ours=False)))
    first = cluster.cycle()
    assert cluster.phase("big") is Phase.INQUEUE
    assert first.wake_at == cluster.now + 300
    cluster.cycle(seconds=300)
    job = cluster.cache.jobs["default/big"]
    assert job.reservation_expired
    assert job.phase is Phase.INQUEUE
    assert job.contribution.promised == resources()
    audit(cluster.cache)


def test_a_member_on_a_node_that_was_deleted_is_lost_though_its_pod_still_runs() -> None:
    cluster = running()
    cluster.cache.remove_node("n-2")
    outcome = cluster.cycle()
    assert outcome.pod_groups["default/g"].broken_since == cluster.now
    assert outcome.wake_at == cluster.now + 60
    assert not cluster.cycle(seconds=59).evictions
    assert evictions(cluster.cycle(seconds=1)) == {"g-w-0", "g-w-1", "g-w-2"}
    audit(cluster.cache)


def test_a_restart_does_not_make_a_gang_whole_that_lost_a_node() -> None:
    """The pod on the deleted node is still there, and nobody says any more that there was a node."""
    cluster = Cluster.of(
        nodes("n", 1, cpu=1),
        pod_group("g", 2, phase=Phase.UNKNOWN, minimum_met=2, broken_since=999_950.0),
        pod("g-w-0", "g", node="n-0"),
        pod("g-w-1", "g", node="lost"),
    )
    outcome = cluster.cycle()
    assert cluster.cache.jobs["default/g"].broken_since == 999_950.0
    assert outcome.wake_at == 999_950.0 + 60
    assert evictions(cluster.cycle(seconds=10)) == {"g-w-0", "g-w-1"}


def test_a_node_that_comes_back_in_time_ends_it() -> None:
    cluster = running()
    cluster.cache.remove_node("n-2")
    cluster.cycle()
    cluster.add(node("n-2", cpu=1))
    assert cluster.cycle(seconds=59).pod_groups["default/g"].broken_since is None
    assert not cluster.cycle(seconds=61).evictions
    assert not cluster.cache.gone_nodes


@pytest.mark.parametrize("minimum", [1, 2])
def test_a_gang_that_keeps_its_minimum_on_other_nodes_is_whole(minimum: int) -> None:
    cluster = running(minimum=minimum)
    cluster.cache.remove_node("n-2")
    assert cluster.cycle().wake_at is None
    assert not cluster.cycle(seconds=61).evictions


def test_a_gang_all_of_whose_nodes_were_deleted_holds_nothing_that_others_could_use() -> None:
    cluster = running()
    for name in ("n-0", "n-1", "n-2"):
        cluster.cache.remove_node(name)
    cluster.cycle()
    assert not cluster.cycle(seconds=61).evictions


def test_the_role_that_was_lost_with_a_node_breaks_the_gang_though_members_are_enough() -> None:
    cluster = Cluster.of(nodes("n", 3, cpu=1), pod_group("g", 2, roles={"head": 1}))
    cluster.add(pod("h", "g", role="head"), *pods("g", 2, role="worker"))
    cluster.run()
    cluster.cache.remove_node(cluster.placed()["h"])
    assert cluster.cycle().pod_groups["default/g"].broken_since == cluster.now


def test_a_deleted_node_is_forgotten_with_its_last_pod() -> None:
    cluster = running()
    cluster.cache.remove_node("n-2")
    cluster.cycle()
    cluster.delete(*(name for name, at in cluster.placed().items() if at == "n-2"))
    cluster.cycle()
    assert not cluster.cache.gone_nodes


def test_after_a_restart_what_a_node_that_is_not_there_has_of_a_gang_is_taken_down_in_time() -> None:
    """It may have been deleted meanwhile, or it can't be read: then its pods would be a fragment for ever."""
    cluster = Cluster.of(
        nodes("n", 1),
        pod_group("g", 2, phase=Phase.RUNNING, minimum_met=2),
        pod("g-w-0", "g", node="unknown"),
    )
    assert not cluster.cycle().evictions
    assert not cluster.cycle(seconds=59).evictions
    assert evictions(cluster.cycle(seconds=1)) == {"g-w-0"}
