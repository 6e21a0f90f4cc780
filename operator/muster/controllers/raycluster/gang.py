"""The gang of a cluster that stands alone. The pods of a RayJob's cluster are members of the RayJob's gang."""

from __future__ import annotations

from muster.api.raycluster import RayCluster
from muster.controllers.context import Context
from muster.controllers.gang import ensure_pod_group, ensure_queue, release_pod_group
from muster.ray.gang import made_by_ray_job, ray_cluster_pod_group


def has_own_pod_group(cluster: RayCluster) -> bool:
    """Whether the cluster's PodGroup is its own, and not its RayJob's; said also of a spec that no gang can have."""
    return not made_by_ray_job(cluster)


async def ensure_gang(context: Context, cluster: RayCluster) -> None:
    """Create or resize the PodGroup of a cluster of its own; none for a cluster of which we place no pod."""
    options = context.options
    manifest = ray_cluster_pod_group(cluster, options=options.pods, scheduler_name=options.scheduler_name)
    if manifest is None:
        return
    if manifest["spec"]["minMember"] == 0:
        await release_pod_group(context, cluster)
        return
    await ensure_pod_group(context, cluster, manifest)
    await ensure_queue(context, cluster)
