"""State Running: the Ray job is looked at until there is a verdict.

The Jobs API can't be watched, so it is asked every few seconds while the job runs, and at once when the submitter or
the head has changed; what else wakes the job is looked at with the answer that there is. The cluster is watched: one
that goes away under the job ends the attempt.

The spec may be edited into what can't work meanwhile. That is told, and what has been begun goes on as if the refused
fields were not there; a job that Ray has not got yet is handed over when they have been corrected.
"""

from __future__ import annotations

from muster.api.raycluster import RayCluster
from muster.api.rayjob import JobDeploymentStatus, JobFailedReason, JobStatus, SubmissionMode
from muster.controllers.clock import seconds_of
from muster.controllers.context import ObservedRayCluster
from muster.controllers.primary import in_words
from muster.controllers.rayjob import cluster as job_cluster
from muster.controllers.rayjob.deadlines import deadlines
from muster.controllers.rayjob.ending import complete, fail, fail_without_cluster
from muster.controllers.rayjob.gang import in_passing, keep_gang_in_passing
from muster.controllers.rayjob.head_service import ensure_head_service
from muster.controllers.rayjob.look import Look
from muster.controllers.rayjob.sidecar import in_head, observe_sidecar
from muster.controllers.rayjob.strays import delete_strays
from muster.controllers.rayjob.submission import Submitter
from muster.controllers.rayjob.submitter import ensure_submitter, observe, submitter_version
from muster.controllers.rayjob.trouble import Troubles, troubles_of
from muster.controllers.rayjob.verdict import Complete, Decision, Fail, Missing, Sight, Silent, Stay, Submit, judge
from muster.controllers.runner import Requeue
from muster.ray.authentication import token_env
from muster.ray.job_info import JobInfo
from muster.ray.jobs_api import JobNotFound, RayApiError, SubmissionRefused
from muster.ray.submitter import submission

_HANDED_OVER = (
    "submissionMode",
    "entrypoint",
    "entrypointNumCpus",
    "entrypointNumGpus",
    "entrypointResources",
    "runtimeEnvYAML",
    "submitterPodTemplate",
    "submitterConfig",
)
"""What of the spec decides how a job comes to Ray, and what Ray is given."""


async def follow(look: Look) -> Requeue | None:
    """One look at a running job."""
    if look.job.spec.suspend and not look.problems_with("suspend"):
        state = JobDeploymentStatus.SUSPENDING.value
        # From now on it counts how long the dashboard can't be told to stop the job.
        await look.write(job_deployment_status=state, job_status_check_failure_start_time=None)
        return None
    limits = deadlines(look.job.spec, look.started, look.attempt_started, running=True)
    if limits and limits[0].at <= look.now:
        await fail(look, limits[0].reason, limits[0].message)
        return None
    cluster = await job_cluster.find(look)
    if cluster is None or not job_cluster.stays(look, cluster):
        await fail_without_cluster(look, cluster)
        return None
    await delete_strays(look)
    await _follow_other_job(look)
    await _look_after(look, cluster)
    next_deadline = [limits[0].at - look.now] if limits else []
    ask_again = look.context.recent_answers.rest(look.key) or look.context.options.poll_interval
    return Requeue(min([ask_again, *next_deadline]))


async def _follow_other_job(look: Look) -> None:
    """Interactive users may correct the job's id as long as Ray knows no job of the one that they gave."""
    wanted = None if look.problems_with("jobId") else look.job.spec.job_id
    if look.job.spec.mode == SubmissionMode.INTERACTIVE and wanted and look.ray_status is JobStatus.NEW:
        await look.write(job_id=wanted)


async def _look_after(look: Look, cluster: ObservedRayCluster) -> None:
    troubles = await troubles_of(look, cluster)
    if await troubles.fail_fast():
        return
    model = job_cluster.model(look, cluster)
    submitter = observe_sidecar(look, cluster) if in_head(look) else observe(look)
    if not job_cluster.is_others(look, cluster):
        await _keep_up(look, model, submitter)
    if look.ray_status.terminal:
        await _carry_out(look, cluster, troubles, judge(_sight(look, cluster, None, submitter)))
        return
    decision = await _decide(look, cluster, model, submitter)
    if isinstance(decision, Submit):
        look.context.recent_answers.forget(look.key)
        await _hand_over(look, model)
    else:
        await _carry_out(look, cluster, troubles, decision)


