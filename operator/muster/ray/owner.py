"""Owner references: what a custom resource made is deleted with it."""

from __future__ import annotations

from typing import Any

from muster.api.raycluster import RayCluster
from muster.api.rayjob import RayJob


def owner_reference(owner: RayCluster | RayJob) -> dict[str, Any]:
    """The controller reference to this owner."""
    return {
        "apiVersion": "ray.io/v1",
        "kind": owner.definition.kind,
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
