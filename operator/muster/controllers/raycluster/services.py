"""The services of a cluster. Each is made once and belongs to its user from then on."""

from __future__ import annotations

from muster.api.raycluster import RayCluster
from muster.controllers.context import Context
from muster.controllers.primary import in_words
from muster.controllers.raycluster.offspring import ensure
from muster.controllers.template_judge import read_refusal
from muster.kube.errors import Invalid
from muster.kube.objects import Service
from muster.kube.resource import SERVICES
from muster.ray import names
from muster.ray.serve_service import serve_service, wants_serve_service
from muster.ray.services import head_service, headless_worker_service
from muster.ray.validation.made import made_service


async def ensure_services(context: Context, cluster: RayCluster) -> None:
    """Create the head service, and where they are needed those for hosts and for Ray Serve. Raises NotOurs."""
    await _ensure_head_service(context, cluster)
    for_hosts = headless_worker_service(cluster)
    if for_hosts is not None:
        await ensure(context, cluster, context.services, for_hosts)
    if wants_serve_service(cluster.metadata.annotations):
        await ensure(context, cluster, context.services, serve_service(cluster))


async def _ensure_head_service(context: Context, cluster: RayCluster) -> None:
    """What is wrong with it is told by the user's field: ports and addresses of nodes are tried out by nothing else."""
    try:
        manifest = head_service(cluster, with_cluster_ip=context.options.pods.head_cluster_ip)
        await ensure(context, cluster, context.services, manifest)
    except Invalid as refusal:
        made = made_service(cluster, "spec", context.options.pods)
        told = [made.told(problem) for problem in read_refusal(refusal, SERVICES.kind, within="")]
        raise Invalid(refusal.status, refusal.reason, in_words(told) if told else refusal.message) from refusal


def observed_head_service(context: Context, cluster: RayCluster) -> Service | None:
    """The head service as it is."""
    name = names.head_service(cluster.metadata.name, cluster.spec.head_group_spec.head_service)
    return context.services.get(cluster.metadata.namespace, name)
