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


def deadlines(spec: RayJobSpec, started: float, *, running: bool) -> list[Deadline]:
    """The deadlines that apply; `started` is when this attempt began, `running` whether it is past Initializing."""
    found = []
    if spec.active_deadline_seconds is not None:
        found.append(
            Deadline(
                started + spec.active_deadline_seconds,
                JobFailedReason.DEADLINE_EXCEEDED,
                f"The RayJob has been active for longer than activeDeadlineSeconds ({spec.active_deadline_seconds} s)",
            )
        )
    if spec.pre_running_deadline_seconds is not None and not running:
        found.append(
            Deadline(
                started + spec.pre_running_deadline_seconds,
                JobFailedReason.PRE_RUNNING_DEADLINE_EXCEEDED,
                "The Ray job did not get to run within preRunningDeadlineSeconds "
                f"({spec.pre_running_deadline_seconds} s)",
            )
        )
    return sorted(found, key=lambda deadline: deadline.at)
