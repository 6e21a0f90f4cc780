"""The services of a cluster. Each is made once and belongs to its user from then on."""

from __future__ import annotations

from muster.api.raycluster import RayCluster
from muster.controllers.context import Context
from muster.controllers.raycluster.offspring import ensure
from muster.kube.objects import Service
from muster.ray import names
from muster.ray.serve_service import serve_service, wants_serve_service
from muster.ray.services import head_service, headless_worker_service


async def ensure_services(context: Context, cluster: RayCluster) -> None:
    """Create the head service, and where they are needed those for hosts and for Ray Serve. Raises NotOurs."""
    with_ip = context.options.pods.head_cluster_ip
    await ensure(context, cluster, context.services, head_service(cluster, with_cluster_ip=with_ip))
    for_hosts = headless_worker_service(cluster)
    if for_hosts is not None:
        await ensure(context, cluster, context.services, for_hosts)
    if wants_serve_service(cluster.metadata.annotations):
        await ensure(context, cluster, context.services, serve_service(cluster))


def observed_head_service(context: Context, cluster: RayCluster) -> Service | None:
    """The head service as it is."""
    name = names.head_service(cluster.metadata.name, cluster.spec.head_group_spec.head_service)
    return context.services.get(cluster.metadata.namespace, name)
