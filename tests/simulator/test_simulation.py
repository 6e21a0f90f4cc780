"""What happens between cycles, and what a cycle's document says."""

from __future__ import annotations

from typing import Any

import pytest

from muster.testing import configuration
from tests.simulator.conftest import Simulate, bound
from tests.simulator.manifests import gang, node, pod, pod_group, priority_class, queue

ALLOCATE = configuration("enqueue, allocate, backfill", ["priority", "gang"], ["predicates", "nodeorder"])


def phases(document: dict[str, Any]) -> dict[str, str]:
    return {key.removeprefix("default/"): group["phase"] for key, group in document["podGroups"].items()}


def test_a_gang_is_bound_in_the_first_cycle_and_runs_from_the_second(simulate: Simulate) -> None:
    first, second = simulate(node("n1"), gang("g", 2), cycles=2)
    assert bound(first) == {"g-w-0": "n1", "g-w-1": "n1"}
    assert phases(first) == {"g": "Inqueue"}
    assert second["bindings"] == []
    assert phases(second) == {"g": "Running"}
    assert second["podGroups"]["default/g"]["reason"] is None


def test_a_pod_that_is_bound_already_runs_after_the_first_cycle(simulate: Simulate) -> None:
    documents = simulate(node("n1"), pod_group("g"), pod("p", "g", node="n1", phase="Pending", runtime="15s"), cycles=4)
    assert [phases(each)["g"] for each in documents] == ["Running", "Running", "Completed", "Completed"]


@pytest.mark.parametrize(("grace", "cycle"), [(0, 2), (1, 2), (2, 3), (3, 4)])
def test_a_deleted_pod_leaves_after_the_grace_and_its_room_is_taken_then(
    simulate: Simulate, grace: int, cycle: int
) -> None:
    objects = [node("n1", cpu=2), pod_group("old"), pod("old", "old", 2, node="n1", deleted=True), *gang("new", 2)]
    documents = simulate(*objects, cycles=5, grace=grace)
    assert [bool(each["bindings"]) for each in documents].index(True) == cycle - 1
    assert {each["pod"] for each in documents[0]["pipelined"]} == {"default/new-w-0", "default/new-w-1"}


def test_a_deleted_pod_that_has_finished_goes_too(simulate: Simulate) -> None:
    done = pod("p", "g", node="n1", phase="Succeeded", deleted=True)
    first, second = simulate(node("n1"), pod_group("g"), done, cycles=2)
    assert (phases(first)["g"], phases(second)["g"]) == ("Completed", "Completed")


def test_a_fragment_is_rolled_back_when_its_time_is_up(simulate: Simulate) -> None:
    fragment = pod_group("g", 2, phase="Running")
    fragment["metadata"]["annotations"] = {"muster.dev/broken-since": "2026-01-01T11:59:20Z"}
    members = [pod("g-w-0", "g", node="n1"), pod("g-w-1", "g", cpu=9)]
    documents = simulate(node("n1"), fragment, members, cycles=4)
    rollback = {"pod": "default/g-w-0", "reason": "rollback", "by": "default/g"}
    assert [each["evictions"] for each in documents] == [[], [], [rollback], []]


@pytest.mark.parametrize(
    ("running", "succeeds_before"),
    [
        ({"status": {"startTime": "2026-01-01T11:59:45Z"}}, 2),
        ({"metadata": {"creationTimestamp": "2026-01-01T11:59:55Z"}}, 3),
        ({}, 4),
    ],
)
def test_a_pod_succeeds_its_expected_runtime_after_it_began_to_run(
    simulate: Simulate, running: dict[str, Any], succeeds_before: int
) -> None:
    old = pod("old", "old", 2, node="n1", runtime="25s", **running)
    documents = simulate(node("n1", cpu=2), pod_group("old"), old, gang("new", 2), cycles=5)
    assert [bool(each["bindings"]) for each in documents].index(True) == succeeds_before - 1
    assert phases(documents[succeeds_before - 1])["old"] == "Completed"


def test_the_run_time_of_a_pod_counts_from_its_binding(simulate: Simulate) -> None:
    documents = simulate(node("n1", cpu=2), gang("g", 2, runtime="20s"), cycles=4)
    assert [phases(each)["g"] for each in documents] == ["Inqueue", "Running", "Completed", "Completed"]


def test_the_run_time_of_a_pod_group_holds_for_its_pods(simulate: Simulate) -> None:
    group = pod_group("g", 2)
    group["metadata"]["annotations"] = {"muster.dev/expected-runtime": "20s"}
    members = [pod("g-w-0", "g"), pod("g-w-1", "g", runtime="10s")]
    documents = simulate(node("n1", cpu=2), group, members, *gang("next", 1), cycles=4)
    assert [sorted(bound(each)) for each in documents] == [["g-w-0", "g-w-1"], ["next-w-0"], [], []]
    assert [phases(each)["g"] for each in documents] == ["Inqueue", "Running", "Completed", "Completed"]