async def _carry_out(look: Look, cluster: ObservedRayCluster, troubles: Troubles, decision: Decision) -> None:
    match decision:
        case Fail(reason, message, changes):
            await fail(look, reason, message, **changes)
        case Complete(changes):
            await complete(look, **changes)
        case Stay(changes):
            told = troubles.over(changes)
            # It is looked at again in any case.
            await look.write_once_settled(**told, ray_cluster_status=job_cluster.status_copy(cluster))


async def _keep_up(look: Look, cluster: RayCluster, submitter: Submitter) -> None:
    """Keep gang and service of the job's own cluster as they should be."""
    await keep_gang_in_passing(look, cluster, submitter_to_come=not submitter.ended)
    await in_passing(look, "head service", ensure_head_service(look, cluster))


async def _decide(look: Look, cluster: ObservedRayCluster, model: RayCluster, submitter: Submitter) -> Decision:
    """What follows from what Ray says of the job, or has said a moment ago.

    An old answer decides nothing but to go on: the status may be newer, by the hand of somebody who has asked since.
    """
    circumstances = (
        look.attempt,
        look.status.job_id,
        job_cluster.dashboard(look, model),
        job_cluster.head_is_gone(look, cluster),
        submitter,
        submitter_version(look),
    )
    recent = look.context.recent_answers.of(look.key, circumstances)
    if isinstance(recent, JobInfo | Missing | Silent):
        decision = judge(_sight(look, cluster, recent, submitter))
        if isinstance(decision, Stay):
            return decision
    answer = await _ask(look, model)
    look.context.recent_answers.keep(look.key, circumstances, answer)
    return judge(_sight(look, cluster, answer, submitter))


async def _ask(look: Look, cluster: RayCluster) -> JobInfo | Missing | Silent:
    try:
        return await job_cluster.ask(look, cluster, lambda ray: ray.get(str(look.status.job_id)))
    except JobNotFound:
        return Missing()
    except RayApiError as error:
        return Silent(str(error))


def _sight(
    look: Look, cluster: ObservedRayCluster, answer: JobInfo | Missing | Silent | None, submitter: Submitter
) -> Sight:
    status, options = look.status, look.context.options
    return Sight(
        mode=look.job.spec.mode,
        job_id=str(status.job_id),
        recorded=look.ray_status,
        info=status.ray_job_info,
        message=status.message,
        answer=answer,
        submitter=submitter,
        silent_since=seconds_of(status.job_status_check_failure_start_time),
        now=look.now,
        status_check_timeout=options.status_check_timeout,
        submitter_grace=options.submitter_grace,
        head_gone=job_cluster.head_is_gone(look, cluster),
    )


async def _hand_over(look: Look, cluster: RayCluster) -> None:
    """Ray has never had the job. That it has it now is stored at once: from then on it is never handed over again."""
    problems = look.problems_with(*_HANDED_OVER)
    if problems:
        await look.write(message=in_words(problems))
        return
    if look.job.spec.mode == SubmissionMode.K8S_JOB:
        await ensure_submitter(look, str(look.status.dashboard_url), token_env(cluster))
        return
    wanted = submission(look.job, str(look.status.job_id))
    try:
        await job_cluster.ask(look, cluster, lambda ray: ray.submit(wanted))
    except SubmissionRefused as refusal:
        await fail(look, JobFailedReason.SUBMISSION_FAILED, f"Ray refuses the job: {refusal.message}")
    except RayApiError as error:
        await _not_taken(look, error)
    else:
        await look.write(job_status=JobStatus.PENDING.value, message=None, job_status_check_failure_start_time=None)


async def _not_taken(look: Look, error: RayApiError) -> None:
    """Ray may take the job later; how long that is waited for counts from when it gave its last answer of use."""
    since, timeout = look.status.job_status_check_failure_start_time, look.context.options.status_check_timeout
    if since is None:
        await look.write(message=str(error), job_status_check_failure_start_time=look.stamp())
    elif look.now >= (seconds_of(since) or 0.0) + timeout:
        await fail(look, JobFailedReason.SUBMISSION_FAILED, f"Ray has not taken the job for {timeout:.0f} s: {error}")
    else:
        await look.write_once_settled(message=str(error))
