"""State New: the names of what will be created are chosen and stored, before anything is created (P5)."""

from __future__ import annotations

from muster.api.rayjob import JobDeploymentStatus, SubmissionMode
from muster.controllers.rayjob.look import Look
from muster.controllers.rayjob.stopped import FORGOTTEN
from muster.controllers.rayjob.strays import take_down_first
from muster.controllers.runner import Requeue
from muster.ray import names
from muster.ray.selection import selected_cluster


async def begin(look: Look) -> Requeue | None:
    """Go to Initializing with a job id and a cluster name; a job that is born suspended takes no names yet.

    A start that is stored already is the first attempt's, and the job's. Nothing else of an attempt is left, whoever
    has written the status.
    """
    if await take_down_first(look):
        return None
    spec, name = look.job.spec, look.job.metadata.name
    anew = {**FORGOTTEN, "reason": None, "message": None}
    if spec.suspend:
        await look.write(**anew, job_deployment_status=JobDeploymentStatus.SUSPENDED.value)
        return None
    interactive = spec.mode == SubmissionMode.INTERACTIVE
    anew |= {
        "job_deployment_status": JobDeploymentStatus.INITIALIZING.value,
        # Interactive users make a job of their own, and say later which it is.
        "job_id": None if interactive else spec.job_id or _generated(look, name),
        "ray_cluster_name": selected_cluster(look.job) or _generated(look, name),
        "start_time": look.status.start_time or look.stamp(),
    }
    await look.write(**anew)
    return None


def _generated(look: Look, name: str) -> str:
    return names.generated(name, names.random_suffix(look.context.random))
