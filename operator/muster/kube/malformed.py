"""Objects that do not have the shape they should: found, named with the path of the fault, and kept apart.

The API server keeps whatever a permissive CRD lets through, a string for an integer included. Such an object is left
out of the informer's store; all others go on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec

from muster.kube.errors import UNREADABLE, Undecodable
from muster.kube.objects import ApiObject
from muster.kube.resource import Resource

T = TypeVar("T", bound=ApiObject)

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


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str | None = None
    uid: str = ""
    resource_version: str = ""


class Envelope(msgspec.Struct):
    """The least that every object has: who it is and which version."""

    metadata: _Metadata


def decode_envelope(raw: msgspec.Raw) -> Envelope:
    """Who an object is, whatever the rest of it holds. Raises Undecodable for something that is no object at all."""
    try:
        return msgspec.json.decode(raw, type=Envelope)
    except UNREADABLE as error:
        raise Undecodable(f"not an object: {error}") from error


def decode_object(raw: msgspec.Raw, decoder: msgspec.json.Decoder[T], resource: Resource) -> T | MalformedObject:
    """The object, or what is wrong with it."""
    try:
        return decoder.decode(raw)
    except UNREADABLE as error:
        meta = decode_envelope(raw).metadata
        return MalformedObject(
            resource, meta.namespace, meta.name, path_message(error), meta.uid, meta.resource_version
        )


def path_message(error: Exception) -> str:
    """What msgspec says, the path first and in Kubernetes' spelling: `spec.minMember: Expected int, got str`."""
    found = _WITH_PATH.fullmatch(str(error))
    if found is None:
        return str(error)
    message = found["message"].replace("`", "")
    return f"{found['path']}: {message}" if found["path"] else message
