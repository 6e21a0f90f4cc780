"""States Complete and Failed: a Ray job that may still run is stopped, and the cluster goes when the spec says so.

While a cluster is kept its PodGroup stays as large as the cluster, because its pods still hold their places. A gang
that never had a place gives everything back when its job has failed, whatever the spec says: it would only claim one
later, for a cluster that nobody waits for (P7).
"""

from __future__ import annotations

from muster.api.rayjob import JobDeploymentStatus, JobStatus
from muster.controllers.clock import seconds_of
from muster.controllers.gang import release_pod_group
from muster.controllers.rayjob import cluster as job_cluster
from muster.controllers.rayjob.deleting import delete_what_is_due
from muster.controllers.rayjob.ending import RAY_CLUSTER_LOST
from muster.controllers.rayjob.finalizer import drop_finalizer, holds_finalizer
from muster.controllers.rayjob.gang import keep_gang_in_passing
from muster.controllers.rayjob.look import Look
from muster.controllers.rayjob.sidecar import in_head
from muster.controllers.rayjob.stopping import Stop, say_not_stopped, stop_ray_job
from muster.controllers.rayjob.strays import delete_strays
from muster.controllers.rayjob.submitter import delete_submitter, find_submitter, submitter_of
from muster.controllers.rayjob.teardown import delete_cluster
from muster.controllers.rayjob.verdict import RAY_JOB_LOST
from muster.controllers.runner import Requeue
from muster.kube.errors import Conflict
from muster.ray.selection import runs_elsewhere

STOP_SECONDS = 60.0
"""How long after the end a Ray job is tried to be stopped."""
SUBMITTER_SECONDS = 30.0
"""How long after the end the submitter of a job that Ray had may take to notice."""


async def clean_up(look: Look) -> Requeue | None:
    """Do what is due now; say when the next thing is.

    A Ray job or a submitter that can't be stopped keeps nobody's nodes: what is to be given back goes all the same.
    """
    try:
        stopping = await _stop(look)
    except Conflict:  # what is to be given back is for the next look to say, which knows what has changed
        raise
    except Exception:
        await _give_back(look)
        raise
    again = [requeue for requeue in (stopping, await _give_back(look)) if requeue is not None]
    return min(again, key=lambda requeue: requeue.after, default=None)


async def _stop(look: Look) -> Requeue | None:
    """See to it that nothing of a failed attempt goes on: no Ray job, and no submitter that could start one anew.

    The finalizer says that this has not been done yet: so it is tried once also when the time for it has passed, which
    it may have while the operator was away.
    """
    ended_at = seconds_of(look.status.end_time) or look.now
    in_time = look.now < ended_at + STOP_SECONDS
    again = stopping = None
    if look.state == JobDeploymentStatus.FAILED and (in_time or holds_finalizer(look)):
        lost = look.status.reason in (RAY_JOB_LOST, RAY_CLUSTER_LOST)
        may_start = lost or look.ray_status is JobStatus.NEW
        if may_start:
            again = await _silence_submitter(look)
        if may_start or not look.ray_status.terminal:
            stopping = await _stop_ray_job(look)
            if stopping is not None and not may_start:
                # Its next pod would run the job again on a head that comes back without it.
                await _silence_submitter(look)
            again = stopping or again
    if again is not None and in_time:
        return again
    if stopping is not None:
        say_not_stopped(look, STOP_SECONDS)
    await drop_finalizer(look)
    return None


async def _stop_ray_job(look: Look) -> Requeue | None:
    """Have Ray stop the job that outlived its attempt (a deadline, say), and store its end when Ray confirms it."""
    result = await stop_ray_job(look)
    if isinstance(result, JobStatus):
        if not look.ray_status.terminal:
            await look.write(job_status=result.value)
        return None
    return None if result is Stop.GONE else Requeue(look.context.options.poll_interval)


async def _silence_submitter(look: Look) -> Requeue | None:
    """Let a submitter that has submitted end by itself, for its log; delete one that might submit (again)."""
    found = find_submitter(look)
    if found is None or submitter_of(found).ended:
        return None
    ended_at = seconds_of(look.status.end_time) or look.now
    knows_its_job = look.ray_status is not JobStatus.NEW and found.status.failed == 0
    if knows_its_job and look.now < ended_at + SUBMITTER_SECONDS:
        return Requeue(look.context.options.poll_interval)
    await delete_submitter(look)
    return None


async def _give_back(look: Look) -> Requeue | None:
    await delete_strays(look)
    if runs_elsewhere(look.job):
        return await delete_what_is_due(look)
    if await _never_had_a_place(look) or _would_run_yet(look):
        await release_pod_group(look.context, look.job)
        await delete_cluster(look)
        return await delete_what_is_due(look)
    await _keep_pod_group(look)
    return await delete_what_is_due(look)


def _would_run_yet(look: Look) -> bool:
    """Whether the head of the failed job's cluster, present or to come, would start the job by itself."""
    lost = look.status.reason in (RAY_JOB_LOST, RAY_CLUSTER_LOST)
    return look.state == JobDeploymentStatus.FAILED and in_head(look) and (lost or look.ray_status is JobStatus.NEW)


async def _never_had_a_place(look: Look) -> bool:
    """Whether the job failed while its whole gang waited: it never ran, and no pod of its cluster has a node."""
    if look.state != JobDeploymentStatus.FAILED or look.status.dashboard_url:
        return False
    cluster = await job_cluster.find(look)
    if cluster is None:
        return True
    if not job_cluster.is_the_jobs(look, cluster):
        return False
    pods = look.context.pods.owned_by(look.job.metadata.namespace, cluster.metadata.uid)
    return not any(pod.spec.node_name for pod in pods)


async def _keep_pod_group(look: Look) -> None:
    cluster = await job_cluster.find(look)
    if cluster is None or not job_cluster.is_the_jobs(look, cluster) or cluster.metadata.deletion_timestamp is not None:
        await release_pod_group(look.context, look.job)
    elif not look.problems:  # else there may be no telling what size it should have
        await keep_gang_in_passing(look, job_cluster.model(look, cluster), submitter_to_come=False)
