"""How an attempt ends: counted, told, and, where the spec allows, followed by another one."""

from __future__ import annotations

from typing import Any

from muster.api.fieldtypes import INT32_MAX
from muster.api.rayjob import JobDeploymentStatus, JobFailedReason, JobStatus
from muster.controllers.context import ObservedRayCluster
from muster.controllers.rayjob.look import Look
from muster.kube.objects import controller_of

RAY_CLUSTER_LOST = "RayClusterLost"
"""`status.reason` of a job whose cluster went away under it."""
NOT_RETRIED = (JobFailedReason.DEADLINE_EXCEEDED, JobFailedReason.STATUS_CHECK_TIMEOUT_EXCEEDED)
"""A deadline is the user's last word; a job that may still run somewhere must not be started a second time."""


async def fail(look: Look, reason: str, message: str, *, final: bool = False, **changes: Any) -> None:
    """The attempt has failed: to Retrying while attempts are left, unless it is `final`, else to Failed. One write."""
    failed = (look.status.failed or 0) + 1
    again = failed <= _backoff_limit(look) and reason not in NOT_RETRIED and not final
    state = JobDeploymentStatus.RETRYING if again else JobDeploymentStatus.FAILED
    began = look.attempt_started
    await look.write(
        **changes,
        job_deployment_status=state.value,
        reason=str(reason),
        message=message,
        failed=min(failed, INT32_MAX),  # users may write it; what can't be stored ends no job
        end_time=look.stamp(),
    )
    look.count_attempt(state.value, failed - 1, began)
    look.say("Warning", str(reason), f"Attempt {failed} failed: {message}", "Retry" if again else "Fail")


async def fail_between_attempts(look: Look, reason: str, message: str) -> None:
    """A deadline has struck while one attempt was over and the next not begun: none more has failed."""
    state = JobDeploymentStatus.FAILED.value
    await look.write(job_deployment_status=state, reason=str(reason), message=message, end_time=look.stamp())
    look.say("Warning", str(reason), f"No further attempt: {message}", "Fail")


def _backoff_limit(look: Look) -> int:
    """How often the job is tried again; a number that the spec can't have counts as none."""
    return 0 if look.problems_with("backoffLimit") else look.job.spec.backoff_limit or 0


async def fail_without_cluster(look: Look, found: ObservedRayCluster | None) -> None:
    """The cluster went away under the attempt; `found` is what has its name now."""
    name = look.status.ray_cluster_name
    message = (
        f"RayCluster {name} was deleted while the job was on it"
        if name
        else "status.rayClusterName has been taken away: nothing else says which RayCluster the job is on"
    )
    if found is not None and found.metadata.deletion_timestamp is None:
        message = (
            f"RayCluster {name} is not the job's any more: {_owner(found)} in its metadata.ownerReferences. It is left "
            "as it is, with what runs on it; delete it if nobody needs it"
        )
    await fail(look, RAY_CLUSTER_LOST, message, job_status=JobStatus.FAILED.value)


def _owner(cluster: ObservedRayCluster) -> str:
    owner = controller_of(cluster.metadata)
    return (
        "there is no controlling owner"
        if owner is None
        else f"{owner.kind} {owner.name} with UID {owner.uid} is the controlling owner"
    )


async def complete(look: Look, **changes: Any) -> None:
    """The attempt has ended well, or was stopped by somebody through Ray: to Complete."""
    succeeded = look.status.succeeded or 0
    if look.ray_status is JobStatus.SUCCEEDED or changes.get("job_status") == JobStatus.SUCCEEDED:
        succeeded = min(succeeded + 1, INT32_MAX)
    state = JobDeploymentStatus.COMPLETE.value
    began = look.attempt_started
    reason = changes.pop("reason", None)  # what was told of troubles on the way is over
    await look.write(**changes, reason=reason, job_deployment_status=state, succeeded=succeeded, end_time=look.stamp())
    look.count_attempt(state, look.status.failed or 0, began)
