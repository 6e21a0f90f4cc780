"""Small RayClusters and RayJobs to apply."""

from __future__ import annotations

from typing import Any

Manifest = dict[str, Any]


def template(cpu: str = "1", **spec: Any) -> Manifest:
    """A pod template with one container."""
    container = {"name": "ray", "image": "rayproject/ray:2.52.0", "resources": {"requests": {"cpu": cpu}}}
    return {"spec": {"containers": [container], **spec}}


def worker_group(name: str = "workers", replicas: int = 2, **changes: Any) -> Manifest:
    """A worker group of so many one-pod replicas."""
    group = {"groupName": name, "replicas": replicas, "minReplicas": 0, "maxReplicas": 10, "template": template()}
    return {**group, **changes}


def cluster_spec(*groups: Manifest, **changes: Any) -> Manifest:
    """The spec of a cluster with these worker groups (by default one of two workers)."""
    return {
        "rayVersion": "2.52.0",
        "headGroupSpec": {"rayStartParams": {}, "template": template()},
        "workerGroupSpecs": [*groups] if groups else [worker_group()],
        **changes,
    }


def ray_cluster(name: str, *groups: Manifest, **spec: Any) -> Manifest:
    """A RayCluster."""
    metadata = {"name": name}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": metadata,
        "spec": cluster_spec(*groups, **spec),
    }


def ray_job(name: str, entrypoint: str = "succeed", *, labels: dict[str, str] | None = None, **spec: Any) -> Manifest:
    """A RayJob on a cluster of a head and two workers."""
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"entrypoint": entrypoint, "rayClusterSpec": cluster_spec(), **spec},
    }


def queue(name: str, **spec: Any) -> Manifest:
    """A Queue."""
    api_version = "scheduling.volcano.sh/v1beta1"
    return {"apiVersion": api_version, "kind": "Queue", "metadata": {"name": name}, "spec": {"weight": 1, **spec}}


def pod_group(name: str, **spec: Any) -> Manifest:
    """A PodGroup."""
    api_version = "scheduling.volcano.sh/v1beta1"
    return {"apiVersion": api_version, "kind": "PodGroup", "metadata": {"name": name}, "spec": {"minMember": 1, **spec}}
