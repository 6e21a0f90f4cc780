"""The objects of one namespace in a form that two operators can be compared in.

What a control plane or chance decides is taken out: generated names, UIDs, times, addresses, what managers own. Each
object gets a key ("Pod workers 0") and its fields become paths ("spec/containers/ray-head/env/RAY_IP/value"), in which
an item of a list is known by its name where it has one. Empty and absent are one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Object = dict[str, Any]
Fields = dict[str, object]
NormalForm = dict[str, Fields]
"""The fields of each object by its key."""

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_ADDRESS = re.compile(r"10\.96\.\d+\.\d+")
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NODE_PORTS = range(30000, 32768)
_FORGOTTEN = ("resourceVersion", "generation", "generateName", "managedFields", "creationTimestamp", "uid", "namespace")
_IDENTITIES = ("name", "mountPath", "type", "containerPort")
_ORDERED = ("containers", "initContainers", "env")
_FAKED = ("Pod", "Job", "Service")


def normal_form(objects: Iterable[Object]) -> NormalForm:
    """Return the normal form of all objects that a namespace holds; `kind` is set in each."""
    objects = list(objects)
    written = json.dumps(objects)
    for name, stands_for in sorted(_chance(objects).items(), key=lambda item: -len(item[0])):
        written = written.replace(name, stands_for)
    known: list[Object] = json.loads(written)
    return {key: fields(_kept(one)) for key, one in _keyed(known) if not _is_hindrance(one)}


def fields(value: Object, path: str = "") -> Fields:
    """Return the fields of an object, or of the part of it that is found at the path."""
    return dict(_fields(value, path))


def _is_hindrance(one: Object) -> bool:
    """An event on a write that met another one and is tried again: it comes and goes."""
    return one["kind"] == "Event" and str(one.get("reason")).startswith("FailedTo")


def _chance(objects: list[Object]) -> dict[str, str]:
    """What chance has named, and what stands for it."""
    found: dict[str, str] = {}
    for one in objects:
        metadata, status = one["metadata"], one.get("status") or {}
        found[metadata["namespace"]] = "NAMESPACE"
        found[metadata["uid"]] = "UID"
        labels = metadata.get("labels") or {}
        if one["kind"] == "Pod":
            found[metadata["name"]] = f"POD-OF-{labels.get('ray.io/group')}"
        if one["kind"] == "RayJob":
            found |= _names_of_job(one, status)
        replica = labels.get("ray.io/worker-group-replica-name")
        if replica:
            found[replica] = f"REPLICA-{labels.get('ray.io/worker-group-replica-index')}"
    return found


def _names_of_job(job: Object, status: Mapping[str, Any]) -> dict[str, str]:
    """A RayJob's generated names: its cluster's and its submission id."""
    given = {job["spec"].get("jobId"), *(job["spec"].get("clusterSelector") or {}).values(), None, ""}
    names = {status.get("rayClusterName"): "CLUSTER-OF-JOB", status.get("jobId"): "ID-OF-JOB"}
    return {str(name): stands_for for name, stands_for in names.items() if name not in given}


def _keyed(objects: list[Object]) -> Iterator[tuple[str, Object]]:
    """Objects with their keys; pods of a group are counted, since their names say nothing."""
    counted: dict[str, int] = {}
    for one in sorted(objects, key=_place):
        key = _key(one)
        if one["kind"] in ("Pod", "Event"):
            number = counted.get(key, 0)
            counted[key] = number + 1
            if one["kind"] == "Event" and number:
                continue
            key = key if one["kind"] == "Event" else f"{key} {number}"
        yield key, one


def _place(one: Object) -> tuple[int, int, str]:
    labels = one["metadata"].get("labels") or {}
    index, host = (labels.get(f"ray.io/{name}", "0") for name in ("worker-group-replica-index", "replica-host-index"))
    return int(index), int(host), one["metadata"]["name"]


def _key(one: Object) -> str:
    if one["kind"] == "Event":
        about = one.get("regarding") or {}
        return f"Event {about.get('kind')} {one.get('reason')}"
    labels = one["metadata"].get("labels") or {}
    return f"{one['kind']} {labels.get('ray.io/group') if one['kind'] == 'Pod' else one['metadata']['name']}"


def _kept(one: Object) -> Object:
    """The part of an object that its operator decides."""
    if one["kind"] == "Event":
        return {"type": one.get("type")}
    metadata = {key: value for key, value in one["metadata"].items() if key not in _FORGOTTEN}
    if one["kind"] == "Pod":
        metadata.pop("name", None)
    rest = {key: value for key, value in one.items() if key not in ("metadata", "kind", "apiVersion")}
    if one["kind"] == "Secret":
        rest["data"] = dict.fromkeys(rest.get("data") or {}, "SECRET")
    if one["kind"] in _FAKED:
        rest.pop("status", None)
    return {"metadata": metadata, **rest}


def _fields(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from _fields(one, f"{path}/{key}" if path else str(key))
    elif isinstance(value, list):
        yield from _items(value, path)
    elif value is not None:
        yield path, _plain(value)


def _items(values: list[Any], path: str) -> Iterator[tuple[str, object]]:
    names = [_identity(value, number) for number, value in enumerate(values)]
    if len(set(names)) < len(names):
        names = [f"{name}.{number}" for number, name in enumerate(names)]
    if path.rpartition("/")[2] in _ORDERED and len(names) > 1:
        yield f"{path}/ORDER", " ".join(names)
    for name, value in zip(names, values, strict=True):
        yield from _fields(value, f"{path}/{name}")


def _identity(value: object, number: int) -> str:
    if isinstance(value, Mapping):
        return next((str(value[key]) for key in _IDENTITIES if value.get(key)), str(number))
    return str(number)


def _plain(value: object) -> object:
    if isinstance(value, str):
        if _UID.fullmatch(value):
            return "UID"
        if _TIME.fullmatch(value):
            return "TIME"
        if _ADDRESS.fullmatch(value):
            return "ADDRESS"
        if value.isdecimal() and int(value) in _NODE_PORTS:
            return "NODE-PORT"
    if isinstance(value, int) and value in _NODE_PORTS:
        return "NODE-PORT"
    return value
