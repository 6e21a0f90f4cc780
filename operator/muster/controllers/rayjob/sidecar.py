"""The submitter of SidecarMode, as its head pod's kubelet tells of it."""

from __future__ import annotations

from muster.api.rayjob import SubmissionMode
from muster.controllers.context import ObservedRayCluster
from muster.controllers.rayjob import cluster as job_cluster
from muster.controllers.rayjob.look import Look
from muster.controllers.rayjob.submission import Submitter, SubmitterState
from muster.kube.objects import Pod
from muster.ray.jobs_api import RayApiError
from muster.ray.submitter import CONTAINER


def in_head(look: Look) -> bool:
    """Whether the job's submitter is in the head pod."""
    return look.job.spec.mode == SubmissionMode.SIDECAR


def observe_sidecar(look: Look, cluster: ObservedRayCluster) -> Submitter:
    """How far the submitter has come."""
    head = job_cluster.live_head(look, cluster)
    return submitter_in(head) if head is not None else Submitter(SubmitterState.ABSENT)


def submitter_in(head: Pod) -> Submitter:
    """What the head pod's container says; the head lives."""
    if not any(container.name == CONTAINER for container in head.spec.containers):
        return Submitter(SubmitterState.ABSENT)
    found = next((status for status in head.status.container_statuses if status.name == CONTAINER), None)
    ended = found.state.terminated if found is not None else None
    if ended is None:
        return Submitter(SubmitterState.ACTIVE)
    if ended.exit_code == 0:
        return Submitter(SubmitterState.COMPLETE)
    why = f"Ray head pod container {CONTAINER} terminated with exit code {ended.exit_code}: {ended.reason or 'Error'}"
    return Submitter(SubmitterState.FAILED, why)


def head_has_begun(cluster: ObservedRayCluster) -> bool:
    """Whether there may be a dashboard to ask."""
    return bool((job_cluster.readable_status(cluster).get("head") or {}).get("podIP"))


async def ray_has_the_job(look: Look, cluster: ObservedRayCluster) -> bool:
    """Whether the submitter has been faster than the cluster, which need not be ready for it, and may never be.

    A short job may be over, and its submitter's end leaves the head pod without the condition Ready.
    """
    if not head_has_begun(cluster):
        return False
    try:
        async with job_cluster.asking(look, job_cluster.model(look, cluster)) as ray:
            await ray.get(str(look.status.job_id))
    except RayApiError:
        return False
    return True
