"""What is asked about, out of manifests or a snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from muster.explain.target import Kind, RayState, Target
from muster.kube.objects import ObjectMeta
from muster.simulator.manifests import DEFAULT_NAMESPACE, items_of
from muster.simulator.sources import Document

_KINDS: Final = {Kind.RAY_JOB: "RayJob", Kind.RAY_CLUSTER: "RayCluster"}


def ray_state(documents: list[Document], target: Target) -> RayState | None:
    """The RayJob or RayCluster that the target names; None for another kind, and where it is not there.

    Raises InputError for a document that is no object.
    """
    kind = _KINDS.get(target.kind)
    if kind is None:
        return None
    for document in documents:
        for _, body, api_version, found in items_of(document):
            if found != kind or not api_version.startswith("ray.io/"):
                continue
            state = _state(body)
            if state is not None and (state.metadata.namespace or DEFAULT_NAMESPACE, state.metadata.name) == (
                target.namespace,
                target.name,
            ):
                return state
    return None


def _state(body: Mapping[str, Any]) -> RayState | None:
    try:
        metadata = msgspec.convert(body.get("metadata") or {}, type=ObjectMeta)
    except msgspec.ValidationError:
        return None
    spec, status = body.get("spec"), body.get("status")
    suspended = isinstance(spec, Mapping) and spec.get("suspend") is True
    return RayState(metadata, suspended, status if isinstance(status, Mapping) else {})
