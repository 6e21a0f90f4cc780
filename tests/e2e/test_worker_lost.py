"""A worker is killed while its job runs: it is replaced in its gang, and Ray goes on."""

from __future__ import annotations

import pytest

from tests.e2e.api import Api, Manifest, wait_until
from tests.e2e.rayjobs import gang_pods, status_of, wait_for_deployment_status
from tests.e2e.target import Target
from tests.e2e.workloads import ray_job

pytestmark = pytest.mark.node

# The task runs on a worker, since the head offers no CPU; Ray starts it again elsewhere when its worker is gone.
PROGRAM = """
import time, ray
ray.init()
@ray.remote(num_cpus=1, max_retries=5)
def work():
    time.sleep(20)
    return "done"
print(ray.get(work.remote()))
"""


@pytest.mark.long
def test_a_worker_that_is_killed_is_replaced_and_the_job_succeeds(api: Api, target: Target, namespace: str) -> None:
    job = ray_job("tough", namespace, ray_image=target.ray_image, entrypoint=f"python -c '{PROGRAM}'", workers=1)
    job["spec"]["rayClusterSpec"]["headGroupSpec"]["rayStartParams"]["num-cpus"] = "0"
    api.apply([job])
    wait_until(lambda: status_of(api, "tough", namespace).get("jobStatus") == "RUNNING", "the job runs", within=300)
    (worker,) = workers(api, namespace)

    api.delete("Pod", worker["metadata"]["name"], namespace, gracePeriodSeconds=0)

    def replaced() -> Manifest | None:
        others = [pod for pod in workers(api, namespace) if pod["metadata"]["uid"] != worker["metadata"]["uid"]]
        return next((pod for pod in others if pod["spec"].get("nodeName")), None)

    wait_until(replaced, "another worker has a node", within=90)
    assert wait_for_deployment_status(api, "tough", namespace, "Complete", within=300)["jobStatus"] == "SUCCEEDED"


def workers(api: Api, namespace: str) -> list[Manifest]:
    """The workers that are not on their way out."""
    return [
        pod
        for pod in gang_pods(api, "tough", namespace)
        if pod["metadata"]["labels"].get("ray.io/node-type") == "worker"
        and not pod["metadata"].get("deletionTimestamp")
    ]
