"""How long a run waits and what it concludes, on a clock of its own. Ray itself is in test_submit.py."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any

import pytest

from muster.ray.job_info import JobInfo, JobStatus, Submission
from muster.ray.job_run import CouldNotSubmitError, JobForgottenError, JobRun, LostContactError, Patience
from muster.ray.jobs_api import DashboardError, DashboardUnreachable, JobNotFound, RayJobsClient, SubmissionRefused

UNREACHABLE = DashboardUnreachable("GET /api/jobs/s: ConnectError")
NOT_FOUND = JobNotFound(404, "Job s does not exist")
REFUSED = SubmissionRefused(400, "metadata values must be strings")

Answer = str | Exception


class Dashboard(RayJobsClient):
    """A dashboard that answers from a script: one answer a question, the last one for ever."""

    def __init__(
        self,
        *,
        statuses: Sequence[Answer],
        health: Sequence[Answer] = ("ok",),
        submit: Sequence[Answer] = ("ok",),
        streams: list[list[Answer]] | None = None,
        log: Answer = UNREACHABLE,
    ) -> None:
        super().__init__("http://dashboard.invalid")
        self._statuses, self._healths, self._submits = (_forever(script) for script in (statuses, health, submit))
        self._streams = iter(streams or [])
        self._log = log
        self.submitted = 0

    async def health(self) -> None:
        _give(next(self._healths))

    async def submit(self, submission: Submission) -> str:
        self.submitted += 1
        return _give(next(self._submits))

    async def get(self, submission_id: str) -> JobInfo:
        return JobInfo(submission_id, JobStatus(_give(next(self._statuses))), "because")

    async def logs(self, submission_id: str) -> str:
        return _give(self._log)

    async def tail(self, submission_id: str, receive: Callable[[str], None]) -> None:
        for piece in next(self._streams, [UNREACHABLE]):
            receive(_give(piece))
            await asyncio.sleep(0)


def _give(answer: Answer) -> str:
    if isinstance(answer, Exception):
        raise answer
    return answer


def _forever(script: Sequence[Answer]) -> Iterator[Answer]:
    yield from script
    while True:
        yield script[-1]


class Clock:
    """A clock that moves on to the next awakening as soon as everybody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._number = count()
        self._ticking = False

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        awake = asyncio.get_running_loop().create_future()
        heappush(self._sleepers, (self.now + seconds, next(self._number), awake))
        if not self._ticking:
            self._ticking = True
            self._wake_next(turns=20)
        await awake

    def _wake_next(self, turns: int) -> None:
        """Give everybody who is awake some turns, then wake whoever is next, as long as somebody sleeps."""
        if not turns:
            self._sleepers = [sleeper for sleeper in self._sleepers if not sleeper[2].done()]
            heapify(self._sleepers)
            self._ticking = bool(self._sleepers)
            if not self._ticking:
                return
            self.now, _, awake = heappop(self._sleepers)
            awake.set_result(None)
        asyncio.get_running_loop().call_soon(self._wake_next, turns - 1 if turns else 20)


class Run:
    """A run against a scripted dashboard, and what came of it."""

    def __init__(self, dashboard: Dashboard, /, **patience: float) -> None:
        self.clock = Clock()
        self.dashboard = dashboard
        self.output: list[str] = []
        self.said: list[str] = []
        self._run = JobRun(
            dashboard,
            Submission("s", "x"),
            write=self.output.append,
            say=self.said.append,
            patience=Patience(**patience),
            clock=self.clock,
            sleep=self.clock.sleep,
        )

    async def verdict(self) -> JobStatus:
        return (await self._run.run()).status

    @property
    def waited(self) -> float:
        return self.clock.now - 1000.0


@pytest.mark.parametrize("status", ["SUCCEEDED", "FAILED", "STOPPED"])
async def test_the_verdict_is_the_status_whatever_became_of_the_log(status: str) -> None:
    run = Run(Dashboard(statuses=[NOT_FOUND, "PENDING", "RUNNING", status]))
    assert await run.verdict() == status
    assert run.dashboard.submitted == 1
    assert f"job s is {status}: because" in run.said


