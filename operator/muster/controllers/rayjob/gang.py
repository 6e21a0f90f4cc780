"""The gang of a RayJob: sized to its cluster, with a place kept for the submitter while one is to come."""

from __future__ import annotations

from collections.abc import Awaitable

from muster.api.raycluster import RayCluster
from muster.api.rayjob import SubmissionMode
from muster.controllers.children import NotOurs
from muster.controllers.gang import ensure_pod_group, membership
from muster.controllers.rayjob.look import Look
from muster.controllers.setbacks import Setbacks
from muster.kube.errors import ApiError, Conflict, Forbidden, Invalid
from muster.ray.gang import ray_job_pod_group
from muster.ray.submitter import submitter_template


async def keep_gang(look: Look, cluster: RayCluster | None = None, *, submitter_to_come: bool) -> None:
    """Create the job's PodGroup or bring its size up to date. Raises NotOurs.

    `cluster` is the job's cluster as it is now, from which the size is taken once there is one.
    """
    manifest = ray_job_pod_group(
        look.job,
        _submitter(look) if submitter_to_come else None,
        cluster_spec=cluster.spec if cluster is not None else None,
        options=look.context.options.pods,
        scheduler_name=look.context.options.scheduler_name,
    )
    await ensure_pod_group(look.context, look.job, manifest)


async def keep_gang_in_passing(look: Look, cluster: RayCluster, *, submitter_to_come: bool) -> None:
    """As `keep_gang`, for a job that has been begun: a bad edit of its spec changes nothing, a refusal is told."""
    if not look.problems:
        await in_passing(look, "gang", keep_gang(look, cluster, submitter_to_come=submitter_to_come))


async def in_passing(look: Look, subject: str, work: Awaitable[None]) -> None:
    """Do what serves the job; whatever comes of it keeps nobody from seeing how the job ends.

    A refusal is told, and a failure that lasts; the next look tries again, and comes soon where it may go better.
    """
    setbacks = look.context.setbacks_in_passing.setdefault(look.key, Setbacks(look.context.clock))
    try:
        await work
    except NotOurs as conflict:
        look.say("Warning", "NameTaken", str(conflict), "Create", subject=conflict.name)
    except (Invalid, Forbidden) as refusal:
        look.say_refused(refusal, subject)
    except Conflict:  # somebody else was faster
        look.hindered = True
    except ApiError as error:
        look.hindered = True
        if setbacks.last(subject):
            look.say_failing(error, subject)
    else:
        setbacks.over(subject)


def _submitter(look: Look) -> dict[str, object] | None:
    if look.job.spec.mode != SubmissionMode.K8S_JOB:
        return None
    options = look.context.options
    gang = membership(look.context, look.job)
    spec: dict[str, object] = submitter_template(look.job, image=options.submitter_image, gang=gang)["spec"]
    return spec
