"""The deadlines of a RayJob. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from muster.api.rayjob import JobFailedReason, RayJobSpec


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment (Unix seconds) at which the job fails, unless it is over before."""

    at: float
    reason: JobFailedReason
    message: str


def deadlines(spec: RayJobSpec, started: float, attempt: float, *, running: bool) -> list[Deadline]:
    """The deadlines that apply: `started` is when the job began, `attempt` when this attempt did, `running` whether
    the Ray job is past being waited for.

    The time to be active is the job's, retries included, as with a Kubernetes Job: else a job that may be retried ten
    times would have eleven times as long. The time to get to run is each attempt's. A number of seconds that is no
    deadline (0, or less) is refused where the job can be stopped, and else passed over.
    """
    found = []
    active, before = spec.active_deadline_seconds or 0, spec.pre_running_deadline_seconds or 0
    if active > 0:
        found.append(
            Deadline(
                started + active,
                JobFailedReason.DEADLINE_EXCEEDED,
                f"The RayJob has been active for longer than activeDeadlineSeconds ({active} s)",
            )
        )
    if before > 0 and not running:
        found.append(
            Deadline(
                attempt + before,
                JobFailedReason.PRE_RUNNING_DEADLINE_EXCEEDED,
                f"The Ray job did not get to run within preRunningDeadlineSeconds ({before} s)",
            )
        )
    return sorted(found, key=lambda deadline: deadline.at)
