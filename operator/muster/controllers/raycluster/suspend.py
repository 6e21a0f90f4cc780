"""Suspension of a cluster: what it holds is given back first, then its pods go."""

from __future__ import annotations

import asyncio

from muster.api.raycluster import RayCluster
from muster.controllers.context import Context
from muster.controllers.gang import release_pod_group
from muster.controllers.raycluster.gang import has_own_pod_group
from muster.controllers.raycluster.pod_news import pods_in_words
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
    if has_own_pod_group(context, cluster):
        await release_pod_group(context, cluster)
    pods = [pod for pod in context.pods_of(cluster) if not is_terminating(pod)]
    tried = await asyncio.gather(*(_delete(context, pod) for pod in pods))
    deleted = [pod.key for pod, outcome in zip(pods, tried, strict=True) if outcome is True]
    if deleted:
        context.say(
            cluster, "Normal", "DeletedPod", pods_in_words("Deleted", deleted, "its cluster is suspended"), "Delete"
        )
    failures = [(pod, outcome) for pod, outcome in zip(pods, tried, strict=True) if isinstance(outcome, ApiError)]
    if not failures:
        return None
    # One stands for all: the others fail for the same reason, at each try.
    pod, error = failures[0]
    message = f"Failed to delete Pod {pod.key} due to suspension: {error}"
    context.say(cluster, "Warning", "FailedToDeletePod", message, "Delete")
    return ReplicaFailure("FailedDeleteAllPods", str(error)), error


async def _delete(context: Context, pod: Pod) -> ApiError | bool:
    """Whether it is this look that has deleted the pod, or why it could not."""
    try:
        return await context.pods.delete(pod)
    except ApiError as error:
        return error
