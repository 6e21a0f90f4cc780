"""The fake dashboards, asked in the ways in which both operators ask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from bench.controllers.running_heads import RunningHeads, running_heads
from muster.api.job_status import JobStatus
from muster.controllers.dashboard import Dashboard, PodDashboards
from muster.ray.job_info import Submission
from muster.ray.jobs_api import JobNotFound


@pytest.fixture(scope="module")
def heads(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningHeads]:
    """Give heads whose jobs run for ever."""
    with running_heads(tmp_path_factory.mktemp("heads"), 10_000) as found:
        yield found


def _dashboard(heads: RunningHeads, service: str, address: str) -> Dashboard:
    return Dashboard("bench", service, heads.port, head_ip=address)


async def test_muster_finds_a_head_at_the_address_of_its_pod(heads: RunningHeads) -> None:
    ways = PodDashboards()
    async with ways.connect(_dashboard(heads, "one", "127.131.7.9")) as client:
        await client.submit(Submission("a", "python job.py"))
        await client.submit(Submission("a", "python job.py"))  # is told that it is there already
        assert (await client.get("a")).status is JobStatus.RUNNING
    async with ways.connect(_dashboard(heads, "two", "127.200.0.1")) as client:
        with pytest.raises(JobNotFound):
            await client.get("a")


def test_kuberay_finds_the_same_head_by_the_name_of_its_service(heads: RunningHeads) -> None:
    body = {"submission_id": "k", "entrypoint": "python job.py"}
    with httpx.Client(proxy=heads.proxy["HTTP_PROXY"], trust_env=False) as through:
        url = f"http://svc.bench.svc.cluster.local:{heads.port}/api/jobs/"
        assert through.post(url, json=body).json() == {"job_id": "k", "submission_id": "k"}
        assert through.get(url + "k").json()["status"] == "RUNNING"
        again = through.post(url, json=body)
        assert (again.status_code, "Please use a different submission_id" in again.text) == (500, True)
        other = through.get(f"http://other.bench.svc.cluster.local:{heads.port}/api/jobs/k")
        assert other.status_code == 404
    host = {"Host": f"svc.bench.svc.cluster.local:{heads.port}"}
    straight = httpx.get(f"http://127.0.0.1:{heads.port}/api/jobs/k", headers=host, trust_env=False)
    assert straight.json()["submission_id"] == "k"


async def test_a_job_succeeds_when_its_time_is_over_and_all_is_counted(tmp_path: Path) -> None:
    with running_heads(tmp_path, 0) as found:
        async with PodDashboards().connect(_dashboard(found, "one", "127.0.0.1")) as client:
            await client.submit(Submission("a", "python job.py"))
            await client.submit(Submission("a", "python job.py"))
            seen = await client.get("a")
        counts = found.counts()
    assert seen.status is JobStatus.SUCCEEDED
    assert seen.start_time_ms == seen.end_time_ms
    assert (counts.taken, counts.again, counts.questions) == (1, 1, 2)
