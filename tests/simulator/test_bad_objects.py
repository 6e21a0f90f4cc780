"""Objects that no scheduler can use as they are: who is concerned is told why, and nobody else waits."""

from __future__ import annotations

from typing import Any

import pytest

from muster.scheduler.conf import DEFAULT, SchedulerConfiguration
from muster.simulator.input_error import Place
from muster.simulator.manifests import read_manifests
from muster.simulator.model import build_model
from muster.simulator.report import cycle_document
from muster.simulator.simulation import Pace, Simulation
from muster.simulator.sources import Document
from muster.testing import configuration, plugin
from tests.simulator.conftest import NOW
from tests.simulator.manifests import Manifest, node, pod, pod_group, queue

HIERARCHY = configuration(
    "enqueue, allocate, backfill",
    ["priority", "gang"],
    ["predicates", plugin("capacity", enableHierarchy=True), "nodeorder"],
)
CONFIGURATIONS = pytest.mark.parametrize("conf", [DEFAULT, HIERARCHY], ids=["flat", "hierarchy"])
HUGE = "9" * 40


def decided(conf: SchedulerConfiguration, *objects: Manifest) -> dict[str, Any]:
    """A cycle of a cluster with these objects, read from its API server, beside an honest gang that is placed."""
    honest = [node("n1"), node("n2"), queue("fine"), pod_group("fine", 2, queue="fine", phase="Pending")]
    everything = [*honest, pod("f1", "fine"), pod("f2", "fine"), *objects]
    documents = [Document(Place("cluster", number, observed=True), each) for number, each in enumerate(everything, 1)]
    model = build_model(read_manifests(documents), ("muster",))
    simulation = Simulation(model, conf, Pace(NOW))
    found = cycle_document(simulation.cycle(), model.cache, simulation.inquiry())
    assert {"default/f1", "default/f2"} <= {each["pod"] for each in found["bindings"]}, "no other queue stops"
    return found


QUEUES: dict[str, tuple[list[Manifest], str]] = {
    "a negative cap": ([queue("q", capability={"cpu": "-1"})], "spec.capability[cpu]: '-1' is negative"),
    "a cap that is none": ([queue("q", capability={"cpu": "abc"})], "spec.capability[cpu]: 'abc' is not a quantity"),
    "an empty cap": ([queue("q", capability={"cpu": ""})], "spec.capability[cpu]: '' is not a quantity"),
    "a negative guarantee": ([queue("q", guarantee={"resource": {"cpu": -1}})], "spec.guarantee.resource[cpu]"),
    "a negative share": ([queue("q", deserved={"memory": "-1Gi"})], "spec.deserved[memory]"),
    "a guarantee above its own cap": (
        [queue("q", guarantee={"resource": {"memory": "2Gi"}}, capability={"memory": "1Gi"})],
        "spec.guarantee.resource[memory]: 2Gi is more than the 1Gi that the queue may use (spec.capability[memory])",
    ),
    "a weight of 0": ([queue("q", weight=0)], "spec.weight: 0 is less than 1"),
    "a negative weight": ([queue("q", weight=-1)], "spec.weight: -1 is less than 1"),
    "an enormous weight": ([queue("q", weight=2**63)], "spec.weight: 9223372036854775808 is more than 65535"),
    "its own parent": ([queue("q", parent="q")], "it is its own parent"),
    "a circle of parents": (
        [queue("q", parent="a"), queue("a", parent="b"), queue("b", parent="q")],
        "its parents go round in a circle (q - a - b - q)",
    ),
    "a parent that is missing": ([queue("q", parent="nowhere")], "its parent nowhere does not exist"),
    "a parent that guarantees more than it has": (
        [
            queue("p", guarantee={"resource": {"cpu": "2"}}),
            queue("q", parent="p", guarantee={"resource": {"cpu": "3"}}),
        ],
        "its children are promised more than it has (guaranteed: cpu 3 of 2)",
    ),
    "a parent whose children deserve more than it does": (
        [queue("p", deserved={"cpu": "2"}), queue("q", parent="p", deserved={"cpu": "3"})],
        "its children are promised more than it has (deserved: cpu 3 of 2)",
    ),
}


