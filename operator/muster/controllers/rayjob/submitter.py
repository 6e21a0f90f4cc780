"""The submitter's Job: created once, looked at, deleted when there is nothing left to submit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muster.controllers.children import controlled_by
from muster.controllers.gang import membership
from muster.controllers.rayjob.look import Look
from muster.controllers.rayjob.submission import Submitter, SubmitterState
from muster.kube.objects import Job
from muster.ray import names
from muster.ray.pod_health import condition
from muster.ray.selection import runs_elsewhere
from muster.ray.submitter import submitter_job


def find_submitter(look: Look) -> Job | None:
    """The submitter's Job as last seen."""
    meta = look.job.metadata
    found = look.context.jobs.get(meta.namespace, names.submitter_job(meta.name))
    return found if found is not None and controlled_by(found.metadata, meta.uid) else None


def observe(look: Look) -> Submitter:
    """How far the job's submitter has come."""
    found = find_submitter(look)
    return Submitter(SubmitterState.ABSENT) if found is None else submitter_of(found)


def submitter_version(look: Look) -> str:
    """The version of the submitter's Job as last seen; "" where there is none. Another one may mean news from Ray."""
    found = find_submitter(look)
    return "" if found is None else f"{found.metadata.uid} {found.metadata.resource_version}"


def submitter_of(job: Job) -> Submitter:
    """What a Job's conditions say."""
    for kind, state in (("Failed", SubmitterState.FAILED), ("Complete", SubmitterState.COMPLETE)):
        found = condition(job.status.conditions, kind)
        if found is not None and found.status == "True":
            return Submitter(state, f"Reason: {found.reason or 'unknown'}. Message: {found.message or ''}".strip())
    return Submitter(SubmitterState.ACTIVE)


async def ensure_submitter(look: Look, dashboard_address: str, token_env: Sequence[Mapping[str, Any]] = ()) -> None:
    """Create the submitter's Job if it is missing; the address is host:port, the variables lead to the token.

    Raises NotOurs, and what the API server refuses it with.
    """
    options = look.context.options
    manifest = submitter_job(
        look.job,
        image=options.submitter_image,
        dashboard_address=dashboard_address,
        submission_id=str(look.status.job_id),
        gang=None if runs_elsewhere(look.job) else membership(look.context, look.job),
        image_pull_policy=options.submitter_image_pull_policy,
        token_env=token_env,
    )
    with look.telling("FailedToCreateRayJobSubmitter", "create the submitter's Job", "Create"):
        found, created = await look.context.jobs.ensure(manifest, look.job)
    if created:
        look.say(
            "Normal",
            "CreatedRayJobSubmitter",
            f"Created Kubernetes Job {found.key}",
            "Create",
            change=found.metadata.uid,
        )


async def delete_submitter(look: Look) -> bool:
    """Delete the submitter's Job and its pods; whether it is gone (or was never ours)."""
    meta, jobs = look.job.metadata, look.context.jobs
    name = names.submitter_job(meta.name)
    found = jobs.get(meta.namespace, name) or await jobs.read(meta.namespace, name)
    if found is None or not controlled_by(found.metadata, meta.uid):
        return True
    if found.metadata.deletion_timestamp is None:
        with look.telling("FailedToDeleteRayJobSubmitter", f"delete Kubernetes Job {found.key}", "Delete"):
            deleted = await jobs.delete(found, propagation="Background")
        if deleted:
            message = f"Deleted Kubernetes Job {found.key}"
            look.say("Normal", "DeletedRayJobSubmitter", message, "Delete", change=found.metadata.uid)
    return jobs.get(meta.namespace, name) is None
