"""Nodes, PodGroups, queues and priority classes."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from muster.engine.amounts import TranslationError
from muster.engine.node_specs import node_spec
from muster.engine.podgroup_specs import pod_group_spec
from muster.engine.queue_specs import priority_class_spec, queue_spec
from muster.kube.objects import Node, PodGroup, PriorityClass, Queue
from muster.scheduler.constraints import NodeGroups, PodConstraints, Taint
from muster.scheduler.resources import Resources
from muster.scheduler.specs import (
    Companion,
    Condition,
    DisruptionBudget,
    NodeSpec,
    Phase,
    PodGroupSpec,
    Portion,
    PriorityClassSpec,
    QueueSpec,
    QueueState,
    TaskTopology,
)

CREATED = "2026-01-01T00:00:00Z"
CREATED_SECONDS = 1767225600.0


def node(allocatable: dict[str, Any], **parts: Any) -> Node:
    status = {"allocatable": allocatable, "conditions": parts.pop("conditions", [])}
    manifest = {"metadata": {"name": "n", "labels": {"a": "b"}}, "spec": parts, "status": status}
    return msgspec.convert(manifest, type=Node)


def test_a_node_offers_its_allocatable_amounts() -> None:
    given = node(
        {"cpu": "4", "memory": "1Gi", "pods": "110", "nvidia.com/gpu": "2", "ephemeral-storage": "10"},
        unschedulable=True,
        taints=[{"key": "k", "effect": "NoSchedule"}],
    )
    assert node_spec(given) == NodeSpec(
        name="n",
        allocatable=Resources(4000, 1024**3, {"pods": 110, "nvidia.com/gpu": 2000, "ephemeral-storage": 10_000}),
        labels={"a": "b"},
        taints=(Taint("k", "", "NoSchedule"),),
        unschedulable=True,
    )


def test_what_a_node_offers_never_rounds_up() -> None:
    offered = node_spec(node({"cpu": "1999999u", "memory": "1500m", "x": "1m", "y": "100u"})).allocatable
    assert (offered.milli_cpu, offered.memory, offered.scalars) == (1999, 1, {"x": 1, "y": 0})


READINESS: dict[str, tuple[list[dict[str, str]], bool]] = {
    "no word": ([], True),
    "ready": ([{"type": "Ready", "status": "True"}], True),
    "not ready": ([{"type": "Ready", "status": "False"}], False),
    "out of reach": ([{"type": "Ready", "status": "Unknown"}], False),
    "another condition": ([{"type": "DiskPressure", "status": "False"}], True),
}


@pytest.mark.parametrize(("conditions", "ready"), READINESS.values(), ids=READINESS.keys())
def test_a_node_is_ready_unless_it_says_otherwise(conditions: list[dict[str, str]], ready: bool) -> None:
    assert node_spec(node({}, conditions=conditions)).ready is ready


def test_a_node_with_an_amount_that_is_none_is_refused_by_its_field() -> None:
    with pytest.raises(TranslationError, match=r"status.allocatable\[cpu\]"):
        node_spec(node({"cpu": "four"}))


def pod_group(spec: dict[str, Any], status: dict[str, Any] | None = None, **annotations: str) -> PodGroup:
    notes = {f"muster.dev/{key.replace('_', '-')}": text for key, text in annotations.items()}
    meta = {"name": "pg", "namespace": "ns", "uid": "u", "creationTimestamp": CREATED, "annotations": notes}
    return msgspec.convert({"metadata": meta, "spec": spec, "status": status or {}}, type=PodGroup)


def test_a_pod_group_is_translated_whole() -> None:
    condition = {
        "type": "Unschedulable",
        "status": "True",
        "reason": "r",
        "message": "m",
        "lastTransitionTime": CREATED,
    }
    given = pod_group(
        {
            "minMember": 3,
            "minTaskMember": {"workers": 2},
            "queue": "q",
            "priorityClassName": "high",
            "minResources": {"cpu": "3", "pods": "3"},
        },
        {"phase": "Inqueue", "conditions": [condition], "running": 1, "succeeded": 2, "failed": 3},
        companion_nodes='{"submittergroup": "n"}',
        broken_since=CREATED,
        minimum_met="2",
    )
    assert pod_group_spec(given) == PodGroupSpec(
        namespace="ns",
        name="pg",
        uid="u",
        min_member=3,
        min_task_member={"workers": 2},
        min_resources=Resources(3000, 0, {"pods": 3}),
        queue="q",
        priority_class="high",
        creation=CREATED_SECONDS,
        phase=Phase.INQUEUE,
        conditions=(Condition("Unschedulable", True, "r", "m"),),
        running=1,
        succeeded=2,
        failed=3,
        companion_nodes={"submittergroup": "n"},
        broken_since=CREATED_SECONDS,
        minimum_met=2,
    )


def test_what_a_pod_group_does_not_say_has_volcano_s_meaning() -> None:
    found = pod_group_spec(pod_group({}))
    assert (found.queue, found.phase, found.min_resources, found.min_member) == ("default", None, None, 0)


@pytest.mark.parametrize("phase", ["", "Nonsense"])
def test_a_phase_that_is_none_reads_as_absent(phase: str) -> None:
    assert pod_group_spec(pod_group({}, {"phase": phase})).phase is None


@pytest.mark.parametrize("text", ["", "two", "-1", "1.5", "9" * 5000, "\N{SUPERSCRIPT TWO}"])
def test_a_minimum_that_is_no_number_was_never_met(text: str) -> None:
    assert pod_group_spec(pod_group({}, minimum_met=text)).minimum_met is None


def test_a_companion_is_what_its_pod_will_ask_for() -> None:
    spec = {"containers": [{"resources": {"limits": {"cpu": "50m"}}}], "nodeSelector": {"a": "b"}}
    given = pod_group({}, companions=json.dumps([{"role": "submittergroup", "podSpec": spec}]))
    request = Resources(50, 0, {"pods": 1})
    where = PodConstraints(node_selector=(("a", "b"),), assumed=(0, 200 * 1024**2))
    expected = Companion("submittergroup", request, request, where)
    assert pod_group_spec(given).companions == (expected,)


COMPANIONS = "metadata.annotations[muster.dev/companions]"
WISH = {"weight": 0, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {}}}
LIKING = {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [WISH]}}}
PROBLEMS: dict[str, tuple[PodGroup, str]] = {
    "amount": (pod_group({"minResources": {"cpu": "3 cores"}}), "spec.minResources[cpu]"),
    "negative amount": (pod_group({"minResources": {"memory": "-1Gi"}}), "spec.minResources[memory]"),
    "negative minMember": (pod_group({"minMember": -1}), "spec.minMember"),
    "negative minTaskMember": (pod_group({"minTaskMember": {"w": -1}}), "spec.minTaskMember[w]"),
    "companions that are not JSON": (pod_group({}, companions="{"), COMPANIONS),
    "companions of another shape": (pod_group({}, companions='[{"role": 1}]'), COMPANIONS),
    "a companion's amount": (
        pod_group(
            {},
            companions='[{"role": "s", "podSpec": {"containers": [{"resources": {"requests": {"cpu": "x"}}}]}}]',
        ),
        f"{COMPANIONS}[0].podSpec.containers[0].resources.requests[cpu]",
    ),
    "a companion that no API server would let be": (
        pod_group({}, companions=json.dumps([{"role": "s", "podSpec": LIKING}])),
        f"{COMPANIONS}[0].podSpec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight",
    ),
    "companions nested without end": (
        pod_group({}, companions='[{"role": "s", "podSpec": {"x": ' + "[" * 100_000),
        COMPANIONS,
    ),
}


@pytest.mark.parametrize(("given", "path"), PROBLEMS.values(), ids=PROBLEMS.keys())
def test_a_pod_group_that_cannot_be_used_stays_known_with_its_problem(given: PodGroup, path: str) -> None:
    found = pod_group_spec(given)
    assert found.problem.startswith(f"{path}:")
    assert (found.key, found.min_resources, found.companions) == ("ns/pg", None, ())


@pytest.mark.parametrize("text", ["", "null", "[]", '{"a": 1}', "nonsense", "[" * 100_000])
def test_companion_nodes_that_are_no_map_count_as_none(text: str) -> None:
    assert pod_group_spec(pod_group({}, companion_nodes=text)).companion_nodes == {}


def queue(spec: dict[str, Any], status: dict[str, Any] | None = None) -> Queue:
    meta = {"name": "q", "creationTimestamp": CREATED}
    return msgspec.convert({"metadata": meta, "spec": spec, "status": status or {}}, type=Queue)


def test_a_queue_is_translated_whole() -> None:
    given = queue(
        {
            "weight": 3,
            "capability": {"cpu": "4", "nvidia.com/gpu": 0},
            "guarantee": {"resource": {"cpu": 1}},
            "deserved": {"memory": "1Ki"},
            "reclaimable": False,
            "parent": "root",
            "priority": 5,
        },
        {"state": "Closed", "allocated": {"cpu": "1500m"}},
    )
    assert queue_spec(given) == QueueSpec(
        name="q",
        weight=3,
        capability=Resources(4000, 0, {"nvidia.com/gpu": 0}),
        guarantee=Resources(1000),
        deserved=Resources(0, 1024),
        reclaimable=False,
        parent="root",
        state=QueueState.CLOSED,
        priority=5,
        creation=CREATED_SECONDS,
    )
    assert "nvidia.com/gpu" in queue_spec(given).capability.scalars, "a limit of zero is a limit"


STATES = {None: QueueState.OPEN, "": QueueState.OPEN, "Open": QueueState.OPEN, "Closing": QueueState.CLOSING}


@pytest.mark.parametrize(("state", "expected"), STATES.items())
def test_a_queue_without_a_state_is_open(state: str | None, expected: QueueState) -> None:
    found = queue_spec(queue({}, {} if state is None else {"state": state}))
    assert (found.state, found.weight, found.reclaimable) == (expected, 1, True)


BAD_QUEUES: list[tuple[str, dict[str, Any]]] = [
    ("spec.capability[cpu]", {"capability": {"cpu": "all"}}),
    ("spec.guarantee.resource[cpu]", {"guarantee": {"resource": {"cpu": "-1"}}}),
    ("spec.deserved[memory]", {"deserved": {"memory": "1GB/s"}}),
    ("spec.weight", {"weight": -1}),
    ("spec.weight", {"weight": 0}),
    ("spec.weight", {"weight": 65536}),
]


@pytest.mark.parametrize(("path", "spec"), BAD_QUEUES)
def test_a_queue_with_an_amount_that_is_none_has_that_field_as_its_problem(path: str, spec: dict[str, Any]) -> None:
    found = queue_spec(queue(spec))
    assert found.problem.startswith(f"{path}: ")
    assert (found.capability, found.guarantee, found.deserved) == (Resources(), Resources(), Resources())


def test_a_status_of_a_queue_that_can_not_be_read_is_no_fault_of_the_queue() -> None:
    found = queue_spec(queue({}, {"allocated": {"cpu": "much"}}))
    assert found == queue_spec(queue({}))


HIERARCHIES: dict[str, tuple[dict[str, str], tuple[str, ...], tuple[float, ...]]] = {
    "none": ({}, (), ()),
    "path and weights": (
        {"volcano.sh/hierarchy": "root/a/b", "volcano.sh/hierarchy-weights": "1/2/3.5"},
        ("root", "a", "b"),
        (1.0, 2.0, 3.5),
    ),
    "weights that are none": ({"volcano.sh/hierarchy-weights": "0/-1/x/nan/inf"}, (), (1.0, 1.0, 1.0, 1.0, 1.0)),
}


@pytest.mark.parametrize(("annotations", "path", "weights"), HIERARCHIES.values(), ids=HIERARCHIES.keys())
def test_a_queue_says_its_place_in_the_tree(
    annotations: dict[str, str], path: tuple[str, ...], weights: tuple[float, ...]
) -> None:
    given = msgspec.convert({"metadata": {"name": "q", "annotations": annotations}}, type=Queue)
    found = queue_spec(given)
    assert (found.hierarchy, found.hierarchy_weights) == (path, weights)


def test_a_priority_class_is_its_value() -> None:
    given = msgspec.convert({"metadata": {"name": "high"}, "value": 1000, "globalDefault": True}, type=PriorityClass)
    assert priority_class_spec(given) == PriorityClassSpec("high", 1000, True)


@pytest.mark.parametrize(
    ("annotations", "seconds"),
    [
        ({"sla-waiting-time": "1h2m3s"}, 3723.0),
        ({"volcano.sh/sla-waiting-time": "10m", "sla-waiting-time": "1h"}, 600.0),
        ({"volcano.sh/sla-waiting-time": "soon", "sla-waiting-time": "1.5h"}, 5400.0),
        ({"sla-waiting-time": "0s"}, None),
        ({"sla-waiting-time": "-5m"}, None),
        ({"sla-waiting-time": "90"}, None),
        ({}, None),
    ],
)
def test_a_gang_states_how_long_it_may_wait(annotations: dict[str, str], seconds: float | None) -> None:
    group = msgspec.convert({"metadata": {"name": "g", "annotations": annotations}}, type=PodGroup)
    assert pod_group_spec(group).sla_waiting_time == seconds


LEAST, MOST = "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable"


@pytest.mark.parametrize(
    ("annotations", "budget"),
    [
        ({}, None),
        ({LEAST: "3"}, DisruptionBudget(Portion(3))),
        ({MOST: "30%"}, DisruptionBudget(None, Portion(30, percent=True))),
        ({LEAST: "most"}, DisruptionBudget(Portion(100, percent=True))),
        ({MOST: "-1"}, DisruptionBudget(None, Portion(0))),
    ],
)
def test_a_gang_has_a_disruption_budget(annotations: dict[str, str], budget: DisruptionBudget | None) -> None:
    group = msgspec.convert({"metadata": {"name": "g", "annotations": annotations}}, type=PodGroup)
    assert pod_group_spec(group).budget == budget


@pytest.mark.parametrize(
    ("annotations", "labels", "preemptable"),
    [({}, {}, None), ({"volcano.sh/preemptable": "1"}, {}, True), ({}, {"volcano.sh/preemptable": "maybe"}, False)],
)
def test_a_gang_says_whether_it_may_be_preempted(
    annotations: dict[str, str], labels: dict[str, str], preemptable: bool | None
) -> None:
    metadata = {"name": "g", "annotations": annotations, "labels": labels}
    assert pod_group_spec(msgspec.convert({"metadata": metadata}, type=PodGroup)).preemptable is preemptable


@pytest.mark.parametrize(
    ("affinity", "groups"),
    [
        (None, None),
        ({}, NodeGroups()),
        ({"nodeGroupAffinity": None}, NodeGroups()),
        (
            {
                "nodeGroupAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": ["a"],
                    "preferredDuringSchedulingIgnoredDuringExecution": ["b", "c"],
                },
                "nodeGroupAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": ["d"],
                    "preferredDuringSchedulingIgnoredDuringExecution": ["e"],
                },
            },
            NodeGroups(("a",), ("b", "c"), ("d",), ("e",)),
        ),
    ],
)
def test_a_queue_names_groups_of_nodes(affinity: dict[str, Any] | None, groups: NodeGroups | None) -> None:
    found = msgspec.convert({"metadata": {"name": "q"}, "spec": {"affinity": affinity}}, type=Queue)
    assert queue_spec(found).node_groups == groups


TOPOLOGY = "volcano.sh/task-topology-"


@pytest.mark.parametrize(
    ("annotations", "topology"),
    [
        ({}, None),
        (
            {"affinity": "ps,worker;ps,chief", "anti-affinity": "ps;worker,chief", "task-order": "ps,worker,chief"},
            TaskTopology(
                (("ps", "worker"), ("ps", "chief")), (("ps",), ("worker", "chief")), ("ps", "worker", "chief")
            ),
        ),
        ({"affinity": "ps,worker;ps,,chief,;"}, TaskTopology((("ps", "worker"), ("ps", "chief")))),
        ({"anti-affinity": "ps,ps"}, None),
    ],
)
def test_a_gang_says_which_roles_share_nodes(annotations: dict[str, str], topology: TaskTopology | None) -> None:
    notes = {f"{TOPOLOGY}{key}": value for key, value in annotations.items()}
    group = msgspec.convert({"metadata": {"name": "g", "annotations": notes}}, type=PodGroup)
    assert pod_group_spec(group).topology == topology
