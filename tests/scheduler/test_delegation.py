"""Pods that the default scheduler binds: from our decision to its binding, and what happens when that does not come."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muster.scheduler.conf import DEFAULT
from muster.scheduler.outcome import Outcome
from muster.scheduler.reasons import Code, describe
from muster.scheduler.specs import Delegation, TaskSpec, TaskStatus
from muster.testing import Cluster, bindings, evictions, nodes, pod, pod_group
from muster.testing_devices import claim, gpus, tell, user

TIMEOUT = DEFAULT.gang_repair_timeout


def cluster(members: int = 2, minimum: int | None = None) -> Cluster:
    """A node with a device for each member of a gang."""
    pods = [user(f"p{index}", "g", f"c{index}") for index in range(members)]
    made = Cluster.of(nodes("n", members), pod_group("g", members if minimum is None else minimum), pods)
    claims = [claim(f"c{index}") for index in range(members)]
    tell(made, *(gpus(f"n-{index}", 1) for index in range(members)), *claims)
    return made


def pin(made: Cluster, outcome: Outcome) -> None:
    """The binder's patches are seen."""
    for each in outcome.bindings:
        made.change_pod(each.pod, delegation=Delegation(each.node, made.now))


def bind(made: Cluster, name: str, node: str) -> None:
    """The default scheduler has bound a pod."""
    made.change_pod(name, node=node, status=TaskStatus.BOUND)


def test_a_pod_that_was_delegated_is_held_as_assumed_until_it_is_bound() -> None:
    made = cluster()
    outcome = made.cycle()
    assert {each.delegate for each in outcome.bindings} == {True}
    pin(made, outcome)
    assert {task.status for task in made.cache.tasks.values()} == {TaskStatus.BINDING}
    for name, node in bindings(outcome).items():
        bind(made, name, node)
    assert made.cycle(10 * TIMEOUT).evictions == ()
    assert made.cache.delegated == {}


def test_a_pod_that_the_default_scheduler_does_not_bind_takes_its_gang_down() -> None:
    made = cluster()
    outcome = made.cycle()
    pin(made, outcome)
    bind(made, "p0", bindings(outcome)["p0"])
    assert made.cycle().wake_at == made.now + TIMEOUT
    assert made.cycle(TIMEOUT - 1).evictions == ()
    late = made.cycle(1)
    assert evictions(late) == {"p0", "p1"}
    assert {each.reason for each in late.evictions} == {"rollback"}


def test_a_gang_of_which_nobody_is_bound_is_taken_down_too() -> None:
    made = cluster()
    pin(made, made.cycle())
    assert evictions(made.cycle(TIMEOUT)) == {"p0", "p1"}


def test_a_member_too_many_is_taken_down_alone() -> None:
    made = cluster(members=2, minimum=1)
    outcome = made.cycle()
    pin(made, outcome)
    assert len(outcome.bindings) == 2
    bind(made, "p0", bindings(outcome)["p0"])
    assert evictions(made.cycle(TIMEOUT)) == {"p1"}
    made.delete("p1")
    assert made.cycle(TIMEOUT).evictions == ()


def test_a_gang_that_was_taken_down_is_placed_again_as_a_whole() -> None:
    made = cluster()
    pin(made, made.cycle())
    made.settle(made.cycle(TIMEOUT))
    assert made.cycle().bindings == ()
    made.add([user(f"again-{index}", "g", f"c{index}") for index in range(2)])
    assert set(bindings(made.cycle())) == {"again-0", "again-1"}


def test_a_pod_that_can_not_be_evicted_is_waited_for_once_more() -> None:
    made = cluster(members=1)
    pin(made, made.cycle())
    assert evictions(made.cycle(TIMEOUT)) == {"p0"}
    made.cache.evict_failed("uid-p0")
    assert made.cycle().evictions == ()
    assert evictions(made.cycle(TIMEOUT)) == {"p0"}


def test_after_a_restart_a_pinned_pod_is_assumed_on_its_node_and_its_time_runs_on() -> None:
    made = Cluster.of(nodes("n", 2), pod_group("g", 1))
    since = made.now - TIMEOUT + 10
    made.add(replace(user("p0", "g", "c0"), delegation=Delegation("n-1", since)))
    tell(made, gpus("n-1", 1), claim("c0"), claim("c1"))
    made.add(pod_group("h", 1), user("q", "h", "c1"))
    outcome = made.cycle()
    assert outcome.bindings == (), "its device is promised already"
    assert made.placed() == {"p0": "n-1"}
    assert evictions(made.cycle(10)) == {"p0"}


@pytest.mark.parametrize("ahead", [0.0, 10 * TIMEOUT])
def test_a_time_in_the_future_is_believed_as_now(ahead: float) -> None:
    made = cluster(members=1)
    made.change_pod("p0", delegation=Delegation("n-0", made.now + ahead))
    made.cycle()
    assert evictions(made.cycle(TIMEOUT)) == {"p0"}


def test_a_pod_whose_patch_failed_waits_again() -> None:
    made = cluster(members=1)
    made.cycle()
    made.cache.bind_failed("uid-p0")
    assert made.cache.delegated == {}
    assert bindings(made.cycle()) == {"p0": "n-0"}


