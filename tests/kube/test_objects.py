"""Objects as they come over the wire."""

from __future__ import annotations

import gc
from typing import Any

import msgspec
import pytest

from muster.kube.objects import Job, Node, Pod, PodGroup, PriorityClass, Queue, Service

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "ns", "uid": "u", "resourceVersion": "7", "managedFields": [{"x": 1}]},
    "spec": {
        "schedulerName": "muster",
        "schedulingGates": [{"name": "muster.dev/gang"}],
        "initContainers": [{"name": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": 1}}}],
        "containers": [
            {"name": "c", "resources": {"limits": {"memory": "1Gi"}}, "ports": [{"containerPort": 1, "hostPort": 2}]}
        ],
        "overhead": {"cpu": "10m"},
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}]
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "preference": {}}],
            },
            "podAffinity": {},
        },
        "tolerations": [{"operator": "Exists", "tolerationSeconds": 3}],
    },
    "status": {
        "podIP": "10.0.0.1",
        "hostIP": "10.0.0.2",
        "conditions": [{"type": "PodScheduled", "status": "False", "lastProbeTime": None}],
        "containerStatuses": [{"name": "c", "ready": True, "state": {"terminated": {"exitCode": 137}}}],
    },
}


def test_a_pod_holds_what_is_read_of_it() -> None:
    pod = msgspec.convert(POD, Pod)
    assert pod.key == "ns/p"
    assert pod.spec.init_containers[0].resources.requests == {"cpu": 1}
    assert pod.spec.containers[0].ports[0].host_port == 2
    assert pod.spec.affinity is not None
    assert pod.spec.affinity.node_affinity is not None
    assert pod.spec.affinity.node_affinity.required is not None
    assert pod.spec.affinity.node_affinity.required.node_selector_terms[0].match_expressions[0].values == ["v"]
    assert pod.spec.affinity.node_affinity.preferred[0].weight == 5
    assert (pod.status.pod_ip, pod.status.host_ip) == ("10.0.0.1", "10.0.0.2")
    terminated = pod.status.container_statuses[0].state.terminated
    assert terminated is not None
    assert terminated.exit_code == 137


@pytest.mark.parametrize("kind", [Pod, Node, Service, Job, PodGroup, Queue, PriorityClass])
def test_an_object_may_lack_everything_but_its_name(kind: type[Pod]) -> None:
    found = msgspec.json.decode(b'{"metadata": {"name": "x"}}', type=kind)
    assert found.key == "x"


def test_absent_and_empty_limits_of_a_queue_differ() -> None:
    unlimited = msgspec.convert({"metadata": {"name": "q"}, "spec": {}}, Queue)
    nothing = msgspec.convert({"metadata": {"name": "q"}, "spec": {"capability": {}}}, Queue)
    assert (unlimited.spec.capability, nothing.spec.capability) == (None, {})


@pytest.mark.parametrize(
    ("kind", "wrong", "path"),
    [
        (Pod, {"spec": {"priority": "high"}}, "spec.priority"),
        (Pod, {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": []}}}]}}, "requests"),
        (PodGroup, {"spec": {"minTaskMember": {"head": "one"}}}, "spec.minTaskMember"),
        (Queue, {"spec": {"weight": 1.5}}, "spec.weight"),
        (Node, {"status": {"allocatable": "all"}}, "status.allocatable"),
    ],
)
def test_a_wrong_type_is_refused_with_its_path(kind: type[Pod], wrong: dict[str, Any], path: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=path):
        msgspec.json.decode(msgspec.json.encode({"metadata": {"name": "x"}, **wrong}), type=kind)


def test_the_garbage_collector_does_not_go_through_the_objects() -> None:
    pod = msgspec.convert(POD, Pod)
    assert not any(gc.is_tracked(part) for part in (pod, pod.metadata, pod.spec, pod.spec.containers[0], pod.status))