@CONFIGURATIONS
@pytest.mark.parametrize("case", QUEUES)
def test_a_queue_that_can_not_be_used_says_so_and_so_do_its_gangs(case: str, conf: SchedulerConfiguration) -> None:
    queues, problem = QUEUES[case]
    found = decided(conf, *queues, pod_group("g", 1, queue="q", phase="Pending"), pod("p", "g"))
    waits = found["podGroups"]["default/g"]["reason"]
    assert waits["code"] == "QueueBroken"
    assert problem in waits["message"]
    assert found["queues"]["q"]["problem"]["message"] == waits["message"]


@CONFIGURATIONS
def test_a_queue_that_can_not_be_used_is_guaranteed_nothing(conf: SchedulerConfiguration) -> None:
    promise = {"resource": {"cpu": "300"}}
    queues = [queue("p", guarantee={"resource": {"cpu": "2"}}), queue("q", parent="p", guarantee=promise)]
    found = decided(conf, *queues, pod_group("g", 1, queue="q", phase="Pending"), pod("p", "g"))
    deserved = found["queues"]["q"]["deserved"]
    assert deserved is None or deserved["cpu"] == "0"


AMOUNTS: dict[str, tuple[dict[str, Any], str | None]] = {
    "no minimum": ({"minMember": 0}, None),
    "a minimum of null": ({"minMember": None}, None),
    "a negative minimum": ({"minMember": -1}, "InvalidPodGroup"),
    "a minimum larger than the number of pods": ({"minMember": 3}, "NotEnoughPods"),
    "an enormous minimum": ({"minMember": 10**30}, "NotEnoughPods"),
    "negative resources": ({"minMember": 1, "minResources": {"cpu": "-1"}}, "InvalidPodGroup"),
    "resources that are none": ({"minMember": 1, "minResources": {"cpu": "abc"}}, "InvalidPodGroup"),
    "enormous resources": ({"minMember": 1, "minResources": {"cpu": HUGE}}, "LargerThanCluster"),
    "a negative minimum of a role": ({"minMember": 1, "minTaskMember": {"a": -1}}, "InvalidPodGroup"),
    "a role without pods": ({"minMember": 1, "minTaskMember": {"a": 1}}, "NotEnoughPodsOfRole"),
}


@CONFIGURATIONS
@pytest.mark.parametrize("case", AMOUNTS)
def test_a_gang_that_asks_for_what_can_not_be_waits_with_that_reason(case: str, conf: SchedulerConfiguration) -> None:
    spec, code = AMOUNTS[case]
    group = {**pod_group("g", phase="Pending"), "spec": {"queue": "default", **spec}}
    found = decided(conf, group, pod("p1", "g"), pod("p2", "g"))
    reason = found["podGroups"]["default/g"]["reason"]
    assert (reason["code"] if reason is not None else None) == code


@CONFIGURATIONS
@pytest.mark.parametrize(("cpu", "code"), [(HUGE, "LargerThanCluster"), ("1e30", "LargerThanCluster"), ("0", None)])
def test_a_pod_may_ask_for_any_amount(cpu: str, code: str | None, conf: SchedulerConfiguration) -> None:
    found = decided(conf, pod_group("g", 1, phase="Pending"), pod("p", "g", cpu))
    reason = found["podGroups"]["default/g"]["reason"]
    assert (reason["code"] if reason is not None else None) == code


@CONFIGURATIONS
@pytest.mark.parametrize("cpu", ["-1", "abc", HUGE, "0", None])
def test_a_node_with_an_amount_that_can_not_be_keeps_nobody_waiting(
    cpu: str | None, conf: SchedulerConfiguration
) -> None:
    bad = node("bad")
    bad["status"]["allocatable"]["cpu"] = cpu
    decided(conf, bad)