async def test_the_end_of_the_log_is_no_verdict() -> None:
    statuses: list[Answer] = [NOT_FOUND, *["RUNNING"] * 20, "FAILED"]
    run = Run(Dashboard(statuses=statuses, streams=[["all of it\n"]] * 30, log="all of it\n"))
    assert await run.verdict() == "FAILED"
    assert "".join(run.output) == "all of it\n"


async def test_a_dashboard_behind_a_login_page_has_not_taken_the_job() -> None:
    page = DashboardError(200, "not JSON: <html>")
    run = Run(Dashboard(statuses=[NOT_FOUND, NOT_FOUND, "SUCCEEDED"], submit=[page, "ok"], log="x"))
    assert await run.verdict() == "SUCCEEDED"
    assert run.dashboard.submitted == 2
    assert "waiting for the dashboard: the dashboard answered 200: not JSON: <html>" in run.said


async def test_a_job_that_ray_has_already_is_followed_and_not_submitted() -> None:
    run = Run(Dashboard(statuses=["RUNNING", "SUCCEEDED"], log="x"))
    assert await run.verdict() == "SUCCEEDED"
    assert run.dashboard.submitted == 0


async def test_a_dashboard_that_comes_up_late_gets_the_job() -> None:
    run = Run(Dashboard(statuses=[NOT_FOUND, "SUCCEEDED"], health=[UNREACHABLE] * 50 + ["ok"], log="x"))
    assert await run.verdict() == "SUCCEEDED"
    assert 49 <= run.waited <= 60
    assert sum(line.startswith("waiting for the dashboard") for line in run.said) == 1


async def test_a_dashboard_that_never_comes_up_is_given_up() -> None:
    run = Run(Dashboard(statuses=[NOT_FOUND], health=[UNREACHABLE]), dashboard=40)
    with pytest.raises(CouldNotSubmitError, match="did not take job s within 40 s: GET"):
        await run.verdict()
    assert 40 <= run.waited <= 42
    assert run.dashboard.submitted == 0


async def test_a_head_that_has_no_room_for_the_job_yet_is_asked_again() -> None:
    busy: Answer = DashboardError(500, "No available agent to submit job, please try again later.")
    run = Run(Dashboard(statuses=[NOT_FOUND, NOT_FOUND, NOT_FOUND, "SUCCEEDED"], submit=[busy, busy, "ok"], log="x"))
    assert await run.verdict() == "SUCCEEDED"
    assert run.dashboard.submitted == 3


async def test_a_refused_submission_is_not_repeated() -> None:
    run = Run(Dashboard(statuses=[NOT_FOUND], submit=[REFUSED]))
    with pytest.raises(CouldNotSubmitError, match="metadata values must be strings"):
        await run.verdict()
    assert run.dashboard.submitted == 1
    assert run.waited == 0


async def test_an_outage_shorter_than_the_patience_is_borne() -> None:
    statuses: list[Answer] = [NOT_FOUND, "RUNNING", *[UNREACHABLE] * 100, "RUNNING", *[UNREACHABLE] * 100, "SUCCEEDED"]
    run = Run(Dashboard(statuses=statuses, log="x"), outage=110)
    assert await run.verdict() == "SUCCEEDED"


async def test_an_outage_longer_than_the_patience_is_lost_contact() -> None:
    run = Run(Dashboard(statuses=[NOT_FOUND, "RUNNING", UNREACHABLE]), outage=50)
    with pytest.raises(LostContactError, match="no status of job s for 50 s"):
        await run.verdict()
    assert 50 <= run.waited <= 53


async def test_a_job_that_ray_has_forgotten_is_lost_and_never_submitted_again() -> None:
    run = Run(Dashboard(statuses=[NOT_FOUND, "RUNNING", NOT_FOUND]), forgotten=20)
    with pytest.raises(JobForgottenError, match="no longer knows job s"):
        await run.verdict()
    assert 20 <= run.waited <= 23
    assert run.dashboard.submitted == 1


