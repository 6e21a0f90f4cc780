"""A head is killed and its cluster goes on: the control service's state is in a Redis."""

from __future__ import annotations

import base64

import pytest

from tests.e2e.api import Api, Manifest, wait_until
from tests.e2e.install import kubectl
from tests.e2e.rayjobs import head_pod, status_of, wait_for_deployment_status
from tests.e2e.target import Target
from tests.e2e.workloads import ray_job

pytestmark = pytest.mark.node

PASSWORD = "not-in-any-manifest-of-ours"

# The driver runs on a worker (the entrypoint asks for a CPU and the head offers none), and so does the task, which is
# started only when there is a new head.
PROGRAM = """
import time, ray
ray.init()
@ray.remote(num_cpus=0)
def work():
    return "answered"
before = ray.get(work.remote())
end = time.monotonic() + 45
while time.monotonic() < end:
    time.sleep(1)
print(before, ray.get(work.remote()))
"""


@pytest.fixture
def redis(api: Api, target: Target, namespace: str) -> str:
    """Give the address of a Redis in the namespace, which asks for a password."""
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "redis", "namespace": namespace},
        "data": {"password": base64.b64encode(PASSWORD.encode()).decode()},
    }
    api.apply([secret, *redis_server(namespace, target.redis_image)])
    wait_until(lambda: is_ready(api.get("Pod", "redis", namespace)), "the Redis is ready", within=120)
    return "redis:6379"


@pytest.mark.long
def test_a_job_outlives_the_head_of_its_cluster_and_leaves_nothing_in_the_redis(
    api: Api, target: Target, namespace: str, redis: str
) -> None:
    job = ray_job(
        "immortal",
        namespace,
        ray_image=target.ray_image,
        entrypoint=f"python -c '{PROGRAM}'",
        workers=1,
        entrypointNumCpus=1,
    )
    cluster = job["spec"]["rayClusterSpec"]
    cluster["headGroupSpec"]["rayStartParams"]["num-cpus"] = "0"
    password = {"valueFrom": {"secretKeyRef": {"name": "redis", "key": "password"}}}
    cluster["gcsFaultToleranceOptions"] = {"redisAddress": redis, "redisPassword": password}
    api.apply([job])
    wait_until(lambda: status_of(api, "immortal", namespace).get("jobStatus") == "RUNNING", "the job runs", within=300)
    submission = status_of(api, "immortal", namespace)["jobId"]
    first = head_pod(api, "immortal", namespace)
    assert first is not None
    assert keys(target, namespace)

    api.delete("Pod", first["metadata"]["name"], namespace, gracePeriodSeconds=0)

    def another_head() -> bool:
        head = head_pod(api, "immortal", namespace)
        return head is not None and head["metadata"]["uid"] != first["metadata"]["uid"] and is_ready(head)

    wait_until(another_head, "another head is ready", within=180)
    status = wait_for_deployment_status(api, "immortal", namespace, "Complete", within=300)
    assert (status["jobStatus"], status["jobId"]) == ("SUCCEEDED", submission)

    wait_until(lambda: not api.list("RayCluster", namespace), "the cluster is gone", within=180)
    assert keys(target, namespace) == []


def redis_server(namespace: str, image: str) -> list[Manifest]:
    """A Redis without anything kept, and its service."""
    labels = {"app": "redis"}
    options = ("--bind", "0.0.0.0", "--save", "", "--dir", "/tmp", "--requirepass", "$(PASSWORD)")  # noqa: S104
    container = {
        "name": "redis",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["redis-server", *options],
        "env": [{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "redis", "key": "password"}}}],
        "readinessProbe": {"tcpSocket": {"port": 6379}, "periodSeconds": 1},
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "redis", "namespace": namespace, "labels": labels},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "redis", "namespace": namespace},
        "spec": {"selector": labels, "ports": [{"port": 6379}]},
    }
    return [pod, service]


def keys(target: Target, namespace: str) -> list[str]:
    """What is in the Redis."""
    ask = ("redis-cli", "--no-auth-warning", "-a", PASSWORD, "KEYS", "*")
    return kubectl(target, "--namespace", namespace, "exec", "redis", "--", *ask).split()


def is_ready(pod: Manifest | None) -> bool:
    """Whether a pod is there and ready."""
    conditions = ((pod or {}).get("status") or {}).get("conditions") or []
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
