"""The Ingress of a cluster: made where it is asked for, kept as the spec says, taken away when it is not wanted.

A cluster works without it, so nothing that goes wrong here holds up the pods: it is told, and tried again.
"""

from __future__ import annotations

from typing import Any, Final

from muster.api.raycluster import RayCluster
from muster.controllers.children import NotOurs, controlled_by
from muster.controllers.context import Context
from muster.controllers.raycluster.offspring import ensure
from muster.kube.errors import Forbidden, Invalid
from muster.kube.objects import Ingress
from muster.ray import labels, names
from muster.ray.ingress import head_ingress

_AGAIN_SECONDS: Final = 10.0
_REFUSED_SECONDS: Final = 60.0


async def ensure_ingress(context: Context, cluster: RayCluster) -> float | None:
    """Make the Ingress what the spec asks for; the seconds after which to look again, None where nothing is amiss."""
    try:
        if cluster.spec.head_group_spec.enable_ingress:
            await _keep(context, cluster)
        else:
            await _take_away(context, cluster)
    except NotOurs as conflict:
        message = f"{conflict}; the dashboard has no Ingress until it is gone"
        context.say(cluster, "Warning", "NameTaken", message, "Create", subject=conflict.name)
        return _AGAIN_SECONDS
    except (Invalid, Forbidden):
        return _REFUSED_SECONDS  # told already; a changed spec is looked at when it comes
    return None


async def _keep(context: Context, cluster: RayCluster) -> None:
    manifest = head_ingress(cluster)
    found = await ensure(context, cluster, context.ingresses, manifest)
    wanted = manifest["metadata"]["annotations"]
    if found.metadata.annotations.get(labels.SPEC_HASH) == wanted[labels.SPEC_HASH]:
        return
    try:
        updated = await _update(context, found, manifest)
    except (Invalid, Forbidden) as refusal:
        message = f"Failed to update Ingress {found.key}: {refusal}"
        context.say(cluster, "Warning", "FailedToUpdateIngress", message, "Update")
        raise
    message = f"Updated ingress {found.key}"
    context.say(cluster, "Normal", "UpdatedIngress", message, "Update", change=updated.metadata.resource_version)


async def _update(context: Context, found: Ingress, manifest: dict[str, Any]) -> Ingress:
    if not found.metadata.annotations:  # there is nothing yet for the new ones to be added to
        found = await context.ingresses.patch(found, {"metadata": {"annotations": {labels.SPEC_HASH: ""}}})
    return await context.ingresses.replace_spec(found, manifest["spec"], manifest["metadata"]["annotations"])


async def _take_away(context: Context, cluster: RayCluster) -> None:
    found = context.ingresses.get(cluster.metadata.namespace, names.head_ingress(cluster.metadata.name))
    if found is None or found.metadata.deletion_timestamp or not controlled_by(found.metadata, cluster.metadata.uid):
        return
    if await context.ingresses.delete(found):
        message = f"Deleted ingress {found.key}: headGroupSpec.enableIngress is not true any more"
        context.say(cluster, "Normal", "DeletedIngress", message, "Delete")
