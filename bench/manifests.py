"""The objects of a scenario, as whoever runs gangs would make them for the system that is measured."""

from __future__ import annotations

import uuid
from typing import Any

from bench.systems import System

GANG = "bench.muster.dev/gang"
"""The label by which the benchmark itself knows a pod's gang, whatever the system goes by."""

GIB_FOR_EACH_CPU = 4
_POD_GIB = 1


def node(name: str, cpu: int) -> dict[str, Any]:
    """A node that is ready, with so many CPU."""
    amounts = {"cpu": str(cpu), "memory": f"{cpu * GIB_FOR_EACH_CPU}Gi", "pods": "110"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]},
    }


def pod(name: str, *, cpu: str = "1", gib: int = _POD_GIB) -> dict[str, Any]:
    """A pod that belongs to no gang and names no scheduler yet."""
    requests = {"cpu": cpu, "memory": f"{gib}Gi"}
    container = {"name": "main", "image": "none", "resources": {"requests": requests}}
    spec = {"containers": [container], "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 0}
    return {"metadata": {"name": name}, "spec": spec}


def running_pod(name: str, node_name: str) -> dict[str, Any]:
    """A pod that somebody else has bound."""
    body = pod(name)
    body["spec"] |= {"nodeName": node_name, "schedulerName": "somebody-else"}
    return body


def gang_pod(system: System, gang: str, index: int, *, cpu: int | None = None) -> dict[str, Any]:
    """A member of a gang, for this system; of `cpu` CPU, or of the usual size."""
    name = f"{gang}-{index}"
    body = pod(name) if cpu is None else pod(name, cpu=str(cpu), gib=cpu)
    body["metadata"]["labels"] = {GANG: gang}
    body["spec"]["schedulerName"] = system.scheduler_name
    if system.gate:
        body["spec"]["schedulingGates"] = [{"name": system.gate}]
    if system.grouping is not None and system.grouping.annotation:
        body["metadata"]["annotations"] = {system.grouping.annotation: gang}
    if system.grouping is not None and system.grouping.label:
        body["metadata"]["labels"][system.grouping.label] = gang
    if system.controlled:
        body["metadata"]["ownerReferences"] = [_controller(gang)]
    return body


def pod_group(system: System, gang: str, size: int, *, with_resources: bool = True) -> dict[str, Any]:
    """The PodGroup of a gang of pods of the usual size, all of which it needs, for a system that has such."""
    assert system.grouping is not None
    spec: dict[str, Any] = {"minMember": size}
    if with_resources:
        spec["minResources"] = {"cpu": str(size), "memory": f"{size * _POD_GIB}Gi"}
    metadata: dict[str, Any] = {"name": gang}
    if system.controlled:
        metadata["ownerReferences"] = [_controller(gang)]
    return {
        "apiVersion": system.grouping.api_version,
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": spec,
        "status": {"phase": "Pending"},
    }


def _controller(gang: str) -> dict[str, Any]:
    """A RayCluster that there need not be: nothing collects garbage here."""
    uid = str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{gang}.bench.muster.dev"))
    about = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": gang, "uid": uid}
    return {**about, "controller": True, "blockOwnerDeletion": True}
