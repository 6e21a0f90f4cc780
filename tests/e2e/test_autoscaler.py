"""Ray's own autoscaler: a worker comes for a task, under the queue's quota, and goes when it is idle."""

from __future__ import annotations

import pytest

from tests.e2e.api import Api, wait_until
from tests.e2e.observer import Observer
from tests.e2e.rayjobs import status_of, wait_for_deployment_status
from tests.e2e.target import Target
from tests.e2e.workloads import ray_job

pytestmark = pytest.mark.node

# The head offers no CPU: the task needs a worker, and there is none at first.
PROGRAM = """
import time, ray
ray.init()
@ray.remote(num_cpus=1)
def work():
    return "worked"
print(ray.get(work.remote()))
end = time.monotonic() + 150
while time.monotonic() < end and sum(node["Alive"] for node in ray.nodes()) > 1:
    time.sleep(1)
assert sum(node["Alive"] for node in ray.nodes()) == 1, ray.nodes()
"""


@pytest.mark.long
def test_a_group_grows_for_a_task_and_shrinks_when_idle(
    api: Api, target: Target, namespace: str, observer: Observer
) -> None:
    job = ray_job("elastic", namespace, ray_image=target.ray_image, entrypoint=f"python -c '{PROGRAM}'", workers=0)
    cluster = job["spec"]["rayClusterSpec"]
    cluster["enableInTreeAutoscaling"] = True
    cluster["autoscalerOptions"] = {
        "version": "v2",
        "idleTimeoutSeconds": 5,
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}},
    }
    cluster["headGroupSpec"]["rayStartParams"]["num-cpus"] = "0"
    cluster["workerGroupSpecs"][0] |= {"minReplicas": 0, "maxReplicas": 2}
    api.apply([job])
    wait_until(lambda: status_of(api, "elastic", namespace).get("jobStatus") == "RUNNING", "the job runs", within=300)

    status = wait_for_deployment_status(api, "elastic", namespace, "Complete", within=400)

    assert status["jobStatus"] == "SUCCEEDED"
    placed = [s.object["metadata"] for s in observer.of("Pod") if s.object["spec"].get("nodeName")]
    assert "worker" in {(meta.get("labels") or {}).get("ray.io/node-type") for meta in placed}
    assert observer.phases("ray-elastic-pg")[-1:] != ["Unknown"]
