"""`muster submit` as a process of its own, against a real Ray."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from muster.ray.job_info import JobStatus, Submission
from muster.ray.jobs_api import JobNotFound, RayJobsClient
from tests.ray.cutting_proxy import CuttingProxy
from tests.ray.local_ray import RayHead
from tests.ray.test_jobs_api import DEADLINE, ended, new_id, python

PROGRAM = """
import atexit, pathlib, re, sys
# Not getrusage: its peak is that of the process that this one was forked from, if that is larger.
status = pathlib.Path("/proc/self/status")
atexit.register(lambda: print("peak", re.search("VmHWM: *\\s+(\\d+)", status.read_text())[1], file=sys.stderr))
from muster.cli import main
main()
"""

LINES = 120
TALKATIVE = python(
    f"import time\nfor n in range({LINES}):\n    print(f'line {{n}} é', flush=True)\n    time.sleep(0.05)\n"
)
EVERY_LINE = [f"line {n} é" for n in range(LINES)]


@dataclass
class Ended:
    status: int
    output: str
    said: str

    @property
    def peak_memory(self) -> int:
        """KiB."""
        return int(self.said.rpartition("peak ")[2])

    @property
    def lines(self) -> list[str]:
        """What the program of the job printed, without what Ray puts before it."""
        return [line for line in self.output.splitlines() if line.startswith("line ")]


class Submitter:
    """A running `muster submit`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._said = bytearray()

    async def says(self, text: str) -> None:
        """Wait until it has said this on its standard error."""
        assert self.process.stderr is not None
        async with asyncio.timeout(DEADLINE):
            while text.encode() not in self._said:
                line = await self.process.stderr.readline()
                assert line, f"it ended without saying {text!r}: {self._said.decode()}"
                self._said += line

    async def ended(self) -> Ended:
        async with asyncio.timeout(DEADLINE):
            output, said = await self.process.communicate()
        assert self.process.returncode is not None
        return Ended(self.process.returncode, output.decode(), (self._said + said).decode())


@contextlib.asynccontextmanager
async def submitting(address: str, submission: str, *options: str) -> AsyncIterator[Submitter]:
    environment = {**os.environ, "RAY_DASHBOARD_ADDRESS": address, "MUSTER_SUBMISSION": submission, "LC_ALL": "C"}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PROGRAM, "submit", *options),
        env=environment,
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
    )
    try:
        yield Submitter(process)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def submit(address: str, entrypoint: str, *options: str, submission_id: str | None = None) -> Ended:
    document = Submission(submission_id or new_id(), entrypoint).to_json()
    async with submitting(address, document, *options) as submitter:
        return await submitter.ended()


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    deadline = time.monotonic() + DEADLINE
    while not await condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.1)


async def test_a_job_that_succeeds_ends_with_0_and_its_output_on_stdout(ray_head: RayHead) -> None:
    done = await submit(ray_head.address, TALKATIVE)
    assert done.status == 0, done.said
    assert done.lines == EVERY_LINE
    assert "is submitted" in done.said
    assert "SUCCEEDED" in done.said
    assert "muster:" not in done.output
    assert done.peak_memory < 60 * 1024, "its pod asks for 64Mi"


async def test_a_job_that_fails_ends_with_1(ray_head: RayHead) -> None:
    done = await submit(ray_head.address, "echo 'line of woe'; exit 7")
    assert done.status == 1
    assert done.lines == ["line of woe"]
    assert "FAILED" in done.said
    assert "exit code 7" in done.said


async def test_a_job_that_is_stopped_by_somebody_ends_with_1(ray_head: RayHead) -> None:
    submission = Submission(new_id(), "sleep 600")
    async with (
        RayJobsClient(ray_head.url, timeout=60) as client,
        submitting(ray_head.address, submission.to_json()) as submitter,
    ):
        await submitter.says("is RUNNING")
        await client.stop(submission.submission_id)
        done = await submitter.ended()
    assert done.status == 1
    assert "STOPPED" in done.said


async def test_the_entrypoint_reaches_ray_as_it_was_written(ray_head: RayHead) -> None:
    done = await submit(ray_head.address, """echo "line $((1 + 1)) $(echo 'two  words') \\"é\\"" | cat""")
    assert done.lines == ['line 2 two  words "é"']


