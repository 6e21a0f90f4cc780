"""Objects that do not have the shape they should: found, named with the path of the fault, and kept apart.

The API server keeps whatever a permissive CRD lets through, a string for an integer included. Such an object is left
out of the informer's store; all others go on. Where only the status can't be read, of a kind whose status is made anew
anyhow, those of its fields count as absent.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

import msgspec

from muster.kube.errors import UNREADABLE, Undecodable
from muster.kube.objects import ObjectMeta
from muster.kube.resource import Resource

T = TypeVar("T")

_IN_STATUS: Final = re.compile(r"status(?:\.(?P<field>\w+))?[.:\[].*", re.DOTALL)
_WITH_PATH: Final = re.compile(r"(?P<message>.*) - at `(?:key in )?\$\.?(?P<path>.*)`", re.DOTALL)


@dataclass(frozen=True, slots=True)
class MalformedObject:
    """An object that could not be read; `path_message` is `spec.minMember: Expected int, got str`, say."""

    resource: Resource
    namespace: str | None
    name: str
    path_message: str
    uid: str = ""
    resource_version: str = ""
    metadata: ObjectMeta | None = None
    """None where not even that can be read."""

    @property
    def key(self) -> str:
        """`namespace/name`, or `name` alone."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def __str__(self) -> str:
        return f"{self.resource.kind} {self.key} can't be read: {self.path_message}; correct it or delete it"


class UnreadableObject(Undecodable):
    """The server has answered with an object that can't be read; the message names it and the field."""

    def __init__(self, found: MalformedObject) -> None:
        super().__init__(str(found))
        self.found = found


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str | None = None
    uid: str = ""
    resource_version: str = ""


class Envelope(msgspec.Struct):
    """The least that every object has: who it is and which version."""

    metadata: _Metadata


def decode_envelope(raw: bytes | msgspec.Raw) -> Envelope:
    """Who an object is, whatever the rest of it holds. Raises Undecodable for something that is no object at all."""
    try:
        return msgspec.json.decode(raw, type=Envelope)
    except UNREADABLE as error:
        raise Undecodable(f"not an object: {error}") from error


def decode_object(raw: msgspec.Raw, decoder: msgspec.json.Decoder[T], resource: Resource) -> T | MalformedObject:
    """The object, or what is wrong with it. Raises Undecodable for something that is no object at all."""
    try:
        return decoder.decode(raw)
    except UNREADABLE as error:
        return read_again(raw, cast("type[T]", decoder.type), resource, error)


def read_again(raw: bytes | msgspec.Raw, kind: type[T], resource: Resource, error: Exception) -> T | MalformedObject:
    """What is left of an object that was not read for this error: all but its status, if that is all it needs.

    Raises Undecodable for something that is no object at all.
    """
    try:
        return _without_unreadable_status(raw, kind, error)
    except UNREADABLE as fault:
        return _malformed(raw, resource, fault)


def _without_unreadable_status(raw: bytes | msgspec.Raw, kind: type[T], error: Exception) -> T:
    """Raises the fault that is not in the status, or all faults where the status is needed."""
    if not getattr(kind, "status_is_derived", False):
        raise error
    body: dict[str, Any] = msgspec.json.decode(raw, type=dict)
    while (place := _IN_STATUS.fullmatch(path_message(error))) is not None:
        if place["field"] is None:
            del body["status"]
        else:
            del body["status"][place["field"]]
        try:
            return msgspec.convert(body, type=kind)
        except UNREADABLE as fault:
            error = fault
    raise error


def _malformed(raw: bytes | msgspec.Raw, resource: Resource, error: Exception) -> MalformedObject:
    meta = decode_envelope(raw).metadata
    return MalformedObject(
        resource,
        meta.namespace,
        meta.name,
        path_message(error),
        meta.uid,
        meta.resource_version,
        _metadata(raw),
    )


class _WithMetadata(msgspec.Struct):
    metadata: ObjectMeta


def _metadata(raw: bytes | msgspec.Raw) -> ObjectMeta | None:
    try:
        return msgspec.json.decode(raw, type=_WithMetadata).metadata
    except UNREADABLE:
        return None


def path_message(error: Exception) -> str:
    """What msgspec says, the path first and in Kubernetes' spelling: `spec.minMember: Expected int, got str`."""
    found = _WITH_PATH.fullmatch(str(error))
    if found is None:
        return str(error)
    message = found["message"].replace("`", "")
    return f"{found['path']}: {message}" if found["path"] else message
