"""The gang of a cluster that stands alone. The pods of a RayJob's cluster are members of the RayJob's gang."""

from __future__ import annotations

from dataclasses import replace

from muster.api.raycluster import RayCluster
from muster.api.rayjob import RayJob
from muster.controllers.context import Context
from muster.controllers.gang import ensure_pod_group, ensure_queue, membership, release_pod_group
from muster.ray import names
from muster.ray.gang import made_by_ray_job, ray_cluster_pod_group
from muster.ray.gang_membership import GangMembership
from muster.ray.labels import GROUP_NAME, ORIGINATED_FROM_KIND, ORIGINATED_FROM_NAME


def has_own_pod_group(context: Context, cluster: RayCluster) -> bool:
    """Whether the cluster's PodGroup is its own, and not its RayJob's; said also of a spec that no gang can have."""
    return not made_by_ray_job(cluster) and _left_behind(context, cluster) is None


def cluster_membership(context: Context, cluster: RayCluster) -> GangMembership | None:
    """How the cluster's pods become members of their gang; None where there are no gangs."""
    found, left_behind = membership(context, cluster), _left_behind(context, cluster)
    return found if found is None or left_behind is None else replace(found, pod_group=left_behind)


def _left_behind(context: Context, cluster: RayCluster) -> str | None:
    """The PodGroup of a RayJob that has left the cluster behind, as long as pods of the cluster are members of it: one
    that is replaced would be alone in a gang of the cluster's own.
    """
    origin = cluster.metadata.labels
    if made_by_ray_job(cluster) or origin.get(ORIGINATED_FROM_KIND) != RayJob.definition.kind:
        return None
    name = names.pod_group(origin.get(ORIGINATED_FROM_NAME, ""))
    members = (pod.metadata.annotations.get(GROUP_NAME) for pod in context.pods_of(cluster))
    return name if name in members else None


async def ensure_gang(context: Context, cluster: RayCluster) -> None:
    """Create or resize the PodGroup of a cluster of its own; none for a cluster of which we place no pod."""
    if not has_own_pod_group(context, cluster):
        return
    options = context.options
    manifest = ray_cluster_pod_group(cluster, options=options.pods, scheduler_name=options.scheduler_name)
    if manifest is None:
        return
    if manifest["spec"]["minMember"] == 0:
        await release_pod_group(context, cluster)
        return
    await ensure_pod_group(context, cluster, manifest)
    await ensure_queue(context, cluster)
