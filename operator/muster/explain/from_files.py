"""What is asked about, out of manifests or a snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    found = (each for each in _states(documents, kind) if _place(each) == (target.namespace, target.name))
    return next(found, None)


def ray_clusters(documents: list[Document], namespace: str) -> list[RayState]:
    """The RayClusters of a namespace. Raises InputError for a document that is no object."""
    return [each for each in _states(documents, _KINDS[Kind.RAY_CLUSTER]) if _place(each)[0] == namespace]


def _states(documents: list[Document], kind: str) -> Iterator[RayState]:
    for document in documents:
        for _, body, api_version, found in items_of(document):
            state = _state(body) if found == kind and api_version.startswith("ray.io/") else None
            if state is not None:
                yield state


def _place(state: RayState) -> tuple[str, str]:
    return state.metadata.namespace or "", state.metadata.name


def _state(body: Mapping[str, Any]) -> RayState | None:
    try:
        metadata = msgspec.convert(body.get("metadata") or {}, type=ObjectMeta)
    except msgspec.ValidationError:
        return None
    metadata = msgspec.structs.replace(metadata, namespace=metadata.namespace or DEFAULT_NAMESPACE)
    spec, status = body.get("spec"), body.get("status")
    suspended = isinstance(spec, Mapping) and spec.get("suspend") is True
    return RayState(metadata, suspended, status if isinstance(status, Mapping) else {})
