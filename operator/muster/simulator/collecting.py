"""Reads from a running cluster what goes into a snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final

import msgspec

from muster.kube.client import ApiClient
from muster.kube.errors import ApiError, Expired, Forbidden, NotFound
from muster.kube.malformed import MalformedObject, decode_object
from muster.kube.objects import ApiObject
from muster.kube.resource import CONFIGMAPS, NODES, PODS, Resource
from muster.simulator.command_line import CONFIGURATION_FLAG, NOTHING_SAID, CommandLine, read_command_line, values_of
from muster.simulator.manifests import TYPES
from muster.simulator.snapshot import RAY_TYPES

DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", "Deployment")
_NEEDED: Final = frozenset({NODES, PODS})


@dataclass(slots=True)
class Collection:
    """What was found, and in words what was left out and why."""

    objects: dict[Resource, list[ApiObject]] = field(default_factory=dict)
    configuration: bytes | None = None
    command_line: CommandLine = NOTHING_SAID
    left_out: list[str] = field(default_factory=list)


async def collect(client: ApiClient, *, namespace: str, deployment: str) -> Collection:
    """List all kinds that a cycle reads, and the configuration and flags of Muster's own Deployment.

    A kind that the cluster does not have, or does not let us read, is left out. Raises ApiError where Nodes or Pods
    can't be read: there is nothing without them.
    """
    found = Collection()
    for resource, kind in {**TYPES, **RAY_TYPES}.items():
        try:
            found.objects[resource] = await _list(client, resource, kind, found.left_out)
        except (NotFound, Forbidden) as error:
            if resource in _NEEDED:
                raise
            found.left_out.append(f"{resource.plural}: {error.message}")
    try:
        pod = (await client.get(DEPLOYMENTS, namespace, deployment))["spec"]["template"]["spec"]
        found.command_line = _command_line(pod, found.left_out)
        found.configuration = await _configuration(client, namespace, pod)
    except (ApiError, LookupError, TypeError, AttributeError) as error:
        problem = error.message if isinstance(error, ApiError) else "it does not name one that can be read"
        found.left_out.append(f"the configuration of Deployment {namespace}/{deployment}: {problem}")
    return found


async def _list(client: ApiClient, resource: Resource, kind: type[ApiObject], left_out: list[str]) -> list[ApiObject]:
    decoder = msgspec.json.Decoder(kind)
    objects: list[ApiObject] = []
    for raw in await _raw(client, resource):
        one = decode_object(raw, decoder, resource)
        if isinstance(one, MalformedObject):
            place = f"{one.namespace}/{one.name}" if one.namespace else one.name
            left_out.append(f"{resource.kind} {place}: {one.path_message}")
        else:
            objects.append(one)
    return objects


async def _raw(client: ApiClient, resource: Resource) -> list[msgspec.Raw]:
    try:
        return [raw async for page in client.pages(resource) for raw in page.items or ()]
    except Expired:  # the pages took longer than the server keeps a moment: ask for all at once
        return [raw async for page in client.pages(resource, chunk=0) for raw in page.items or ()]


def _command_line(pod: Mapping[str, Any], left_out: list[str]) -> CommandLine:
    """The flags of the first container that has any."""
    for container in pod["containers"]:
        try:
            found = read_command_line(_arguments(container))
        except ValueError as error:
            left_out.append(f"the flags of container {container.get('name')}: {error}")
            continue
        if found != NOTHING_SAID:
            return found
    return NOTHING_SAID


async def _configuration(client: ApiClient, namespace: str, pod: Mapping[str, Any]) -> bytes:
    """The text of the file that a container's arguments name, out of the ConfigMap that is mounted there."""
    for container in pod["containers"]:
        for path in values_of(CONFIGURATION_FLAG, _arguments(container)):
            name = _config_map(pod, container, PurePosixPath(path))
            text: str = (await client.get(CONFIGMAPS, namespace, name))["data"][PurePosixPath(path).name]
            return text.encode()
    raise LookupError(CONFIGURATION_FLAG)


def _arguments(container: Mapping[str, Any]) -> list[str]:
    return [*(container.get("command") or []), *(container.get("args") or [])]


def _config_map(pod: Mapping[str, Any], container: Mapping[str, Any], path: PurePosixPath) -> str:
    mounts = {mount["name"]: PurePosixPath(mount["mountPath"]) for mount in container.get("volumeMounts") or []}
    for volume in pod.get("volumes") or []:
        if "configMap" in volume and mounts.get(volume["name"]) == path.parent:
            name: str = volume["configMap"]["name"]
            return name
    raise LookupError(str(path))
