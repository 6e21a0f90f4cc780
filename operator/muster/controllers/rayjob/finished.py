"""States Complete and Failed: a Ray job that may still run is stopped, and the cluster goes when the spec says so.

While a cluster is kept its PodGroup stays as large as the cluster, because its pods still hold their places.
"""

from __future__ import annotations

from muster.api.rayjob import JobDeploymentStatus
from muster.controllers.clock import seconds_of
from muster.controllers.gang import release_pod_group
from muster.controllers.rayjob import cluster as job_cluster
from muster.controllers.rayjob.finalizer import drop_finalizer
from muster.controllers.rayjob.gang import keep_gang
from muster.controllers.rayjob.look import Look
from muster.controllers.rayjob.stopping import Stop, stop_ray_job
from muster.controllers.rayjob.submitter import delete_submitter, observe
from muster.controllers.rayjob.teardown import delete_cluster
from muster.controllers.runner import Requeue

STOP_SECONDS = 60.0
"""How long after the end a Ray job is tried to be stopped."""


async def clean_up(look: Look) -> Requeue | None:
    """Do what is due now; say when the next thing is."""
    again = [requeue for requeue in (await _stop(look), await _give_back(look)) if requeue is not None]
    return min(again, key=lambda requeue: requeue.after, default=None)


async def _stop(look: Look) -> Requeue | None:
    """Have Ray stop a job that outlived its attempt (a deadline), and keep its submitter from submitting it yet."""
    ended_at = seconds_of(look.status.end_time) or look.now
    if look.state == JobDeploymentStatus.FAILED and not look.ray_status.terminal and look.now < ended_at + STOP_SECONDS:
        if not observe(look).ended:
            await delete_submitter(look)
        result = await stop_ray_job(look)
        if isinstance(result, Stop) and result is not Stop.GONE:
            return Requeue(look.context.options.poll_interval)
        if not isinstance(result, Stop):
            await look.write(job_status=result.value)
    await drop_finalizer(look)
    return None


async def _give_back(look: Look) -> Requeue | None:
    spec = look.job.spec
    if spec.shutdown_after_job_finishes:
        due = (seconds_of(look.status.end_time) or look.now) + (spec.ttl_seconds_after_finished or 0)
        if due <= look.now:
            await release_pod_group(look.context, look.job)
            await delete_cluster(look)
            return None
        await _keep_pod_group(look)
        return Requeue(due - look.now)
    await _keep_pod_group(look)
    return None


async def _keep_pod_group(look: Look) -> None:
    cluster = await job_cluster.find(look)
    if cluster is None or not job_cluster.is_the_jobs(look, cluster) or cluster.metadata.deletion_timestamp is not None:
        await release_pod_group(look.context, look.job)
    else:
        await keep_gang(look, job_cluster.model(cluster), submitter_to_come=False)
