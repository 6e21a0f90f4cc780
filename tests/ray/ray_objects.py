"""Builders of the objects that the tests of this folder work on: one line a case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.api.raycluster import RayCluster
from muster.api.rayjob import RayJob
from muster.kube import objects
from muster.ray import labels

Document = dict[str, Any]


def template(
    *, metadata: Mapping[str, Any] | None = None, spec: Mapping[str, Any] | None = None, **container: Any
) -> Document:
    """A pod template with one container, which has the given fields."""
    first = {"name": "ray", "image": "ray:2.60.0", **container}
    return {"metadata": dict(metadata or {}), "spec": {"containers": [first], **(spec or {})}}


def limits(**amounts: str | int) -> Document:
    """The resources field of a container with these limits."""
    return {"limits": amounts}


def worker_group(name: str = "small", **fields: Any) -> Document:
    """A worker group with one replica."""
    return {"groupName": name, "replicas": 1, "minReplicas": 0, "maxReplicas": 9, "template": template(), **fields}


def ray_cluster(
    *,
    name: str = "demo",
    head: Mapping[str, Any] | None = None,
    workers: list[Document] | None = None,
    metadata: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> RayCluster:
    """A RayCluster in namespace `default` with uid `uid-1` and generation 3."""
    document: Document = {
        "metadata": {"name": name, "namespace": "default", "uid": "uid-1", "generation": 3, **(metadata or {})},
        "spec": {"headGroupSpec": {"template": template(), **(head or {})}, "workerGroupSpecs": workers or [], **spec},
    }
    if status is not None:
        document["status"] = dict(status)
    return RayCluster.parse(document)


def ray_job(**spec: Any) -> RayJob:
    """RayJob `default/job` with uid `uid-2`."""
    return RayJob.parse({"metadata": {"name": "job", "namespace": "default", "uid": "uid-2"}, "spec": spec})


def pod(
    node_type: str = labels.WORKER,
    *,
    name: str = "pod-1",
    phase: str = "Running",
    ready: str | None = "True",
    ip: str | None = "10.0.0.1",
    terminating: bool = False,
    restart_policy: str = "Always",
    ready_reason: str | None = None,
    ready_message: str | None = None,
    set_up: str | None = None,
    containers: list[objects.ContainerStatus] | None = None,
) -> objects.Pod:
    """A pod as the informer has it; its Ray container is `ray`."""
    condition = objects.Condition(type="Ready", status=ready or "", reason=ready_reason, message=ready_message)
    volumes_and_network = [objects.Condition(type="PodReadyToStartContainers", status=set_up)] if set_up else []
    return objects.Pod(
        metadata=objects.ObjectMeta(
            name=name,
            labels={labels.CLUSTER: "demo", labels.NODE_TYPE: node_type},
            deletion_timestamp="2026-01-01T00:00:00Z" if terminating else None,
        ),
        spec=objects.PodSpec(containers=[objects.Container(name="ray")], restart_policy=restart_policy),
        status=objects.PodStatus(
            phase=phase,
            pod_ip=ip,
            conditions=[*([condition] if ready is not None else []), *volumes_and_network],
            container_statuses=containers or [],
        ),
    )


def head(**fields: Any) -> objects.Pod:
    """A head pod."""
    return pod(labels.HEAD, **{"name": "head-1", **fields})


def ended_container(name: str = "ray", reason: str = "Error") -> objects.ContainerStatus:
    """The status of a container that has ended with exit code 1."""
    ended = objects.ContainerStateTerminated(exit_code=1, reason=reason)
    return objects.ContainerStatus(name=name, state=objects.ContainerState(terminated=ended))


def waiting_container(reason: str, message: str | None = None, name: str = "ray") -> objects.ContainerStatus:
    """The status of a container that waits."""
    waiting = objects.ContainerStateWaiting(reason=reason, message=message)
    return objects.ContainerStatus(name=name, state=objects.ContainerState(waiting=waiting))
