"""Which object an event is about."""

from __future__ import annotations

from muster.kube.events import ObjectReference
from muster.kube.objects import ObjectMeta
from muster.kube.resource import Resource


def reference(resource: Resource, metadata: ObjectMeta) -> ObjectReference:
    """The reference to one object of `resource`. Cluster-scoped objects have no namespace."""
    return ObjectReference(
        api_version=resource.api_version,
        kind=resource.kind,
        namespace=metadata.namespace or "",
        name=metadata.name,
        uid=metadata.uid,
    )
