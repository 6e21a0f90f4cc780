"""Giving up the API server's record of who set which field (`metadata.managedFields`), where nobody has a use for it.

The record serves server-side apply. The API server works it out at every write of an object that has one, which is a
third of its work for a pod from its gate to its start; an object whose record was cleared has none from then on. So the
first write that Muster's scheduler has to make anyway clears it, on pods and PodGroups that a RayCluster or RayJob
controls: Muster's controllers made them, and nobody applies them. What users or other controllers made keeps it.

Source: Kubernetes documentation, Server-Side Apply, "Clearing managedFields".
"""

from __future__ import annotations

from typing import Any, Final

from muster.engine.wire_keys import RAY
from muster.kube.objects import ObjectMeta

CLEARED: Final[list[dict[str, Any]]] = [{}]
"""The value of `managedFields` that clears them; an empty list would leave them as they are."""


def may_be_cleared(metadata: ObjectMeta) -> bool:
    """Whether the object was made by Muster's controllers."""
    return any(each.controller and each.api_version.startswith(RAY) for each in metadata.owner_references)
