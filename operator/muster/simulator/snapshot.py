"""What a snapshot holds: everything that a cycle reads, and nothing that a cycle does not.

Objects are written as the types that the scheduler's decoders read, so that containers' environment, commands and
arguments, and everything else unread, stay out by construction; Secrets and ConfigMaps are never asked for. Of
annotations, which may hold whole manifests (kubectl's last-applied-configuration), only those go in that are read, and
what else known domains have.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from muster import __version__
from muster.engine import storage_specs, wire_keys
from muster.engine.companion_specs import described_companions
from muster.engine.times import rfc3339
from muster.kube.objects import ApiObject
from muster.kube.resource import RAYCLUSTERS, RAYJOBS, Resource
from muster.simulator.command_line import NOTHING_SAID, CommandLine
from muster.simulator.sources import CONFIGURATION, FLAGS

ABOUT: Final = "about.txt"
_DOMAINS: Final = ("volcano.sh", "muster.dev", "ray.io", "scheduling.k8s.io")
_OTHERS: Final = frozenset({*storage_specs.ANNOTATIONS, *wire_keys.SLA_WAITING_TIME})
"""Annotations of other domains, or none, that a cycle reads."""
_UNREADABLE: Final = '"left out: not readable"'
"""In place of companions that can't be read, so that they can't be read here either."""


class RaySwitches(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Of a RayJob's or RayCluster's spec only what tells whether it should run: pod templates hold environments."""

    suspend: bool | None = None


class RayObject(ApiObject, frozen=True):
    """A RayJob or RayCluster, so that `muster explain` finds its gang."""

    spec: RaySwitches = RaySwitches()
    status: dict[str, Any] = msgspec.field(default_factory=dict)


RAY_TYPES: Final[dict[Resource, type[ApiObject]]] = {RAYJOBS: RayObject, RAYCLUSTERS: RayObject}


def snapshot_zip(
    objects: Mapping[Resource, Iterable[ApiObject]],
    configuration: bytes | None,
    taken: float,
    command_line: CommandLine = NOTHING_SAID,
) -> bytes:
    """The zip: a file for each kind, the scheduler's configuration and flags, and a word about it for people."""
    content = io.BytesIO()
    at = datetime.fromtimestamp(int(taken), UTC)
    date = (max(1980, at.year), at.month, at.day, at.hour, at.minute, at.second)
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for resource, found in objects.items():
            _add(archive, f"{resource.plural}.json", _list_of(resource, found), date)
        if configuration is not None:
            _add(archive, CONFIGURATION, configuration, date)
        if flags := command_line.flags():
            _add(archive, FLAGS, "".join(f"{flag}\n" for flag in flags).encode(), date)
        _add(archive, ABOUT, _about(taken).encode(), date)
    return content.getvalue()


def _add(archive: zipfile.ZipFile, name: str, text: bytes, date: tuple[int, int, int, int, int, int]) -> None:
    entry = zipfile.ZipInfo(name, date)
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, text)


def _list_of(resource: Resource, objects: Iterable[ApiObject]) -> bytes:
    items = [_redacted(each) for each in objects]
    return msgspec.json.encode({"apiVersion": resource.api_version, "kind": f"{resource.kind}List", "items": items})


def _redacted(found: ApiObject) -> ApiObject:
    annotations = {key: value for key, value in found.metadata.annotations.items() if is_kept(key)}
    companions = annotations.pop(wire_keys.COMPANIONS, None)
    if companions is not None:
        annotations[wire_keys.COMPANIONS] = _redacted_companions(companions)
    metadata = msgspec.structs.replace(found.metadata, annotations=annotations)
    return msgspec.structs.replace(found, metadata=metadata)


def is_kept(annotation: str) -> bool:
    """Whether an annotation of this key goes into a snapshot."""
    domain = annotation.partition("/")[0]
    return annotation in _OTHERS or any(domain == known or domain.endswith(f".{known}") for known in _DOMAINS)


def _redacted_companions(text: str) -> str:
    """The pods that a gang will need later, reduced to what is read; nothing of what can't be read."""
    try:
        return msgspec.json.encode(described_companions(text)).decode()
    except ValueError:
        return _UNREADABLE


def _about(taken: float) -> str:
    return (
        f"A snapshot of what the scheduler reads, taken at {rfc3339(taken)} by muster {__version__}.\n"
        "Secrets, ConfigMaps, environments, commands and most annotations are left out.\n"
        f"To run the scheduler on it as of then: muster simulate --now {rfc3339(taken)} FILE\n"
    )
