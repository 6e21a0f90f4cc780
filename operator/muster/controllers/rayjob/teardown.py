"""Taking an attempt down: what it holds is given back first, then submitter and cluster go, to their last pod."""

from __future__ import annotations

import math
from dataclasses import dataclass

from muster.api.rayjob import JobStatus
from muster.controllers.clock import seconds_of, timestamp
from muster.controllers.gang import release_pod_group
from muster.controllers.raycluster.place import keeps_place_until
from muster.controllers.rayjob import cluster as job_cluster
from muster.controllers.rayjob.finalizer import drop_finalizer, holds_finalizer
from muster.controllers.rayjob.look import Look
from muster.controllers.rayjob.stopping import Stop, say_not_stopped, stop_ray_job
from muster.controllers.rayjob.strays import name_stray
from muster.controllers.rayjob.submitter import delete_submitter
from muster.controllers.runner import Requeue
from muster.kube.objects import Pod, controller_of
from muster.kube.resource import PODS, RAYCLUSTERS
from muster.ray.selection import runs_elsewhere

STOP_SECONDS = 60.0
"""How long a dashboard that does not answer is asked to stop the job on a cluster that stays."""


@dataclass(frozen=True, slots=True)
class Teardown:
    """How far it has come: `done`, or when to look again (None: when something changes).

    `left` says what could not be taken down.
    """

    done: bool
    requeue: Requeue | None = None
    left: str | None = None


async def tear_down(look: Look) -> Teardown:
    """Go on taking the attempt down.

    The PodGroup is released before the cluster goes, so that its phase does not fall back while pods disappear and its
    quota is free at once. The next attempt must not meet pods of this one, so the last pod is waited for; one that a
    dead node never confirms counts as gone after a while. On a cluster that others made the job is stopped and nothing
    goes; a dashboard that does not answer is asked for `STOP_SECONDS`. Other clusters of the job's own go the same way,
    one after the other.
    """
    await release_pod_group(look.context, look.job)
    submitter_gone = await delete_submitter(look)
    cluster_gone = await delete_cluster(look)
    cluster = await job_cluster.find(look)
    stays = cluster is not None and job_cluster.is_others(look, cluster)
    stopping = await _stop(look) if submitter_gone and stays else Teardown(True)
    if not stopping.done:
        return stopping
    ends = [] if stays else _pods_until(look)
    if not (submitter_gone and cluster_gone) or math.inf in ends:
        return Teardown(False)
    if ends:
        return Teardown(False, Requeue(max(ends) - look.now))
    if await name_stray(look):
        return Teardown(False, Requeue(0))
    await drop_finalizer(look)
    return stopping


async def delete_cluster(look: Look) -> bool:
    """Delete the job's own cluster; whether it is gone. A cluster that is not the job's is never touched."""
    cluster = await job_cluster.find(look)
    if cluster is None or not job_cluster.is_the_jobs(look, cluster):
        return True
    await job_cluster.delete(look, cluster)
    return look.context.ray_clusters.get(cluster.metadata.namespace, cluster.metadata.name) is None


async def _stop(look: Look) -> Teardown:
    """Have Ray stop the job on a cluster that stays."""
    result = await _ask_to_stop(look) if holds_finalizer(look) else Stop.GONE
    if result is Stop.GONE or isinstance(result, JobStatus):
        return Teardown(True)
    if result is Stop.UNKNOWN and (left := await _given_up(look)) is not None:
        return Teardown(True, left=left)
    if result is Stop.STOPPING:
        message = f"Ray has been asked to stop job {look.status.job_id}, and it still runs"
        await look.write(job_status_check_failure_start_time=None, message=message)
    return Teardown(False, Requeue(look.context.recent_answers.rest(look.key) or look.context.options.poll_interval))


async def _ask_to_stop(look: Look) -> Stop | JobStatus:
    """A dashboard that has just given no answer of use is not asked again at once: to note that wakes the job."""
    circumstances = ("stop", look.attempt, look.status.job_id)
    if look.context.recent_answers.of(look.key, circumstances) is Stop.UNKNOWN:
        return Stop.UNKNOWN
    result = await stop_ray_job(look)
    if result is Stop.UNKNOWN:
        look.context.recent_answers.keep(look.key, circumstances, result)
    return result


async def _given_up(look: Look) -> str | None:
    """What to tell when the dashboard has been silent for too long; the time counts from the first silence on."""
    since = seconds_of(look.status.job_status_check_failure_start_time)
    if since is not None and look.now >= since + STOP_SECONDS:
        return say_not_stopped(look, STOP_SECONDS)
    message = (
        f"The dashboard of RayCluster {look.status.ray_cluster_name} gives no answer of use; "
        f"for {STOP_SECONDS:.0f} s it is asked to stop Ray job {look.status.job_id}"
    )
    await look.write(job_status_check_failure_start_time=timestamp(since or look.now), message=message)
    return None


def _pods_until(look: Look) -> list[float]:
    """Until when each pod that is left of the job's own cluster keeps its place (Unix seconds)."""
    name, namespace = look.status.ray_cluster_name, look.job.metadata.namespace
    if not name or runs_elsewhere(look.job):
        return []
    look.context.job_interests.add(f"{namespace}/{look.job.metadata.name}", PODS, f"{namespace}/{name}")
    pods = [pod for pod in look.context.pods_labelled(namespace, name) if _is_made_by(pod, name)]
    ends = [keeps_place_until(pod) for pod in pods]
    return [end for end in ends if end > look.now]


def _is_made_by(pod: Pod, ray_cluster: str) -> bool:
    """Whether the pod goes when the cluster does. One that only carries the label, or was orphaned, need not go."""
    owner = controller_of(pod.metadata)
    return owner is not None and (owner.kind, owner.name) == (RAYCLUSTERS.kind, ray_cluster)
