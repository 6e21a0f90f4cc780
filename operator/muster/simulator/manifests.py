"""Documents to typed objects, by the types that the informers decode into."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, TypeVar

import msgspec

from muster.kube.device_objects import DeviceClass, ResourceClaim, ResourceSlice
from muster.kube.malformed import path_message
from muster.kube.objects import ApiObject, Node, ObjectMeta, Pod, PodGroup, PriorityClass, Queue
from muster.kube.policy_objects import PodDisruptionBudget, ResourceQuota
from muster.kube.resource import (
    CSINODES,
    DEVICECLASSES,
    NAMESPACES,
    NODES,
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    PODDISRUPTIONBUDGETS,
    PODGROUPS,
    PODS,
    PRIORITYCLASSES,
    QUEUES,
    RAYCLUSTERS,
    RAYJOBS,
    RESOURCECLAIMS,
    RESOURCEQUOTAS,
    RESOURCESLICES,
    STORAGECLASSES,
    Resource,
)
from muster.kube.storage_objects import CSINode, Namespace, PersistentVolume, PersistentVolumeClaim, StorageClass
from muster.simulator.input_error import InputError, Place
from muster.simulator.sources import Document

DEFAULT_NAMESPACE: Final = "default"

T = TypeVar("T", bound=ApiObject)
T_co = TypeVar("T_co", bound=ApiObject, covariant=True)


@dataclass(frozen=True, slots=True)
class Found(Generic[T_co]):
    """An object and where it stands."""

    place: Place
    object: T_co


TYPES: Final[dict[Resource, type[ApiObject]]] = {
    PODS: Pod,
    NODES: Node,
    PODGROUPS: PodGroup,
    QUEUES: Queue,
    PRIORITYCLASSES: PriorityClass,
    RESOURCEQUOTAS: ResourceQuota,
    PODDISRUPTIONBUDGETS: PodDisruptionBudget,
    NAMESPACES: Namespace,
    STORAGECLASSES: StorageClass,
    CSINODES: CSINode,
    PERSISTENTVOLUMES: PersistentVolume,
    PERSISTENTVOLUMECLAIMS: PersistentVolumeClaim,
    DEVICECLASSES: DeviceClass,
    RESOURCESLICES: ResourceSlice,
    RESOURCECLAIMS: ResourceClaim,
}
_FOR_EXPLAIN: Final = frozenset((each.group, each.kind) for each in (RAYJOBS, RAYCLUSTERS))
"""A snapshot has these for `muster explain`; of a cycle's business there are only their pods."""
_BY_KIND: Final = {(resource.group, resource.kind): resource for resource in TYPES}


@dataclass(slots=True)
class Manifests:
    """The objects by kind, and how many there were of kinds that do not matter here."""

    objects: dict[Resource, list[Found[ApiObject]]] = field(default_factory=lambda: {each: [] for each in TYPES})
    passed_over: Counter[str] = field(default_factory=Counter)

    def of(self, resource: Resource, _type: type[T]) -> list[Found[T]]:
        """The objects of one kind."""
        return self.objects[resource]  # type: ignore[return-value]


def read_manifests(documents: list[Document]) -> Manifests:
    """Sort objects by kind, Lists taken apart. Raises InputError for the first one that can't be used.

    Whoever has no namespace is in `default`; a missing uid is the namespace and name.
    """
    found = Manifests()
    known: dict[tuple[Resource, str], Place] = {}
    owners: dict[tuple[Resource, str], Place] = {}
    for document in documents:
        for place, body, api_version, kind in items_of(document):
            resource = _BY_KIND.get((api_version.rpartition("/")[0], kind))
            if resource is None:
                if not (place.observed and (api_version.rpartition("/")[0], kind) in _FOR_EXPLAIN):
                    found.passed_over[kind] += 1
                continue
            one = _complete(_decoded(place, body, resource), resource, place)
            _refuse_twins(known, (resource, one.key), place, "metadata.name", one.key)
            _refuse_twins(owners, (resource, one.metadata.uid), place, "metadata.uid", one.metadata.uid)
            found.objects[resource].append(Found(place, one))
    return found


