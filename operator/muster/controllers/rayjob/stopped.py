"""States Suspending, Suspended, Retrying and ValidationFailed: the attempt is taken down; then rest, or another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muster.api.errors import FieldProblem
from muster.api.rayjob import JobDeploymentStatus, JobFailedReason
from muster.controllers.primary import in_words, say_invalid
from muster.controllers.rayjob.deadlines import deadlines
from muster.controllers.rayjob.ending import fail_between_attempts
from muster.controllers.rayjob.look import Look
from muster.controllers.rayjob.strays import left_behind
from muster.controllers.rayjob.teardown import tear_down
from muster.controllers.runner import Requeue

FORGOTTEN: dict[str, Any] = {
    "job_id": None,
    "ray_cluster_name": None,
    "ray_cluster_status": None,
    "dashboard_url": None,
    "job_status": None,
    "ray_job_info": None,
    "job_status_check_failure_start_time": None,
}
"""What an attempt leaves in the status, and the next one must not find there."""
NOT_ACTIVE: dict[str, Any] = {"start_time": None, "end_time": None}
"""A job that has been resumed, or corrected, has all its time again, as a Kubernetes Job has."""


async def suspend(look: Look) -> Requeue | None:
    """Take the attempt down, then rest. Once begun it goes through, whatever the spec says meanwhile."""
    progress = await tear_down(look)
    if progress.done:
        state = JobDeploymentStatus.SUSPENDED.value
        await look.write(**FORGOTTEN, job_deployment_status=state, reason=None, message=progress.left)
    return progress.requeue


async def resume(look: Look) -> Requeue | None:
    """Begin anew as soon as the spec allows it; what there is of an attempt, against what the status says, goes."""
    if not look.job.spec.suspend:
        await look.write(**NOT_ACTIVE, job_deployment_status=None)
    elif await left_behind(look):
        await look.write(job_deployment_status=JobDeploymentStatus.SUSPENDING.value)
    return None


async def retry(look: Look) -> Requeue | None:
    """Take the attempt down, then begin another; its failure stays readable until then.

    `endTime` becomes the time at which its last pod was gone: from then on the next attempt counts.
    """
    limits = deadlines(look.job.spec, look.started, look.attempt_started, running=True)
    if limits and limits[0].at <= look.now:
        await fail_between_attempts(look, limits[0].reason, limits[0].message)
        return None
    progress = await tear_down(look)
    if progress.done:
        await look.write(**FORGOTTEN, job_deployment_status=None, reason=None, message=None, end_time=look.stamp())
        return progress.requeue
    again = [limits[0].at - look.now] if limits else []
    if progress.requeue is not None:
        again.append(progress.requeue.after)
    return Requeue(min(again)) if again else None


async def refuse(look: Look, problems: Sequence[FieldProblem]) -> Requeue | None:
    """Say what is wrong with the spec and hold nothing for it: what an earlier spec has led to is taken down."""
    say_invalid(look.context, look.job, problems)
    refused = {
        "job_deployment_status": JobDeploymentStatus.VALIDATION_FAILED.value,
        "reason": JobFailedReason.VALIDATION_FAILED.value,
        "message": in_words(problems),
    }
    await look.write(**refused)
    if not await left_behind(look):
        return None
    progress = await tear_down(look)
    if progress.done:
        await look.write(**FORGOTTEN)
    return progress.requeue


async def recover(look: Look) -> Requeue | None:
    """The spec is right again: begin, once what the earlier spec had led to is gone."""
    if await left_behind(look):
        progress = await tear_down(look)
        if not progress.done:
            return progress.requeue
    await look.write(**FORGOTTEN, **NOT_ACTIVE, job_deployment_status=None, reason=None, message=None)
    return None
