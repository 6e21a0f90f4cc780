"""What is applied: a RayCluster of three pods, and a RayJob with such a cluster."""

from __future__ import annotations

from typing import Any

WORKERS = 2
PODS_EACH = 1 + WORKERS
_RAY_VERSION = "2.52.0"


def ray_cluster(name: str) -> dict[str, Any]:
    """A RayCluster."""
    return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": name}, "spec": _cluster_spec(None)}


def ray_job(name: str, dashboard_port: int) -> dict[str, Any]:
    """A RayJob in HTTPMode whose head serves its dashboard on this port. Its cluster stays when it has ended."""
    spec = {
        "submissionMode": "HTTPMode",
        "entrypoint": "python job.py",
        "rayClusterSpec": _cluster_spec(dashboard_port),
    }
    return {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": name}, "spec": spec}


def pod_spec(name: str) -> dict[str, Any]:
    """The spec of a pod of either, as its user writes it; `name` is the container's."""
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
    return {"containers": [{"name": name, "image": f"rayproject/ray:{_RAY_VERSION}", "resources": resources}]}


def _cluster_spec(dashboard_port: int | None) -> dict[str, Any]:
    head = pod_spec("ray-head")
    if dashboard_port is not None:
        head["containers"][0]["ports"] = [{"name": "dashboard", "containerPort": dashboard_port}]
    workers = {
        "groupName": "workers",
        "replicas": WORKERS,
        "minReplicas": WORKERS,
        "maxReplicas": WORKERS,
        "rayStartParams": {},
        "template": {"spec": pod_spec("ray-worker")},
    }
    return {
        "rayVersion": _RAY_VERSION,
        "headGroupSpec": {"rayStartParams": {}, "template": {"spec": head}},
        "workerGroupSpecs": [workers],
    }
