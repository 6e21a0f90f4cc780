"""A program that fails: the RayJob says so, with the reason, and the submitter's exit status repeats it."""

from __future__ import annotations

import pytest

from tests.e2e.api import Api
from tests.e2e.rayjobs import wait_for_deployment_status, wait_for_exit_codes
from tests.e2e.target import Target
from tests.e2e.workloads import ray_job

pytestmark = pytest.mark.node


def test_a_failing_entrypoint_fails_the_job_and_the_submitter(api: Api, target: Target, namespace: str) -> None:
    entrypoint = "python -c \"import sys; print('about to fail'); sys.exit(3)\""
    api.apply([ray_job("failing", namespace, ray_image=target.ray_image, entrypoint=entrypoint)])

    status = wait_for_deployment_status(api, "failing", namespace, "Failed", within=300)

    assert status["jobStatus"] == "FAILED"
    assert status["reason"] == "AppFailed"
    assert status["message"]
    codes = wait_for_exit_codes(api, "failing", namespace, within=60)
    assert all(code != 0 for code in codes)
