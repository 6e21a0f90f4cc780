"""State Initializing: gang, queue, cluster; once the cluster is ready, the submitter.

The PodGroup comes first, so that no pod is ever seen without its gang. While something is missing the status says what.
Until the job is submitted a changed `rayClusterSpec` is passed on to the cluster, so that a gang which waits can be
made smaller, or its pods corrected, without losing its place in the queue.
"""

from __future__ import annotations

from typing import Any, Final

from muster.api.rayjob import JobDeploymentStatus, JobFailedReason, SubmissionMode
from muster.controllers.context import ObservedRayCluster
from muster.controllers.gang import QUEUE_CLOSED, closed_queue, ensure_queue
from muster.controllers.rayjob import cluster as job_cluster
from muster.controllers.rayjob.deadlines import deadlines
from muster.controllers.rayjob.ending import fail
from muster.controllers.rayjob.finalizer import hold_finalizer
from muster.controllers.rayjob.gang import keep_gang
from muster.controllers.rayjob.interactive import ASK_FOR_JOB
from muster.controllers.rayjob.look import Look
from muster.controllers.rayjob.selecting import begin_again_elsewhere, select
from muster.controllers.rayjob.sidecar import head_has_begun, in_head, ray_has_the_job
from muster.controllers.rayjob.strays import begin_again_alone
from muster.controllers.rayjob.submitter import ensure_submitter, find_submitter
from muster.controllers.rayjob.trouble import Troubles, troubles_of
from muster.controllers.rayjob.waiting import begins_to_wait, why_waiting
from muster.controllers.runner import Requeue
from muster.kube.errors import Invalid
from muster.kube.resource import QUEUES
from muster.ray.authentication import token_env
from muster.ray.gang import pod_group_name, queue_name
from muster.ray.selection import runs_elsewhere

UNSCHEDULABLE: Final = "Unschedulable"
"""Event reason of a job whose gang waits for a place; that of the PodGroup's event, too."""


async def initialize(look: Look) -> Requeue | None:
    """Bring gang and cluster about, then hand over to Running, or to Waiting."""
    if look.job.spec.suspend:
        await look.write(job_deployment_status=JobDeploymentStatus.SUSPENDING.value)
        return None
    limits = deadlines(look.job.spec, look.started, look.attempt_started, running=False)
    if limits and limits[0].at <= look.now:
        await fail(look, limits[0].reason, limits[0].message)
        return None
    if await begin_again_elsewhere(look) or await begin_again_alone(look):
        return None
    cluster = await (select(look) if runs_elsewhere(look.job) else _bring_about(look))
    if cluster is not None and await _may_be_submitted(look, cluster):
        await _submit(look, cluster)
        return None
    troubles = await troubles_of(look, cluster)
    if await troubles.fail_fast():
        return None
    again = [limits[0].at - look.now] if limits else []
    if cluster is not None and (settled := await _tell(look, cluster, troubles)) is not None:
        again.append(settled)
    if (hopeless := troubles.next_look()) is not None:
        again.append(hopeless)
    if cluster is not None and in_head(look) and head_has_begun(cluster):
        again.append(look.context.options.poll_interval)
    return Requeue(min(again)) if again else None


async def _tell(look: Look, cluster: ObservedRayCluster, troubles: Troubles) -> float | None:
    """Say in the status what is waited for; in how many seconds to look again, if that may soon be over."""
    name, before = pod_group_name(look.job), look.status.message
    group = look.context.pod_groups.get(look.job.metadata.namespace, name)
    told = troubles.over({"message": why_waiting(job_cluster.readable_status(cluster), group)})
    settled = await look.write_once_settled(**told, ray_cluster_status=job_cluster.status_copy(cluster))
    if begins_to_wait(before, look.status.message):
        # Once for each wait: what becomes of the reason is told on the PodGroup.
        message = f"{look.status.message} (events of PodGroup {name} tell how it goes on)"
        look.say("Warning", UNSCHEDULABLE, message, "Schedule")
    return settled


async def _may_be_submitted(look: Look, cluster: ObservedRayCluster) -> bool:
    """Whether the job may be in Ray from now on, or is there already."""
    return job_cluster.is_ready(look, cluster) or (in_head(look) and await ray_has_the_job(look, cluster))


async def _bring_about(look: Look) -> ObservedRayCluster | None:
    cluster = await job_cluster.find(look)
    outdated = cluster is not None and find_submitter(look) is None and job_cluster.is_outdated(look, cluster)
    # The gang has its new size before its members come and go.
    like = job_cluster.model(look, cluster) if cluster is not None and not outdated else job_cluster.planned(look)
    await keep_gang(look, like, submitter_to_come=True)
    await ensure_queue(look.context, look.job)
    if cluster is None and await _queue_is_closed(look):
        return None
    cluster = await job_cluster.ensure(look)
    return await job_cluster.update(look, cluster) if outdated else cluster


async def _queue_is_closed(look: Look) -> bool:
    """Whether the job has to wait for its queue before any pod is made for it. The PodGroup stands for it meanwhile."""
    complaint, meta = closed_queue(look.context, look.job), look.job.metadata
    if complaint is None:
        return False
    look.context.job_interests.add(f"{meta.namespace}/{meta.name}", QUEUES, str(queue_name(look.job)))
    look.say("Warning", QUEUE_CLOSED, complaint, "Validate")
    await look.write(message=complaint)
    return True


async def _submit(look: Look, cluster: ObservedRayCluster) -> None:
    """The cluster is ready: from here on a Ray job may run; an interactive user's is waited for."""
    model = job_cluster.model(look, cluster)
    address = look.context.dashboards.address(job_cluster.dashboard(look, model))
    if look.job.spec.mode == SubmissionMode.INTERACTIVE or not look.status.job_id:
        await _hand_over(look, cluster, address, JobDeploymentStatus.WAITING, ASK_FOR_JOB, job_id=None)
        return
    await hold_finalizer(look)
    if look.job.spec.mode == SubmissionMode.K8S_JOB:
        try:
            await ensure_submitter(look, address, token_env(model))
        except Invalid as refusal:
            message = f"spec.submitterPodTemplate: the API server refuses the submitter's Job: {refusal.message}"
            await fail(look, JobFailedReason.SUBMISSION_FAILED, message)
            return
    await _hand_over(look, cluster, address, JobDeploymentStatus.RUNNING)


async def _hand_over(
    look: Look,
    cluster: ObservedRayCluster,
    address: str,
    state: JobDeploymentStatus,
    message: str | None = None,
    **changes: Any,
) -> None:
    await look.write(
        job_deployment_status=state.value,
        dashboard_url=address,
        ray_cluster_status=job_cluster.status_copy(cluster),
        reason=None,
        message=message,
        **changes,
    )
