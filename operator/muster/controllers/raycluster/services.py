"""The services of a cluster. Each is made once and belongs to its user from then on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.api.raycluster import RayCluster
from muster.controllers.context import Context
from muster.kube.errors import ApiError
from muster.kube.objects import Service
from muster.ray import names
from muster.ray.services import head_service, headless_worker_service


async def ensure_services(context: Context, cluster: RayCluster) -> None:
    """Create the head service, and the one for multi-host workers where there are any. Raises NotOurs."""
    await _ensure(context, cluster, head_service(cluster))
    for_hosts = headless_worker_service(cluster)
    if for_hosts is not None:
        await _ensure(context, cluster, for_hosts)


def observed_head_service(context: Context, cluster: RayCluster) -> Service | None:
    """The head service as it is."""
    name = names.head_service(cluster.metadata.name, cluster.spec.head_group_spec.head_service)
    return context.services.get(cluster.metadata.namespace, name)


async def _ensure(context: Context, cluster: RayCluster, manifest: Mapping[str, Any]) -> None:
    key = f"{manifest['metadata']['namespace']}/{manifest['metadata']['name']}"
    try:
        found, created = await context.services.ensure(manifest, cluster.metadata.uid)
    except ApiError as error:
        context.say(
            cluster,
            "Warning",
            "FailedToCreateService",
            f"Failed to create Service {key}: {error}",
            "Create",
            subject=key,
        )
        raise
    if created:
        context.say(cluster, "Normal", "CreatedService", f"Created service {key}", "Create", change=found.metadata.uid)
