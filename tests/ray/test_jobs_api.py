"""The Jobs API client against a real Ray."""

from __future__ import annotations

import asyncio
import shlex
import sys
import time
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from muster.ray.job_info import JobInfo, JobStatus, Submission
from muster.ray.jobs_api import DashboardUnreachable, JobNotFound, RayJobsClient, SubmissionRefused
from tests.cluster.versions import RAY
from tests.ray.cutting_proxy import CuttingProxy
from tests.ray.local_ray import RayHead

DEADLINE = 180.0
"""Seconds; Ray starts several processes for each job, which takes its time on a busy machine."""


@pytest.fixture
async def client(ray_head: RayHead) -> AsyncIterator[RayJobsClient]:
    async with RayJobsClient(ray_head.url, timeout=60) as client:
        yield client


def new_id() -> str:
    return f"job-{uuid.uuid4().hex[:8]}"


def python(program: str) -> str:
    """An entrypoint that runs this program."""
    return f"{shlex.quote(sys.executable)} -c {shlex.quote(program)}"


async def reached(client: RayJobsClient, submission_id: str, *statuses: JobStatus) -> JobInfo:
    """Wait until the job has one of these statuses."""
    deadline = time.monotonic() + DEADLINE
    while (job := await client.get(submission_id)).status not in statuses:
        assert time.monotonic() < deadline, f"still {job.status}"
        await asyncio.sleep(0.2)
    return job


async def ended(client: RayJobsClient, submission_id: str) -> JobInfo:
    """Wait until the job has ended."""
    return await reached(client, submission_id, *(status for status in JobStatus if status.terminal))


async def test_the_dashboard_is_healthy_and_says_its_version(client: RayJobsClient) -> None:
    await client.health()
    assert (await client.version())["ray_version"] == RAY


async def test_a_job_runs_with_its_environment_and_ends(client: RayJobsClient) -> None:
    submission = Submission(
        new_id(), python("import os; print('got', os.environ['A'])"), {"env_vars": {"A": "$b"}}, {"k": "v"}
    )
    assert await client.submit(submission) == submission.submission_id
    job = await ended(client, submission.submission_id)
    assert job.status is JobStatus.SUCCEEDED
    assert job.submission_id == submission.submission_id
    assert job.driver_exit_code == 0
    assert job.start_time_ms is not None
    assert job.end_time_ms is not None
    assert abs(job.end_time_ms / 1000 - time.time()) < DEADLINE
    assert job.start_time_ms <= job.end_time_ms
    assert "got $b\n" in await client.logs(submission.submission_id)


async def test_a_job_that_exits_with_an_error_has_failed(client: RayJobsClient) -> None:
    submission_id = await client.submit(Submission(new_id(), "echo on no; exit 3"))
    job = await ended(client, submission_id)
    assert (job.status, job.driver_exit_code) == (JobStatus.FAILED, 3)
    assert "exit code 3" in job.message


async def test_submitting_twice_runs_the_job_once(client: RayJobsClient, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    submission = Submission(new_id(), f"echo x >> {ran}")
    assert [await client.submit(submission) for _ in range(3)] == [submission.submission_id] * 3
    await ended(client, submission.submission_id)
    assert await client.submit(submission) == submission.submission_id
    assert ran.read_text() == "x\n"


async def test_a_submission_whose_answer_is_lost_is_found_by_its_id(proxy: CuttingProxy, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    submission = Submission(new_id(), f"echo x >> {ran}")
    proxy.lose_next_answer = True
    async with RayJobsClient(f"http://{proxy.address}", timeout=60) as client:
        assert await client.submit(submission) == submission.submission_id
        await ended(client, submission.submission_id)
    assert proxy.answers_lost == 1
    assert ran.read_text() == "x\n"


async def test_a_submission_that_ray_finds_wrong_is_refused(client: RayJobsClient) -> None:
    with pytest.raises(SubmissionRefused, match="metadata values must be strings"):
        await client.submit(Submission(new_id(), "x", metadata={"a": 1}))  # type: ignore[dict-item]


async def test_a_job_that_is_not_there_is_not_found(client: RayJobsClient) -> None:
    for call in (client.get, client.stop, client.logs):
        with pytest.raises(JobNotFound, match="does not exist"):
            await call("no-such-job")


async def test_a_running_job_is_stopped_once(client: RayJobsClient) -> None:
    submission_id = await client.submit(Submission(new_id(), "sleep 600"))
    await reached(client, submission_id, JobStatus.RUNNING)
    assert await client.stop(submission_id) is True
    await reached(client, submission_id, JobStatus.STOPPED)
    # Ray calls it stopped a moment before what it ran in is gone.
    deadline = time.monotonic() + DEADLINE
    while await client.stop(submission_id):
        assert time.monotonic() < deadline, "it is stopped again and again"
        await asyncio.sleep(0.2)


async def test_the_stream_gives_the_whole_log_from_its_beginning_and_ends(client: RayJobsClient) -> None:
    submission_id = await client.submit(Submission(new_id(), "seq 3000; echo é"))
    pieces: list[str] = []
    await client.tail(submission_id, pieces.append)
    assert len(pieces) > 1
    assert "".join(pieces) == await client.logs(submission_id)
    # Ray itself writes a line or two into the log, at any time.
    printed = [line for line in "".join(pieces).splitlines() if line.isdecimal() or line == "é"]
    assert printed == [*(str(n) for n in range(1, 3001)), "é"]


async def test_a_stream_that_breaks_says_so(proxy: CuttingProxy) -> None:
    proxy.cut_streams = [2000]
    pieces: list[str] = []
    async with RayJobsClient(f"http://{proxy.address}", timeout=60) as client:
        submission_id = await client.submit(Submission(new_id(), "seq 3000; sleep 2"))
        with pytest.raises(DashboardUnreachable, match="log stream"):
            await client.tail(submission_id, pieces.append)
        assert 0 < len("".join(pieces)) < 2000
        await ended(client, submission_id)


async def test_a_dashboard_that_is_not_there_is_unreachable(proxy: CuttingProxy) -> None:
    await proxy.close()
    async with RayJobsClient(f"http://{proxy.address}", timeout=60) as client:
        with pytest.raises(DashboardUnreachable, match="GET /api/gcs_healthz"):
            await client.health()
        with pytest.raises(DashboardUnreachable):
            await client.submit(Submission(new_id(), "x"))
        with pytest.raises(DashboardUnreachable, match="log stream"):
            await client.tail("x", print)
