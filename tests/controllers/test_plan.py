"""What happens to the pods of a group, case by case."""

from __future__ import annotations

from typing import Any

import pytest

from muster.api.raycluster import WorkerGroupSpec
from muster.controllers.raycluster.place import STUCK_SECONDS
from muster.controllers.raycluster.plan import (
    CREATIONS_A_PASS,
    GroupPlan,
    plan_head,
    plan_removed_groups,
    plan_workers,
)
from muster.kube.objects import Pod
from muster.ray.labels import HEAD_GROUP
from tests.controllers.observed_pods import NOW, pod, waiting


def group(replicas: int | None = 2, **changes: Any) -> WorkerGroupSpec:
    raw: dict[str, Any] = {
        "groupName": "workers",
        "replicas": replicas,
        "minReplicas": 0,
        "maxReplicas": 10,
        "template": {},
    }
    return WorkerGroupSpec.parse({**raw, **changes})


def deleted(plan: GroupPlan) -> set[str]:
    return {deletion.pod.metadata.name for deletion in plan.delete}


def created(plan: GroupPlan) -> list[tuple[int, int]]:
    return [(creation.replica, creation.host) for creation in plan.create]


def heads(*pods: Pod, **options: Any) -> GroupPlan:
    return plan_head(pods, NOW, **options)


def head(name: str = "head", **changes: Any) -> Pod:
    return pod(name, group=HEAD_GROUP, **changes)


# --- the head -------------------------------------------------------------------------------------------------------


def test_a_missing_head_is_created_unless_it_must_not_come_again() -> None:
    assert created(heads()) == [(0, 0)]
    assert created(heads(may_create=False)) == []


@pytest.mark.parametrize(
    ("present", "gone", "comes"),
    [
        pytest.param(head(), False, False, id="a running head stays"),
        pytest.param(waiting("head", group=HEAD_GROUP), False, False, id="a waiting head stays"),
        pytest.param(head(phase="Unknown"), False, False, id="a head of unknown state stays"),
        pytest.param(head(phase="Failed"), True, True, id="a failed head is replaced in the same pass"),
        pytest.param(head(phase="Succeeded"), True, True, id="a head that ended is replaced"),
        pytest.param(head(exited=1), False, False, id="the kubelet restarts a container"),
        pytest.param(head(exited=1, restart="Never"), True, False, id="a dead head keeps its place until it is gone"),
        pytest.param(head(leaving=20), False, False, id="a leaving head keeps its place"),
        pytest.param(head(leaving=-5), False, False, id="also a little after its grace period"),
        pytest.param(head(leaving=-STUCK_SECONDS - 1), False, True, id="a head stuck on a dead node is replaced"),
    ],
)
def test_a_head_is_replaced_when_it_can_not_serve_any_more(present: Pod, gone: bool, comes: bool) -> None:
    plan = heads(present)
    assert deleted(plan) == ({"head"} if gone else set())
    assert bool(plan.create) == comes


def test_of_two_heads_the_ready_one_stays_and_among_equals_the_older() -> None:
    assert deleted(heads(head("new", age=5), head("old", age=50, ready=False))) == {"old"}
    assert deleted(heads(head("new", age=5), head("old", age=50))) == {"new"}


def test_a_leaving_head_is_looked_at_again_when_it_counts_as_stuck() -> None:
    assert heads(head(leaving=20)).look_again == NOW + 20 + STUCK_SECONDS


def test_a_head_that_broke_again_is_replaced_when_its_time_comes() -> None:
    plan = heads(head(phase="Failed"), replace_at=NOW + 40)
    assert (deleted(plan), created(plan), plan.look_again) == (set(), [], NOW + 40)


@pytest.mark.parametrize(
    ("present", "gone"),
    [
        pytest.param(waiting("head", group=HEAD_GROUP, template="old"), True, id="one that waits is made anew"),
        pytest.param(head(phase="Pending", template="old"), True, id="also one whose image can't be had"),
        pytest.param(head(template="old"), False, id="one that runs stays"),
        pytest.param(waiting("head", group=HEAD_GROUP, template="new"), False, id="one of the new template stays"),
        pytest.param(waiting("head", group=HEAD_GROUP), False, id="one of which nothing is known stays"),
        pytest.param(waiting("head", group=HEAD_GROUP, template="old", leaving=9), False, id="one that leaves leaves"),
    ],
)
def test_a_changed_template_comes_to_a_head_that_has_not_begun_to_run(present: Pod, gone: bool) -> None:
    plan = heads(present, template="new")
    assert deleted(plan) == ({"head"} if gone else set())
    assert created(plan) == [], "it keeps its place until it is gone"
    assert not any(deletion.broken for deletion in plan.delete), "its replacement need not be paced"
    assert all(deletion.unchanged for deletion in plan.delete), "it may begin to run any moment"


