"""RayJobs and Queues for the end-to-end tests: small, quick, and of a known size."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.api import Manifest

REPOSITORY = Path(__file__).resolve().parents[2]
SAMPLES = REPOSITORY / "manifests" / "samples"

# A readiness probe of our own makes a test some ten seconds shorter; a user's probe is kept as it is.
QUICK_PROBE = {
    "httpGet": {"path": "/api/healthz", "port": 52365},
    "initialDelaySeconds": 2,
    "periodSeconds": 1,
    "timeoutSeconds": 2,
    "failureThreshold": 60,
}


def sample(name: str, *, ray_image: str) -> list[Manifest]:
    """The documents of a sample, with the Ray image of this cluster."""
    documents = [d for d in yaml.safe_load_all((SAMPLES / name).read_text()) if d]
    for document in documents:
        replace_ray_image(document, ray_image)
    return documents


def replace_ray_image(node: Any, ray_image: str) -> None:
    """Puts `ray_image` wherever a document names a public Ray image."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "image" and isinstance(value, str) and value.startswith("rayproject/ray:"):
                node[key] = ray_image
            else:
                replace_ray_image(value, ray_image)
    elif isinstance(node, list):
        for value in node:
            replace_ray_image(value, ray_image)


def queue(name: str, *, cpu: str | None = None) -> Manifest:
    """A Queue, capped at so many CPUs where that is said."""
    spec: Manifest = {"weight": 1, "reclaimable": True}
    if cpu is not None:
        spec["capability"] = {"cpu": cpu}
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
    }


def ray_job(
    name: str,
    namespace: str,
    *,
    ray_image: str,
    entrypoint: str,
    queue_name: str = "default",
    workers: int = 2,
    head_cpu: str = "400m",
    worker_cpu: str = "250m",
    **spec: Any,
) -> Manifest:
    """A RayJob with a head and some workers; further keywords are fields of its spec."""
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": name, "namespace": namespace, "labels": {"volcano.sh/queue-name": queue_name}},
        "spec": {
            "entrypoint": entrypoint,
            "shutdownAfterJobFinishes": True,
            "rayClusterSpec": {
                "rayVersion": "2.60.0",
                "headGroupSpec": {
                    "rayStartParams": {**RAY_START_PARAMS, "disable-usage-stats": "true"},
                    "template": pod_template("ray-head", ray_image, cpu=head_cpu, memory="1Gi", limit="2Gi"),
                },
                "workerGroupSpecs": [
                    {
                        "groupName": "workers",
                        "replicas": workers,
                        "minReplicas": workers,
                        "maxReplicas": workers,
                        "rayStartParams": dict(RAY_START_PARAMS),
                        "template": pod_template("ray-worker", ray_image, cpu=worker_cpu, memory="384Mi", limit="1Gi"),
                    }
                ],
            },
            **spec,
        },
    }


RAY_START_PARAMS = {"num-cpus": "1", "object-store-memory": "80000000"}


def pod_template(container: str, image: str, *, cpu: str, memory: str, limit: str) -> Manifest:
    """A Ray pod of a known request, quick to stop."""
    return {
        "spec": {
            "terminationGracePeriodSeconds": 2,
            "containers": [
                {
                    "name": container,
                    "image": image,
                    "readinessProbe": copy.deepcopy(QUICK_PROBE),
                    "resources": {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": limit}},
                }
            ],
        }
    }
