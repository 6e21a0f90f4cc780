"""Submit a job to Ray and stay with it until Ray's verdict.

Promises:
- The verdict is the Jobs API's status, and nothing else: never the end of the log stream, never an error on the way.
- A job is submitted at most once, however often this runs with the same submission id.
- The job's output is printed once, across dropped connections and restarts of the dashboard.
- Every wait has an end. The job itself is never stopped from here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from muster.ray.job_info import JobInfo, Submission
from muster.ray.jobs_api import JobNotFound, RayApiError, RayJobsClient, SubmissionRefused
from muster.ray.log_printer import LogPrinter


class JobRunError(Exception):
    """The run ended without a verdict."""


class CouldNotSubmitError(JobRunError):
    """The job was never known to be in Ray: the submission was refused, or the dashboard did not take it in time."""


class LostContactError(JobRunError):
    """The job is in Ray, but the dashboard has not answered for too long. The job may still run."""


class JobForgottenError(JobRunError):
    """Ray had the job and does not know it any more: its head was started anew, and the job went with the old one."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait, in seconds.

    `dashboard`: for the dashboard to take the submission. `outage`: for a dashboard that took it and fell silent.
    `forgotten`: for a job that a dashboard says it has never heard of, though it took it. `last_logs`: for another
    piece of the output once the verdict is in. `poll` lies between two questions for the status; `retry` grows to
    `longest_retry` between two attempts at the log stream.
    """

    dashboard: float = 300.0
    outage: float = 300.0
    forgotten: float = 30.0
    last_logs: float = 30.0
    poll: float = 1.0
    retry: float = 1.0
    longest_retry: float = 15.0


class _Trouble:
    """One kind of trouble, and whether it has lasted for `limit` seconds without a break."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._since: float | None = None

    def lasts_too_long(self, now: float) -> bool:
        if self._since is None:
            self._since = now
        return now - self._since >= self._limit

    def ends(self) -> None:
        self._since = None


class JobRun:
    """One job, from its submission to its verdict.

    `write` gets the job's output, `say` one line about each thing that happens. `clock` is in seconds and only goes
    forward.
    """

    def __init__(
        self,
        client: RayJobsClient,
        submission: Submission,
        *,
        write: Callable[[str], None],
        say: Callable[[str], None],
        patience: Patience | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._submission = submission
        self._id = submission.submission_id
        self._log = LogPrinter(client, self._id, write)
        self._say = say
        self._patience = patience or Patience()
        self._clock = clock
        self._sleep = sleep
        self._verdict: JobInfo | None = None
        self._log_complete = asyncio.Event()

    async def run(self) -> JobInfo:
        """Submit the job unless Ray has it, print its output, and return it once it has ended.

        Raises CouldNotSubmitError, LostContactError or JobForgottenError.
        """
        await self._submit()
        printing = asyncio.create_task(self._print_log())
        try:
            self._verdict = await self._await_verdict()
            await self._await_rest_of_log()
        finally:
            printing.cancel()
            with suppress(asyncio.CancelledError):
                await printing
        return self._verdict

    async def _submit(self) -> None:
        deadline = self._clock() + self._patience.dashboard
        told = ""
        while True:
            try:
                await self._submit_once()
            except SubmissionRefused as error:
                raise CouldNotSubmitError(f"Ray refuses the submission: {error.message}") from error
            except RayApiError as error:
                if self._clock() >= deadline:
                    waited = f"within {self._patience.dashboard:g} s"
                    raise CouldNotSubmitError(f"the dashboard did not take job {self._id} {waited}: {error}") from error
                if str(error) != told:
                    told = str(error)
                    self._say(f"waiting for the dashboard: {told}")
                await self._sleep(self._patience.poll)
            else:
                return

    async def _submit_once(self) -> None:
        await self._client.health()
        try:
            job = await self._client.get(self._id)
        except JobNotFound:
            await self._client.submit(self._submission)
            self._say(f"job {self._id} is submitted")
        else:
            self._say(f"job {self._id} is in Ray already ({job.status}): following it")

    async def _await_verdict(self) -> JobInfo:
        """Ask for the status until it is final."""
        silent, forgotten = _Trouble(self._patience.outage), _Trouble(self._patience.forgotten)
        told = ""
        while True:
            try:
                job = await self._client.get(self._id)
            except JobNotFound as error:
                silent.ends()
                if forgotten.lasts_too_long(self._clock()):
                    raise JobForgottenError(f"Ray no longer knows job {self._id}: {error.message}") from error
                state = f"Ray does not know job {self._id} at the moment"
            except RayApiError as error:
                if silent.lasts_too_long(self._clock()):
                    waited = f"for {self._patience.outage:g} s"
                    raise LostContactError(f"no status of job {self._id} {waited}: {error}") from error
                state = f"no status of job {self._id} at the moment: {error}"
            else:
                silent.ends()
                forgotten.ends()
                state = f"job {self._id} is {job.status}"
                if job.status.terminal:
                    self._say(f"{state}: {job.message}" if job.message else state)
                    return job
            if state != told:
                told = state
                self._say(state)
            await self._sleep(self._patience.poll)

    async def _print_log(self) -> None:
        """Print the log until it is known to be complete, reconnecting as often as it takes."""
        pause, broken = self._patience.retry, False
        while True:
            before = self._log.printed
            try:
                whole = await self._log.follow()
                if whole and await self._has_ended():
                    self._log_complete.set()
                    return
            except OSError as error:
                self._say(f"the output can't be written any more: {error}")
                self._log_complete.set()
                return
            except Exception as error:
                # Of whatever kind: a log that can't be followed must not end a job whose verdict is still to come.
                if not broken:
                    self._say(f"{_told(error)}; connecting again")
                broken = True
            if self._log.printed > before:
                pause, broken = self._patience.retry, False
            await self._sleep(pause)
            pause = min(pause * 2, self._patience.longest_retry)

    async def _has_ended(self) -> bool:
        """Whether the job had ended when the stream did: only then was that the log's end."""
        return self._verdict is not None or (await self._client.get(self._id)).status.terminal

    async def _await_rest_of_log(self) -> None:
        """Get the log complete. Ray ends its stream only seconds after the job, so a short log is fetched instead."""
        with suppress(Exception):
            if self._log_complete.is_set() or await self._log.catch_up():
                return
        await self._await_end_of_stream()

    async def _await_end_of_stream(self) -> None:
        """Wait for the stream's end as long as anything comes."""
        received = -1
        while not self._log_complete.is_set():
            if self._log.received == received:
                waited = f"for {self._patience.last_logs:g} s"
                self._say(f"the rest of the log does not come, {waited} now: it may be incomplete")
                return
            received = self._log.received
            await self._complete_within(self._patience.last_logs)

    async def _complete_within(self, seconds: float) -> None:
        waiting = {
            asyncio.ensure_future(self._sleep(seconds)),
            asyncio.ensure_future(self._log_complete.wait()),
        }
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for future in waiting:
                future.cancel()


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, RayApiError) else f"log stream: {type(error).__name__}: {error}"
