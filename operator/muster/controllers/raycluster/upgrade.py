"""Carries out `upgradeStrategy: Recreate`: a changed spec replaces all pods of the cluster.

First the old ones go, all at once; as long as one of them is there nothing new is made, so that no worker of the new
generation joins a head of the old one. A pod that a dead node keeps from going is waited for no longer than elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from muster.api.raycluster import RayCluster
from muster.controllers.context import Context
from muster.controllers.raycluster.place import keeps_place_until
from muster.kube.errors import ApiError, Conflict, NotFound
from muster.kube.objects import Pod
from muster.ray.cluster_conditions import ReplicaFailure
from muster.ray.pod_health import is_head, is_terminating
from muster.ray.upgrade import generation_annotations, generation_hash, is_known, is_outdated, recreates

_LONGEST_WAIT: Final = 60.0
"""Seconds; a pod whose end is not known yet is looked at again then."""


@dataclass(frozen=True, slots=True)
class Upgrade:
    """An upgrade under way: what went wrong with it, and the Unix second at which to look again if nothing happens."""

    until: float
    failure: ReplicaFailure | None = None
    error: ApiError | None = None


async def upgrade(context: Context, cluster: RayCluster, pods: Sequence[Pod]) -> Upgrade | None:
    """Let the pods of an older generation go; None when there are none (any more). `pods` are those of the cluster."""
    if not recreates(cluster.spec) or not pods:
        return None
    generation = generation_hash(cluster)
    await asyncio.gather(*(_adopt(context, pod, generation) for pod in pods if not is_known(pod.metadata.annotations)))
    old = [pod for pod in pods if is_outdated(pod.metadata.annotations, generation)]
    if not old:
        return None
    live = [pod for pod in old if not is_terminating(pod)]
    errors = [error for error in await asyncio.gather(*(_delete(context, pod) for pod in live)) if error is not None]
    if errors:
        message = f"Failed to delete Pods of an older spec (upgradeStrategy Recreate): {errors[0]}"
        context.say(cluster, "Warning", "FailedToDeletePod", message, "Delete")
        return Upgrade(0.0, ReplicaFailure("FailedDeleteAllPods", str(errors[0])), errors[0])
    if live:
        message = (
            f"Deleted all Pods of an older spec, {len(live)}: the spec was changed and upgradeStrategy is Recreate"
        )
        context.say(cluster, "Normal", "DeletedPod", message, "Delete")
    going = context.pods_of(cluster)
    ends = [keeps_place_until(pod) for pod in going if is_outdated(pod.metadata.annotations, generation)]
    now = context.clock.now()
    ends = [end for end in ends if end > now]
    return Upgrade(min(max(ends), now + _LONGEST_WAIT)) if ends else None


async def _adopt(context: Context, pod: Pod, generation: str) -> None:
    """Take a pod that does not tell its generation for one of the present."""
    if is_terminating(pod):
        return
    annotations = generation_annotations(generation, is_head=is_head(pod))
    try:
        await context.pods.patch(pod, {"metadata": {"annotations": annotations}})
    except (NotFound, Conflict):
        return  # it has gone meanwhile


async def _delete(context: Context, pod: Pod) -> ApiError | None:
    try:
        await context.pods.delete(pod)
    except ApiError as error:
        return error
    return None