def test_pods_of_others_end_too(simulate: Simulate) -> None:
    theirs = pod("x", cpu=4, node="n1", scheduler="default-scheduler", runtime="10s")
    documents = simulate(node("n1"), theirs, gang("g", 2), cycles=2)
    assert [len(each["bindings"]) for each in documents] == [0, 2]


def test_a_reason_says_how_long_the_gang_has_waited(simulate: Simulate) -> None:
    documents = simulate(node("n1", cpu=1), gang("g", 2), cycles=3)
    assert [each["podGroups"]["default/g"]["reason"]["waited"] for each in documents] == [0, 10, 20]


def test_the_order_of_documents_decides_nothing(simulate: Simulate) -> None:
    objects = [node("n1", cpu=3), node("n2", cpu=3), *gang("a", 2, 2), *gang("b", 2, 2), queue("q"), pod("single")]
    assert simulate(*objects, cycles=3) == simulate(*reversed(objects), cycles=3)


def test_pods_take_their_priority_from_their_class_or_the_global_default(simulate: Simulate) -> None:
    classes = [priority_class("low", 10), priority_class("usual", 500, default=True)]
    members = [pod("w-w-0", "g", priorityClassName="low"), pod("w-w-1", "g")]
    (document,) = simulate(node("n1", cpu=1), classes, pod_group("g"), members, configuration=ALLOCATE)
    assert bound(document) == {"w-w-1": "n1"}


def test_a_pod_without_a_group_gets_one_of_its_own(simulate: Simulate) -> None:
    first, second = simulate(node("n1", cpu=1), pod("a"), pod("b"), cycles=2)
    assert bound(first) == {"a": "n1"}
    waiting = second["podGroups"]["default/podgroup-default/b"]
    assert waiting["reason"]["code"] == "ClusterOvercommit"


def test_a_pod_of_another_scheduler_is_left_alone_but_takes_its_room(simulate: Simulate) -> None:
    others = [pod("theirs", cpu=3, node="n1", scheduler="default-scheduler"), pod("x", scheduler="default-scheduler")]
    (document,) = simulate(node("n1"), others, gang("g", 2))
    assert document["bindings"] == []
    assert set(document["pods"]) == {"default/g-w-0", "default/g-w-1"}


def test_queues_are_all_listed_with_kubernetes_quantities(simulate: Simulate) -> None:
    (document,) = simulate(node("n1"), queue("q"), pod_group("g", queue="q"), pod("p", "g", "500m"))
    assert set(document["queues"]) == {"root", "default", "q"}
    found = document["queues"]["q"]
    assert (found["allocated"]["cpu"], found["deserved"]["cpu"], found["share"]) == ("500m", "500m", 1.0)
    assert found["overused"] is True


def test_without_a_plugin_that_computes_it_a_queue_deserves_null(simulate: Simulate) -> None:
    (document,) = simulate(node("n1"), gang("g", 1), configuration=ALLOCATE)
    assert document["queues"]["default"]["deserved"] is None
    assert document["queues"]["default"]["share"] is None
    assert document["queues"]["default"]["overused"] is None


def test_only_pods_that_more_nodes_would_help_say_unschedulable(simulate: Simulate) -> None:
    too_few = [pod_group("few", 3), pod("few-w-0", "few")]
    (document,) = simulate(node("n1", cpu=2), gang("big", 3), too_few)
    assert document["pods"]["default/big-w-2"]["podScheduled"]["reason"] == "Unschedulable"
    assert document["pods"]["default/few-w-0"] == {
        "status": "Pending",
        "podScheduled": {"reason": "", "message": "1 of 3 pods exist"},
    }


def test_a_pod_group_that_pods_name_but_that_is_not_there_has_a_reason_and_no_phase(simulate: Simulate) -> None:
    (document,) = simulate(node("n1"), pod("p", "nowhere"))
    group = document["podGroups"]["default/nowhere"]
    assert (group["phase"], group["reason"]["code"]) == (None, "PodGroupMissing")


def test_a_condition_says_since_when_it_holds(simulate: Simulate) -> None:
    documents = simulate(node("n1", cpu=1), gang("g", 2), cycles=3)
    conditions = [each["podGroups"]["default/g"]["conditions"] for each in documents]
    assert conditions[0][0]["type"] == "Unschedulable"
    assert conditions[0][0]["status"] == "True"
    assert {each[0]["lastTransitionTime"] for each in conditions} == {"2026-01-01T12:00:00Z"}


def test_a_queue_that_can_not_be_used_says_so_and_no_other_stops(simulate: Simulate) -> None:
    queues = [queue("a", parent="b"), queue("b", parent="a"), queue("fine")]
    gangs = [pod_group("g", queue="a"), pod("g-w-0", "g"), pod_group("h", queue="fine"), pod("h-w-0", "h")]
    (document,) = simulate(node("n1"), queues, gangs)
    assert bound(document) == {"h-w-0": "n1"}
    problems = {name: found["problem"]["class"] for name, found in document["queues"].items() if "problem" in found}
    assert problems == {"a": "queue", "b": "queue"}
    assert document["podGroups"]["default/g"]["reason"]["class"] == "queue"
