"""InteractiveMode: Muster brings the cluster up, a user submits the job and says which it is."""

from __future__ import annotations

import pytest

from tests.e2e.api import Api
from tests.e2e.rayjobs import head_pod, wait_for_deployment_status
from tests.e2e.target import Target
from tests.e2e.workloads import ray_job

pytestmark = pytest.mark.node


def test_a_job_that_its_user_submits_is_followed_to_its_end(api: Api, target: Target, namespace: str) -> None:
    job = ray_job("mine", namespace, ray_image=target.ray_image, entrypoint="", submissionMode="InteractiveMode")
    api.apply([job])
    wait_for_deployment_status(api, "mine", namespace, "Waiting", within=300)
    head = head_pod(api, "mine", namespace)
    assert head is not None

    body = {"entrypoint": "python -c \"print('by hand')\"", "submission_id": "by-hand-1"}
    assert api.dashboard("post", head, "/api/jobs/", body)[0] == 200
    api.merge_patch("RayJob", "mine", namespace, {"spec": {"jobId": "by-hand-1"}})

    status = wait_for_deployment_status(api, "mine", namespace, "Complete", within=120)
    assert (status["jobStatus"], status["jobId"]) == ("SUCCEEDED", "by-hand-1")
    assert api.list("Job", namespace) == []