# --- workers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("replicas", "limits", "expected"),
    [
        pytest.param(3, {}, 3, id="as many as asked for"),
        pytest.param(None, {}, 0, id="none when nothing is asked for"),
        pytest.param(1, {"minReplicas": 2}, 2, id="at least the minimum"),
        pytest.param(20, {"maxReplicas": 4}, 4, id="at most the maximum"),
        pytest.param(5, {"maxReplicas": 0}, 0, id="a maximum of zero is zero"),
        pytest.param(3, {"numOfHosts": None}, 3, id="no number of hosts is one host"),
        pytest.param(3, {"suspend": True}, 0, id="none in a suspended group"),
    ],
)
def test_an_empty_group_gets_its_workers(replicas: int, limits: dict[str, Any], expected: int) -> None:
    plan = plan_workers(group(replicas, **limits), [], NOW)
    assert created(plan) == [(index, 0) for index in range(expected)]


def test_a_new_worker_takes_the_lowest_free_index() -> None:
    present = [pod("a", replica=0), pod("c", replica=2), pod("leaving", replica=1, leaving=10)]
    assert created(plan_workers(group(4), present, NOW)) == [(3, 0)]


def test_a_leaving_worker_keeps_its_place_until_it_is_gone_or_stuck() -> None:
    leaving = pod("leaving", leaving=10)
    assert created(plan_workers(group(1), [leaving], NOW)) == []
    assert created(plan_workers(group(1), [pod("stuck", leaving=-100)], NOW)) == [(0, 0)]


def test_a_failed_worker_is_deleted_and_replaced_in_one_pass_and_the_others_stay() -> None:
    plan = plan_workers(group(2), [pod("fine", replica=0), pod("dead", replica=1, phase="Failed")], NOW)
    assert deleted(plan) == {"dead"}
    assert created(plan) == [(1, 0)]
    assert [deletion.broken for deletion in plan.delete] == [True]


def test_a_worker_that_broke_again_waits_for_its_time_and_keeps_its_place() -> None:
    plan = plan_workers(group(1), [pod("dead", phase="Failed")], NOW, replace_at=NOW + 20)
    assert (deleted(plan), created(plan), plan.look_again) == (set(), [], NOW + 20)


@pytest.mark.parametrize(
    ("pods", "victims"),
    [
        pytest.param([pod("run"), waiting("wait")], {"wait"}, id="a waiting one before a running one"),
        pytest.param([pod("ready", age=1), pod("not-ready", ready=False)], {"not-ready"}, id="one that is not ready"),
        pytest.param(
            [waiting("placed", node="n", age=1), waiting("unplaced")], {"unplaced"}, id="one without a node first"
        ),
        pytest.param([pod("old", age=100), pod("new", age=10)], {"new"}, id="the newest among equals"),
        pytest.param([pod("leaving", leaving=10), pod("stays")], set(), id="one that leaves already is enough"),
    ],
)
def test_scaling_down_to_one_takes_who_hurts_least(pods: list[Pod], victims: set[str]) -> None:
    assert deleted(plan_workers(group(1), pods, NOW)) == victims


def test_scaling_down_does_not_create_and_scaling_to_zero_takes_all() -> None:
    plan = plan_workers(group(0), [pod("a"), pod("b")], NOW)
    assert (deleted(plan), created(plan)) == ({"a", "b"}, [])


def test_with_autoscaling_only_the_named_workers_go() -> None:
    pods = [pod("a", replica=0), pod("b", replica=1), pod("c", replica=2)]
    named = group(2, scaleStrategy={"workersToDelete": ["b", "someone-else"]})
    assert deleted(plan_workers(named, pods, NOW, autoscaling=True)) == {"b"}
    assert deleted(plan_workers(group(1), pods, NOW, autoscaling=True)) == set()
    assert len(deleted(plan_workers(group(1), pods, NOW))) == 2


def test_a_worker_goes_also_when_another_groups_list_names_it() -> None:
    pods = [pod("a", replica=0), pod("b", replica=1)]
    assert deleted(plan_workers(group(2), pods, NOW, autoscaling=True, named={"b", "elsewhere"})) == {"b"}


def test_a_named_worker_is_not_counted_when_the_surplus_is_cut() -> None:
    pods = [pod("a", replica=0), pod("b", replica=1), pod("c", replica=2)]
    plan = plan_workers(group(2, scaleStrategy={"workersToDelete": ["b"]}), pods, NOW)
    assert (deleted(plan), created(plan)) == ({"b"}, [])