def items_of(document: Document) -> Iterator[tuple[Place, Mapping[str, Any], str, str]]:
    """The objects of a document, with their apiVersion and kind; those of a typed list inherit them from it."""
    place, body = document.place, document.content
    if not isinstance(body, Mapping):
        raise InputError(place, "", f"must be an object, not {type(body).__name__}")
    place = replace(place, about=_name(body))
    kind, api_version = _text(place, body, "kind"), _text(place, body, "apiVersion")
    if not kind.endswith("List") or "items" not in body:
        yield place, body, api_version, kind
        return
    items = body["items"] or []
    if not isinstance(items, list):
        raise InputError(place, "items", f"must be a list, not {type(items).__name__}")
    inherited = {} if kind == "List" else {"apiVersion": api_version, "kind": kind.removesuffix("List")}
    for number, item in enumerate(items, 1):
        inside = replace(place, item=number, about="")
        if not isinstance(item, Mapping):
            raise InputError(inside, "", f"must be an object, not {type(item).__name__}")
        yield from items_of(Document(inside, {**inherited, **item}))


def _text(place: Place, body: Mapping[str, Any], name: str) -> str:
    found = body.get(name)
    if isinstance(found, str) and found:
        return found
    if found:
        raise InputError(place, name, f"must be text, not {found!r}")
    raise InputError(place, name, "is missing")


def _decoded(place: Place, body: Mapping[str, Any], resource: Resource) -> ApiObject:
    kind = TYPES[resource]
    try:
        return msgspec.convert(body, type=kind)
    except (msgspec.ValidationError, RecursionError):
        pass
    try:  # Kubernetes reads a null like an absent field; few manifests have one, so nobody else pays for it
        return msgspec.convert(_without_nulls(body), type=kind)
    except msgspec.ValidationError as error:
        path, _, problem = path_message(error).partition(": ")
        raise InputError(place, path, problem) from error
    except RecursionError as error:
        raise InputError(place, "", "nested too deep") from error


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_without_nulls(each) for each in value]
    return value


def _name(body: Mapping[str, Any]) -> str:
    """`Pod default/p`, or what of it can be told."""
    kind, group = body.get("kind"), str(body.get("apiVersion", "")).rpartition("/")[0]
    meta = body.get("metadata")
    name, namespace = (meta.get("name"), meta.get("namespace")) if isinstance(meta, Mapping) else (None, None)
    if not (isinstance(name, str) and name):
        lists = isinstance(kind, str) and kind.endswith("List")
        return kind if isinstance(kind, str) and not lists else ""
    resource = _BY_KIND.get((group, kind)) if isinstance(kind, str) else None
    if resource is not None:
        namespace = (namespace or DEFAULT_NAMESPACE) if resource.namespaced else None
    key = f"{namespace}/{name}" if isinstance(namespace, str) and namespace else name
    return f"{kind} {key}" if isinstance(kind, str) and kind else key


def _complete(found: T, resource: Resource, place: Place) -> T:
    meta: ObjectMeta = found.metadata
    if not meta.name:
        raise InputError(place, "metadata.name", "is missing")
    namespace = (meta.namespace or DEFAULT_NAMESPACE) if resource.namespaced else None
    uid = meta.uid or (f"{namespace}/{meta.name}" if namespace else meta.name)
    if namespace == meta.namespace and uid == meta.uid:
        return found
    return msgspec.structs.replace(found, metadata=msgspec.structs.replace(meta, namespace=namespace, uid=uid))


def _refuse_twins(
    seen: dict[tuple[Resource, str], Place], key: tuple[Resource, str], place: Place, path: str, what: str
) -> None:
    first = seen.setdefault(key, place)
    if first is not place:
        raise InputError(place, path, f"{what} is there already: {first}")
