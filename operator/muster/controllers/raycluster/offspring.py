"""What is made for a cluster once and told about: created if it is missing, never taken over from somebody else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from muster.api.raycluster import RayCluster
from muster.controllers.children import Children
from muster.controllers.context import Context
from muster.kube.errors import ApiError
from muster.kube.objects import ApiObject

T = TypeVar("T", bound=ApiObject)


async def ensure(context: Context, cluster: RayCluster, children: Children[T], manifest: Mapping[str, Any]) -> T:
    """The cluster's object of this name, created if there is none. Raises NotOurs and the API server's refusals."""
    kind = children.resource.kind
    key = f"{manifest['metadata']['namespace']}/{manifest['metadata']['name']}"
    try:
        found, created = await children.ensure(manifest, cluster)
    except ApiError as error:
        message = f"Failed to create {kind} {key}: {error}"
        context.say(cluster, "Warning", f"FailedToCreate{kind}", message, "Create", subject=key)
        raise
    if created:
        message = f"Created {kind.lower()} {key}"
        context.say(cluster, "Normal", f"Created{kind}", message, "Create", change=found.metadata.uid)
    return found
