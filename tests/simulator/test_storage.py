"""Volumes, namespaces, affinity and ports in manifests."""

from __future__ import annotations

from typing import Any

from tests.simulator.conftest import Simulate, bound
from tests.simulator.manifests import Manifest, node, pod, pod_group

DATA = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}, "namespaceSelector": {}}
        ]
    }
}


def labelled(made: Manifest, **labels: str) -> Manifest:
    made["metadata"]["labels"] = labels
    return made


def claim(**spec: Any) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {"storageClassName": "late", "resources": {"requests": {"storage": "1Gi"}}, **spec},
    }


def storage_class(mode: str) -> Manifest:
    zones = [{"matchLabelExpressions": [{"key": "zone", "values": ["b"]}]}]
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "late"},
        "provisioner": "csi.example",
        "volumeBindingMode": mode,
        "allowedTopologies": zones,
    }


NODES = [labelled(node("n1"), zone="a"), labelled(node("n2", cpu=2), zone="b")]


def test_a_late_volume_takes_its_pod_where_it_can_be_made(simulate: Simulate) -> None:
    objects = [*NODES, claim(), storage_class("WaitForFirstConsumer"), pod_group("g"), pod("p", "g", volumes=DATA)]
    assert bound(simulate(*objects)[0]) == {"p": "n2"}


def test_a_claim_that_is_not_bound_is_no_lack_of_nodes(simulate: Simulate) -> None:
    objects = [*NODES, claim(), storage_class("Immediate"), pod_group("g"), pod("p", "g", volumes=DATA)]
    [document] = simulate(*objects)
    reason = document["podGroups"]["default/g"]["reason"]
    assert (reason["code"], reason["class"]) == ("VolumeNotReady", "incomplete")
    assert document["pods"]["default/p"]["podScheduled"]["reason"] == ""


def test_without_any_storage_claims_are_passed_over(simulate: Simulate) -> None:
    assert bound(simulate(*NODES, pod_group("g"), pod("p", "g", volumes=DATA))[0])


def test_affinity_and_ports_are_read_as_kubernetes_writes_them(simulate: Simulate) -> None:
    other = labelled(pod("x", node="n1", scheduler="default-scheduler"), app="web")
    apart = labelled(pod("p", "g", affinity=APART), app="web")
    assert bound(simulate(*NODES, other, pod_group("g"), apart)[0]) == {"p": "n2"}
    server = pod("s", "h", hostNetwork=True)
    server["spec"]["containers"][0]["ports"] = [{"containerPort": 80}]
    taken = pod("t", node="n1", scheduler="default-scheduler")
    taken["spec"]["containers"][0]["ports"] = [{"containerPort": 8080, "hostPort": 80}]
    assert bound(simulate(*NODES, taken, pod_group("h"), server)[0]) == {"s": "n2"}