async def test_a_second_submitter_follows_the_job_of_the_first(ray_head: RayHead, tmp_path: Path) -> None:
    ran, submission_id = tmp_path / "ran", new_id()
    entrypoint = f"echo x >> {ran}; {TALKATIVE}"
    first, second = await asyncio.gather(
        submit(ray_head.address, entrypoint, submission_id=submission_id),
        submit(ray_head.address, entrypoint, submission_id=submission_id),
    )
    third = await submit(ray_head.address, entrypoint, submission_id=submission_id)
    assert [done.status for done in (first, second, third)] == [0, 0, 0]
    assert first.lines == second.lines == third.lines == EVERY_LINE
    assert "in Ray already (SUCCEEDED)" in third.said
    assert ran.read_text() == "x\n"


async def test_a_dropped_log_stream_loses_no_line_and_repeats_none(proxy: CuttingProxy) -> None:
    proxy.cut_streams = [700, 1500, 1700]
    done = await submit(proxy.address, TALKATIVE)
    assert proxy.cuts >= 2
    assert done.status == 0, done.said
    assert done.lines == EVERY_LINE
    assert "connecting again" in done.said


async def test_a_stream_that_never_holds_says_nothing_about_the_job(proxy: CuttingProxy) -> None:
    proxy.cut_streams = [0] * 100
    done = await submit(proxy.address, f"{TALKATIVE}; exit 5")
    assert done.status == 1
    assert done.lines == EVERY_LINE


async def test_a_lost_answer_to_the_submission_starts_no_second_job(proxy: CuttingProxy, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    proxy.lose_next_answer = True
    done = await submit(proxy.address, f"echo x >> {ran}")
    assert (done.status, proxy.answers_lost) == (0, 1)
    assert ran.read_text() == "x\n"


async def test_a_dashboard_that_goes_away_and_comes_back_is_waited_for(proxy: CuttingProxy) -> None:
    async with submitting(proxy.address, Submission(new_id(), TALKATIVE).to_json()) as submitter:
        await submitter.says("is RUNNING")
        await proxy.close()
        await submitter.says("no status")
        await proxy.open()
        done = await submitter.ended()
    assert done.status == 0, done.said
    assert done.lines == EVERY_LINE


async def test_a_dashboard_that_stays_away_is_lost_contact_and_no_verdict(proxy: CuttingProxy) -> None:
    submission = Submission(new_id(), "sleep 600")
    async with submitting(proxy.address, submission.to_json(), "--outage-timeout", "1") as submitter:
        await submitter.says("is RUNNING")
        await proxy.close()
        done = await submitter.ended()
    assert done.status == 4
    assert "no status" in done.said


async def test_a_dashboard_that_comes_up_late_gets_the_job(proxy: CuttingProxy) -> None:
    await proxy.close()
    async with submitting(proxy.address, Submission(new_id(), "echo line of joy").to_json()) as submitter:
        await submitter.says("waiting for the dashboard")
        await proxy.open()
        done = await submitter.ended()
    assert (done.status, done.lines) == (0, ["line of joy"])


async def test_a_dashboard_that_never_comes_up_ends_with_3_and_no_job(proxy: CuttingProxy, ray_head: RayHead) -> None:
    submission_id = new_id()
    await proxy.close()
    done = await submit(proxy.address, "x", "--dashboard-timeout", "1", submission_id=submission_id)
    assert done.status == 3
    assert "did not take job" in done.said
    async with RayJobsClient(ray_head.url, timeout=60) as client:
        with pytest.raises(JobNotFound):
            await client.get(submission_id)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
async def test_a_signal_ends_the_submitter_and_leaves_the_job_running(
    ray_head: RayHead, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    go_on = tmp_path / "go-on"
    entrypoint = f"until test -e {go_on}; do sleep 0.1; done"
    submission = Submission(new_id(), entrypoint)
    async with RayJobsClient(ray_head.url, timeout=60) as client:
        async with submitting(ray_head.address, submission.to_json()) as submitter:
            await submitter.says("is RUNNING")
            submitter.process.send_signal(number)
            done = await submitter.ended()
        assert done.status == status
        assert f"{number.name}: leaving" in done.said
        assert (await client.get(submission.submission_id)).status is JobStatus.RUNNING
        go_on.touch()
        assert (await ended(client, submission.submission_id)).status is JobStatus.SUCCEEDED


@pytest.mark.parametrize(
    ("document", "named"),
    [
        ("", "MUSTER_SUBMISSION"),
        ("{", "not JSON"),
        ('{"entrypoint": "x"}', "submission_id"),
        ('{"entrypoint": 1, "submission_id": "s"}', "entrypoint"),
    ],
)
async def test_bad_usage_ends_with_2_and_names_the_fault(document: str, named: str) -> None:
    async with submitting("127.0.0.1:1", document) as submitter:
        done = await submitter.ended()
    assert done.status == 2
    assert named in done.said
