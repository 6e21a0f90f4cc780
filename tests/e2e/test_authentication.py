"""A cluster that asks for a token: Muster and the cluster's own nodes have it, and nobody else is answered."""

from __future__ import annotations

import pytest

from tests.e2e.api import Api
from tests.e2e.rayjobs import head_pod, wait_for_deployment_status
from tests.e2e.target import Target
from tests.e2e.workloads import ray_job

pytestmark = pytest.mark.node


@pytest.mark.parametrize("mode", ["HTTPMode", "K8sJobMode"])
def test_a_job_runs_on_a_cluster_that_asks_for_a_token(api: Api, target: Target, namespace: str, mode: str) -> None:
    job = ray_job(
        "guarded",
        namespace,
        ray_image=target.ray_image,
        entrypoint='python -c "import ray; ray.init(); print(ray.get(ray.remote(lambda: 6 * 7).remote()))"',
        workers=1,
        submissionMode=mode,
        shutdownAfterJobFinishes=False,
    )
    job["spec"]["rayClusterSpec"]["authOptions"] = {"mode": "token"}
    api.apply([job])

    assert wait_for_deployment_status(api, "guarded", namespace, "Complete", within=300)["jobStatus"] == "SUCCEEDED"

    head = head_pod(api, "guarded", namespace)
    assert head is not None
    status, _ = api.dashboard("get", head, "/api/jobs/")
    assert status in (401, 403)