def test_a_patch_that_was_given_up_and_landed_after_all_is_believed() -> None:
    made = cluster(members=1)
    made.cycle()
    made.cache.bind_failed("uid-p0")
    made.change_pod("p0", delegation=Delegation("n-0", made.now))
    assert made.cycle().bindings == ()
    assert made.placed() == {"p0": "n-0"}


def test_a_pod_that_goes_before_it_is_bound_leaves_nothing_behind() -> None:
    made = cluster(members=1)
    pin(made, made.cycle())
    made.delete("p0")
    assert made.cache.delegated == {}
    assert made.placed() == {}


def test_a_pod_that_changes_its_gang_meanwhile_is_waited_for_there() -> None:
    made = cluster(members=1)
    pin(made, made.cycle())
    made.change_pod("p0", job="default/other")
    assert set(made.cache.delegated) == {"default/other"}


def test_a_delegated_pod_has_its_volumes_left_to_the_default_scheduler() -> None:
    member = replace(pod("p", "g"), delegation=Delegation())
    (found,) = Cluster.of(nodes("n", 1), pod_group("g", 1), member).cycle().bindings
    assert found.delegate
    assert found.volumes == ()


def forged(name: str = "p0", group: str = "g", at: str = "n-0", since: float = 0.0) -> TaskSpec:
    """A pod that was made pinned and ungated, with our note on it: not by us."""
    return replace(user(name, group), delegation=Delegation(at, since))


def started() -> Cluster:
    """A scheduler at work: a node with 4 CPU, and a gang of two that waits for its pods."""
    made = Cluster.of(nodes("n", 1), pod_group("g", 2))
    made.cycle()
    return made


@pytest.mark.parametrize("since", [0.0, 1e12])
def test_a_note_that_is_not_ours_gives_no_place(since: float) -> None:
    made = started()
    made.add(forged(since=since), user("p1", "g"), pod_group("h", 1), pod("q", "h", cpu=4))
    outcome = made.cycle()
    assert bindings(outcome) == {"q": "n-0"}, "nothing is taken by p0, and p1 does not go alone"
    assert made.placed() == {"q": "n-0"}
    assert made.cache.queues["default"].allocated.milli_cpu == 4000


def test_a_gang_with_a_pod_that_somebody_else_handed_over_says_so() -> None:
    made = started()
    made.add(forged(since=1e12), user("p1", "g"))
    reason = made.cycle().pod_groups["default/g"].reason
    assert reason is not None
    assert reason.code is Code.PODS_GATED
    assert describe(reason) == (
        "1 of 2 pods may be scheduled; p0 was handed to default-scheduler, and not by Muster's decision"
    )


def test_a_pod_that_lost_its_gate_to_somebody_else_is_not_placed_either() -> None:
    made = started()
    made.add(user("p0", "g"))
    made.cycle()
    made.change_pod("p0", delegation=Delegation("n-0", made.now))
    made.add(user("p1", "g"))
    assert made.cycle().bindings == ()
    assert made.placed() == {}


def test_a_pin_to_another_node_than_the_one_decided_is_none_of_ours() -> None:
    made = cluster(members=1)
    made.add(nodes("other", 1))
    made.cycle()
    made.change_pod("p0", delegation=Delegation("other-0", made.now))
    assert made.placed() == {}


def test_a_pod_that_was_handed_over_by_others_counts_once_it_is_bound() -> None:
    made = started()
    made.add(forged(since=made.now), user("p1", "g"))
    made.cycle()
    bind(made, "p0", "n-0")
    assert bindings(made.cycle()) == {"p1": "n-0"}
    bind(made, "p1", "n-0")
    assert made.cycle(10 * TIMEOUT).evictions == ()


def test_a_pod_that_was_handed_over_by_others_and_is_never_bound_has_to_be_made_anew() -> None:
    """Neither gate nor pin can be put back, and it may be a patch of an earlier Muster that landed late."""
    made = started()
    made.add(forged(since=made.now), user("p1", "g"))
    assert made.cycle().wake_at == made.now + TIMEOUT
    outcome = made.cycle(TIMEOUT)
    assert evictions(outcome) == {"p0"}
    assert made.cycle().evictions == ()
    made.settle(outcome)
    made.add(user("again", "g"))
    assert set(bindings(made.cycle())) == {"again", "p1"}


def test_a_gang_that_is_whole_loses_nothing_by_a_pod_that_others_handed_over() -> None:
    made = Cluster.of(nodes("n", 1), pod_group("g", 1), pod("p1", "g", node="n-0"))
    made.cycle()
    made.add(forged(since=made.now))
    assert evictions(made.cycle(TIMEOUT)) == {"p0"}
    assert made.placed() == {"p1": "n-0"}


def test_where_a_pod_was_told_to_go_is_remembered_over_a_second_decision() -> None:
    made = cluster(members=1)
    made.cycle()
    made.cache.bind_failed("uid-p0")
    made.cache.remove_node("n-0")
    made.add(nodes("m", 1))
    tell(made, gpus("m-0", 1))
    assert bindings(made.cycle()) == {"p0": "m-0"}
    made.add(nodes("n", 1))
    made.change_pod("p0", delegation=Delegation("n-0", made.now))
    assert made.placed() == {"p0": "n-0"}


def test_nothing_is_remembered_of_pods_that_are_bound_or_gone() -> None:
    made = cluster(members=2)
    outcome = made.cycle()
    pin(made, outcome)
    bind(made, "p0", bindings(outcome)["p0"])
    made.delete("p1")
    assert made.cache.asked == {}
