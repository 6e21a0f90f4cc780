"""What follows from a look at a running Ray job. Pure: everything observed goes in, one decision comes out.

Ray's Jobs API alone says how the job ended. The submitter's exit is only a reason to look, and counts by itself only
where Ray knows nothing of the job. A job that Ray once knew and knows no more was lost with its head: it is never
started again behind the user's back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from muster.api.rayjob import JobFailedReason, JobStatus, RayJobInfo, SubmissionMode
from muster.controllers.clock import seconds_of, timestamp
from muster.controllers.rayjob.submission import Submitter, SubmitterState
from muster.ray.job_info import JobInfo

RAY_JOB_LOST = "RayJobLost"
"""`status.reason` of a job that its Ray head has forgotten."""


@dataclass(frozen=True, slots=True)
class Missing:
    """The dashboard answers, and knows no job of this id."""


@dataclass(frozen=True, slots=True)
class Silent:
    """The dashboard gives no answer of use; `error` says why."""

    error: str


@dataclass(frozen=True, slots=True)
class Sight:
    """What is known. Times are Unix seconds; `recorded` is Ray's word as stored, `info` the times stored with it."""

    mode: str
    job_id: str
    recorded: JobStatus
    info: RayJobInfo | None
    message: str | None
    answer: JobInfo | Missing | Silent | None
    """None: not asked, because the recorded word is final."""
    submitter: Submitter
    silent_since: float | None
    now: float
    status_check_timeout: float
    submitter_grace: float
    head_gone: bool = False
    """The cluster has no head, and will have none."""


@dataclass(frozen=True, slots=True)
class Stay:
    """Go on as it is, with these changes of the status."""

    changes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Submit:
    """Ray does not have the job and never had it: hand it over (HTTPMode: call the Jobs API; else: the submitter)."""


@dataclass(frozen=True, slots=True)
class Complete:
    """Ray says that the job succeeded, or that somebody stopped it."""

    changes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Fail:
    """The attempt has failed."""

    reason: str
    message: str
    changes: Mapping[str, Any] = field(default_factory=dict)


Decision = Stay | Submit | Complete | Fail


def judge(sight: Sight) -> Decision:
    """The one decision."""
    if sight.head_gone and isinstance(sight.answer, Missing | Silent):
        return _lost(f"The head pod is gone, and job {sight.job_id} with it")
    match sight.answer:
        case None:
            return _ended(sight, sight.recorded, sight.info, sight.message or "", {})
        case JobInfo() as info:
            return _known(sight, info)
        case Missing():
            return _missing(sight)
        case Silent(error):
            return _silent(sight, error)


def _known(sight: Sight, info: JobInfo) -> Decision:
    status, times = info.status, _times(info)
    if _started_again(sight, times):
        return _lost(f"Ray runs job {sight.job_id} a second time: its first run was lost with the head")
    changes = {
        "job_status": status.value,
        "message": info.message or None,
        "ray_job_info": times,
        "job_status_check_failure_start_time": None,
    }
    return _ended(sight, status, times, info.message, changes) if status.terminal else Stay(changes)


def _ended(
    sight: Sight, status: JobStatus, times: RayJobInfo | None, message: str, changes: dict[str, Any]
) -> Decision:
    """Ray's verdict is in. The submitter may end first, so that its log is whole, but not for ever."""
    ended_at, late = seconds_of(times.end_time if times else None), {}
    if sight.submitter.state is SubmitterState.ACTIVE:
        if ended_at is None or sight.now < ended_at + sight.submitter_grace:
            return Stay(changes)
        late = {"reason": JobFailedReason.TRANSITION_GRACE_PERIOD_EXCEEDED.value}
    if status is JobStatus.FAILED:
        without = {key: value for key, value in changes.items() if key != "message"}
        return Fail(JobFailedReason.APP_FAILED.value, message or "The Ray job failed.", without)
    return Complete({**changes, **late})


def _missing(sight: Sight) -> Decision:
    if sight.recorded is not JobStatus.NEW:
        return _lost(
            f"Ray does not know job {sight.job_id} any more: the head was restarted or replaced while the job was "
            f"{sight.recorded.value}. It is not run again unasked; set backoffLimit to have lost jobs retried"
        )
    if sight.mode == SubmissionMode.INTERACTIVE:
        text = f"Ray knows no job {sight.job_id} yet; submit it under this id, or correct spec.jobId"
        return Stay({"message": text, "job_status_check_failure_start_time": None})
    # What was told of a silence is over.
    heard = {} if sight.silent_since is None else {"message": None}
    if sight.mode == SubmissionMode.SIDECAR and sight.submitter.state is SubmitterState.ABSENT:
        text = "Job submission has failed. The head pod has no submitter: it was made for another submissionMode"
        return Fail(JobFailedReason.SUBMISSION_FAILED.value, text)
    if sight.mode == SubmissionMode.HTTP or sight.submitter.state is SubmitterState.ABSENT:
        return Submit()
    if sight.submitter.state is SubmitterState.FAILED:
        return Fail(JobFailedReason.SUBMISSION_FAILED.value, f"Job submission has failed. {sight.submitter.why}")
    if sight.submitter.state is SubmitterState.COMPLETE:
        return Fail(JobFailedReason.APP_FAILED.value, "Submitter completed but Ray job not found in RayCluster.")
    return Stay({**heard, "job_status_check_failure_start_time": None})


def _silent(sight: Sight, error: str) -> Decision:
    since = sight.silent_since
    if since is None or sight.now < since + sight.status_check_timeout:
        # From the first silence on: whoever can mend the dashboard has until the time-out for it.
        seconds = f"{sight.status_check_timeout:.0f}"
        told = f"The dashboard gives no answer of use, and after {seconds} s without one the job fails: {error}"
        begun = {"job_status_check_failure_start_time": timestamp(sight.now)} if since is None else {}
        return Stay({**begun, "message": told})
    return Fail(
        JobFailedReason.STATUS_CHECK_TIMEOUT_EXCEEDED.value,
        f"The dashboard has given no answer for {sight.status_check_timeout:.0f} s: {error}",
    )


def _lost(message: str) -> Fail:
    return Fail(RAY_JOB_LOST, message, {"job_status": JobStatus.FAILED.value})


def _started_again(sight: Sight, times: RayJobInfo) -> bool:
    """Whether Ray's start time has moved: then this is another run under the same id."""
    before = sight.info.start_time if sight.info else None
    return before is not None and times.start_time is not None and before != times.start_time


def _times(info: JobInfo) -> RayJobInfo:
    moments = {"start_time": info.start_time_ms, "end_time": info.end_time_ms}
    return RayJobInfo(**{name: timestamp(ms / 1000) for name, ms in moments.items() if ms is not None})