async def test_a_job_that_is_missing_for_a_moment_after_an_outage_is_not_lost() -> None:
    statuses: list[Answer] = [NOT_FOUND, "RUNNING", *[UNREACHABLE] * 60, NOT_FOUND, NOT_FOUND, "SUCCEEDED"]
    assert await Run(Dashboard(statuses=statuses, log="x"), forgotten=20).verdict() == "SUCCEEDED"


@pytest.mark.parametrize(
    "streams",
    [
        [["one ", "two ", "three"]],
        [["one ", UNREACHABLE], ["one ", "two ", "three"]],
        [["one t", UNREACHABLE], ["o", "ne two ", UNREACHABLE], ["one two three"]],
        [[UNREACHABLE], [], ["one two three"]],
        [["one two "], ["one "], ["one two three"]],
    ],
)
async def test_output_is_printed_once_however_the_stream_breaks(streams: list[list[Answer]]) -> None:
    statuses: list[Answer] = [NOT_FOUND, *["RUNNING"] * 40, "SUCCEEDED"]
    run = Run(Dashboard(statuses=statuses, streams=streams, log="one two three"))
    await run.verdict()
    assert "".join(run.output) == "one two three"


async def test_what_the_job_printed_last_is_fetched_after_the_verdict() -> None:
    run = Run(Dashboard(statuses=[NOT_FOUND, "SUCCEEDED"], streams=[["one ", UNREACHABLE]], log="one two three"))
    await run.verdict()
    assert "".join(run.output) == "one two three"


async def test_without_the_whole_log_the_stream_is_read_to_its_end() -> None:
    streams: list[list[Answer]] = [["one ", UNREACHABLE], ["one two ", UNREACHABLE], ["one two three"]]
    run = Run(Dashboard(statuses=[NOT_FOUND, "SUCCEEDED"], streams=streams, log=UNREACHABLE), last_logs=1e9)
    await run.verdict()
    assert "".join(run.output) == "one two three"


async def test_a_log_that_can_not_be_completed_does_not_hold_up_the_verdict() -> None:
    run = Run(Dashboard(statuses=[NOT_FOUND, "SUCCEEDED"]), last_logs=30)
    assert await run.verdict() == "SUCCEEDED"
    assert any("may be incomplete" in line for line in run.said)


async def test_the_rest_of_a_long_log_is_waited_for_as_long_as_it_comes() -> None:
    streams: list[list[Answer]] = [["x" * n, UNREACHABLE] for n in range(1, 30)]
    run = Run(
        Dashboard(statuses=[NOT_FOUND, "SUCCEEDED"], streams=[*streams, ["x" * 30]], log=UNREACHABLE), last_logs=20
    )
    await run.verdict()
    assert "".join(run.output) == "x" * 30
    assert run.waited > 20
    assert not any("incomplete" in line for line in run.said)


@pytest.mark.parametrize("oddity", [RuntimeError("odd"), ExceptionGroup("many", [EOFError("odd")]), ValueError("odd")])
async def test_whatever_goes_wrong_with_the_log_it_is_followed_again_and_the_verdict_stays(oddity: Exception) -> None:
    statuses: list[Answer] = [NOT_FOUND, *["RUNNING"] * 10, "SUCCEEDED"]
    run = Run(Dashboard(statuses=statuses, streams=[["one ", oddity], ["one two", oddity]], log=oddity), last_logs=1)
    assert await run.verdict() == "SUCCEEDED"
    assert "".join(run.output) == "one two"
    assert any("connecting again" in line for line in run.said)


@pytest.mark.parametrize("streams", [[["one"]], []])
async def test_output_that_nobody_takes_any_more_does_not_change_the_verdict(streams: list[list[Answer]]) -> None:
    def broken(text: str) -> None:
        raise BrokenPipeError

    dashboard = Dashboard(statuses=[NOT_FOUND, "RUNNING", "RUNNING", "SUCCEEDED"], streams=streams, log="one")
    clock = Clock()
    run = JobRun(dashboard, Submission("s", "x"), write=broken, say=_silence, clock=clock, sleep=clock.sleep)
    assert (await run.run()).status == "SUCCEEDED"


def _silence(*_: Any) -> None:
    """Say nothing."""
