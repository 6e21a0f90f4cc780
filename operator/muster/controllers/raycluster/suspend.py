"""Suspension of a cluster: what it holds is given back first, then its pods go."""

from __future__ import annotations

import asyncio

from muster.api.raycluster import RayCluster
from muster.controllers.context import Context
from muster.controllers.gang import release_pod_group
from muster.controllers.raycluster.gang import has_own_pod_group
from muster.kube.errors import ApiError
from muster.kube.objects import Pod
from muster.ray.cluster_conditions import SUSPENDING, ReplicaFailure
from muster.ray.pod_health import condition, is_terminating


def suspending_is_recorded(cluster: RayCluster) -> bool:
    """Whether the status says already that the suspension has begun. From then on it goes through (atomic)."""
    found = condition((cluster.status.conditions if cluster.status else None) or [], SUSPENDING)
    return found is not None and found.status == "True"


async def give_everything_back(context: Context, cluster: RayCluster) -> tuple[ReplicaFailure, ApiError] | None:
    """Release the cluster's PodGroup and delete its pods; say what failed."""
    if has_own_pod_group(cluster):
        await release_pod_group(context, cluster)
    pods = [pod for pod in context.pods.owned_by(cluster.metadata.uid) if not is_terminating(pod)]
    failures = [error for error in await asyncio.gather(*(_delete(context, cluster, pod) for pod in pods)) if error]
    return (ReplicaFailure("FailedDeleteAllPods", str(failures[0])), failures[0]) if failures else None


async def _delete(context: Context, cluster: RayCluster, pod: Pod) -> ApiError | None:
    try:
        deleted = await context.pods.delete(pod)
    except ApiError as error:
        message = f"Failed to delete Pod {pod.key} due to suspension: {error}"
        context.say(cluster, "Warning", "FailedToDeletePod", message, "Delete")
        return error
    if deleted:
        context.say(cluster, "Normal", "DeletedPod", f"Deleted Pod {pod.key} due to suspension", "Delete")
    return None
