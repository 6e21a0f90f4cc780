"""State Waiting (InteractiveMode): the cluster is there for a user who submits to it and then says which job counts.

The cluster is up and holds its places, so everything that ends a job ends this one too: its deadlines (it does not run
before there is a job), a suspension, the loss of its cluster. A job whose mode is changed meanwhile is handed over as
the new mode says.
"""

from __future__ import annotations

from muster.api.rayjob import JobDeploymentStatus, SubmissionMode
from muster.controllers.primary import in_words
from muster.controllers.rayjob import cluster as job_cluster
from muster.controllers.rayjob.deadlines import deadlines
from muster.controllers.rayjob.ending import fail, fail_without_cluster
from muster.controllers.rayjob.finalizer import hold_finalizer
from muster.controllers.rayjob.gang import keep_gang_in_passing
from muster.controllers.rayjob.look import Look
from muster.controllers.rayjob.strays import delete_strays
from muster.controllers.rayjob.trouble import troubles_of
from muster.controllers.runner import Requeue
from muster.ray import names

ASK_FOR_JOB = "The cluster is ready; submit a job to it, then set spec.jobId to the job's id"


async def await_job_id(look: Look) -> Requeue | None:
    """Go to Running once `spec.jobId` names a job."""
    spec = look.job.spec
    if spec.suspend and not look.problems_with("suspend"):
        await look.write(job_deployment_status=JobDeploymentStatus.SUSPENDING.value)
        return None
    limits = deadlines(spec, look.started, look.attempt_started, running=False)
    if limits and limits[0].at <= look.now:
        await fail(look, limits[0].reason, limits[0].message)
        return None
    cluster = await job_cluster.find(look)
    if cluster is None or not job_cluster.stays(look, cluster):
        await fail_without_cluster(look, cluster)
        return None
    await delete_strays(look)
    if job_id := _job_id(look):
        await hold_finalizer(look)
        await look.write(
            job_deployment_status=JobDeploymentStatus.RUNNING.value, job_id=job_id, reason=None, message=None
        )
        return None
    troubles = await troubles_of(look, cluster)
    if await troubles.fail_fast():
        return None
    if not job_cluster.is_others(look, cluster):
        await keep_gang_in_passing(look, job_cluster.model(look, cluster), submitter_to_come=False)
    asked = in_words(look.problems_with("jobId")) or ASK_FOR_JOB
    await look.write(**troubles.over({"message": asked}), ray_cluster_status=job_cluster.status_copy(cluster))
    again = [limits[0].at - look.now] if limits else []
    if (hopeless := troubles.next_look()) is not None:
        again.append(hopeless)
    return Requeue(min(again)) if again else None


def _job_id(look: Look) -> str | None:
    """The job to follow, or, in a mode in which Muster hands it over, the one to make."""
    spec = look.job.spec
    if look.problems_with("jobId"):
        return None
    if spec.job_id or spec.mode == SubmissionMode.INTERACTIVE or look.problems_with("submissionMode"):
        return spec.job_id or None
    return names.generated(look.job.metadata.name, names.random_suffix(look.context.random))