def test_a_changed_template_comes_to_the_workers_that_have_not_begun_to_run() -> None:
    pods = [pod("runs", replica=0, template="old"), waiting("waits", replica=1, template="old")]
    plan = plan_workers(group(2), pods, NOW, template="new")
    assert (deleted(plan), created(plan)) == ({"waits"}, [])
    assert deleted(plan_workers(group(2), pods, NOW, template="old")) == set()


def test_a_worker_that_is_named_and_outdated_goes_once() -> None:
    named = group(1, scaleStrategy={"workersToDelete": ["waits"]})
    plan = plan_workers(named, [waiting("waits", template="old")], NOW, template="new")
    assert [deletion.pod.metadata.name for deletion in plan.delete] == ["waits"]


@pytest.mark.parametrize("replicas", [CREATIONS_A_PASS + 1, 2_147_483_647])
def test_a_large_group_is_planned_in_parts(replicas: int) -> None:
    large = group(replicas, maxReplicas=None)
    plan = plan_workers(large, [], NOW)
    assert created(plan) == [(index, 0) for index in range(CREATIONS_A_PASS)]
    assert plan.look_again == NOW
    present = [waiting(f"w{index}", replica=index) for index in range(CREATIONS_A_PASS)]
    assert created(plan_workers(large, present, NOW))[0] == (CREATIONS_A_PASS, 0)


def test_the_last_part_needs_no_other_look() -> None:
    plan = plan_workers(group(CREATIONS_A_PASS, maxReplicas=None), [], NOW)
    assert (len(plan.create), plan.look_again) == (CREATIONS_A_PASS, None)


# --- several hosts --------------------------------------------------------------------------------------------------


def hosts(replica: int, *changes: dict[str, Any]) -> list[Pod]:
    found = []
    for host, change in enumerate(changes):
        place: dict[str, Any] = {"replica": replica, "replica_name": f"workers-r{replica}", "host": host}
        found.append(pod(f"r{replica}-h{host}", **(place | change)))
    return found


def test_a_replica_of_several_hosts_is_created_as_a_whole() -> None:
    plan = plan_workers(group(2, numOfHosts=2), [], NOW)
    assert created(plan) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_no_replica_is_torn_by_the_end_of_a_part() -> None:
    plan = plan_workers(group(1000, maxReplicas=None, numOfHosts=7), [], NOW)
    assert CREATIONS_A_PASS <= len(plan.create) < CREATIONS_A_PASS + 7
    assert len(plan.create) % 7 == 0
    assert plan.look_again == NOW


def test_a_broken_host_takes_its_replica_with_it_and_no_other() -> None:
    pods = hosts(0, {}, {"phase": "Failed"}) + hosts(1, {}, {})
    plan = plan_workers(group(2, numOfHosts=2), pods, NOW)
    assert deleted(plan) == {"r0-h0", "r0-h1"}
    assert created(plan) == [], "its living host keeps the place until it is gone"


def test_a_lost_host_takes_a_replica_that_has_begun_to_work() -> None:
    assert deleted(plan_workers(group(1, numOfHosts=2), hosts(0, {}), NOW)) == {"r0-h0"}


def test_a_replica_whose_creation_was_cut_short_is_completed() -> None:
    begun = hosts(0, {"phase": "Pending", "node": None})
    plan = plan_workers(group(1, numOfHosts=3), begun, NOW)
    assert (deleted(plan), created(plan)) == (set(), [(0, 1), (0, 2)])
    assert {creation.replica_name for creation in plan.create} == {"workers-r0"}


def test_a_changed_template_comes_to_whole_replicas_only() -> None:
    waits: dict[str, Any] = {"phase": "Pending", "node": None, "template": "old"}
    pods = hosts(0, waits, {"template": "old"}) + hosts(1, waits, waits)
    assert deleted(plan_workers(group(2, numOfHosts=2), pods, NOW, template="new")) == {"r1-h0", "r1-h1"}


def test_a_surplus_goes_by_whole_replicas() -> None:
    pods = hosts(0, {}, {}) + hosts(1, {}, {"ready": False})
    assert deleted(plan_workers(group(1, numOfHosts=2), pods, NOW)) == {"r1-h0", "r1-h1"}


# --- groups that are gone -------------------------------------------------------------------------------------------


def test_workers_of_a_group_that_is_not_in_the_spec_go() -> None:
    workers = [pod("a", group="one"), pod("b", group="two"), pod("c", group="two", leaving=3)]
    assert [deletion.pod.metadata.name for deletion in plan_removed_groups(["one"], workers)] == ["b"]
