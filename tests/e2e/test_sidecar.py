"""SidecarMode: the job is submitted from inside the head pod, and there is no submitter Job."""

from __future__ import annotations

import pytest

from tests.e2e.api import Api
from tests.e2e.rayjobs import head_pod, wait_for_deployment_status
from tests.e2e.target import Target
from tests.e2e.workloads import ray_job

pytestmark = pytest.mark.node


@pytest.mark.parametrize(("exit_code", "outcome"), [(0, ("Complete", "SUCCEEDED")), (3, ("Failed", "FAILED"))])
def test_a_job_is_submitted_from_the_head_pod(
    api: Api, target: Target, namespace: str, exit_code: int, outcome: tuple[str, str]
) -> None:
    job = ray_job(
        "beside",
        namespace,
        ray_image=target.ray_image,
        entrypoint=f"python -c 'raise SystemExit({exit_code})'",
        workers=1,
        submissionMode="SidecarMode",
        shutdownAfterJobFinishes=False,
    )
    api.apply([job])

    state, ray_says = outcome
    assert wait_for_deployment_status(api, "beside", namespace, state, within=300)["jobStatus"] == ray_says
    assert api.list("Job", namespace) == []
    head = head_pod(api, "beside", namespace)
    assert head is not None
    assert "ray-job-submitter" in [container["name"] for container in head["spec"]["containers"]]
