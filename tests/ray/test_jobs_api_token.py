"""The Jobs API of a real Ray that asks for a token."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Iterator

import pytest

from muster.ray.job_info import JobStatus, Submission
from muster.ray.jobs_api import DashboardError, RayJobsClient
from tests.cluster.process import CommandFailedError
from tests.conftest import refuse
from tests.ray.local_ray import RayHead, installed_python, running_head

pytestmark = pytest.mark.ray

TOKEN = "bXVzdGVyLXRva2VuLW9mLXRoZS10ZXN0cy0wMTIzNDU2Nzg="
DEADLINE = 180.0


@pytest.fixture(scope="module")
def head_with_token() -> Iterator[RayHead]:
    try:
        installed_python()
    except CommandFailedError as error:
        refuse(f"Ray cannot be installed here: {error}")
    with running_head({"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN}) as head:
        yield head


@pytest.mark.parametrize("token", [None, "another"])
async def test_without_its_token_nothing_is_told_but_that_it_is_healthy(
    head_with_token: RayHead, token: str | None
) -> None:
    async with RayJobsClient(head_with_token.url, token, timeout=60) as client:
        await client.health()
        with pytest.raises(DashboardError) as refusal:
            await client.get("a-job")
    assert refusal.value.status in (401, 403)
    assert TOKEN not in str(refusal.value)


async def test_with_its_token_a_job_runs_to_its_end(head_with_token: RayHead) -> None:
    submission = Submission(submission_id=f"job-{uuid.uuid4().hex[:8]}", entrypoint="true")
    deadline = time.monotonic() + DEADLINE
    async with RayJobsClient(head_with_token.url, TOKEN, timeout=60) as client:
        await client.submit(submission)
        while not (job := await client.get(submission.submission_id)).status.terminal:
            assert time.monotonic() < deadline, f"still {job.status}"
            await asyncio.sleep(0.2)
    assert job.status is JobStatus.SUCCEEDED
