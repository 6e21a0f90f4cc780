"""The cluster that stands: its control plane, its nodes, and the pods that are not Muster's."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from urllib.parse import urlencode

import msgspec

from bench.api_client import ApiClient
from bench.controllers.arrivals import Failed
from bench.controllers.at_once import for_each
from bench.controllers.plane import POD_RANGE
from bench.standing import manifests
from bench.unlimited_plane import unlimited_plane
from tests.cluster.control_plane import ControlPlane
from tests.cluster.process import background_programs

_LOOK_SECONDS = 0.5
_UNBOUND = {"fieldSelector": "spec.nodeName="}
_NOT_RUNNING = {"fieldSelector": "status.phase!=Running"}


class _Metadata(msgspec.Struct, rename="camel"):
    remaining_item_count: int = 0


class _Page(msgspec.Struct):
    metadata: _Metadata
    items: list[msgspec.Raw]


_decode_page = msgspec.json.Decoder(_Page).decode


@contextmanager
def control_plane(*, kwok: bool, flags: Sequence[str] = ()) -> Iterator[ControlPlane]:
    """A control plane with Muster's definitions."""
    with unlimited_plane(kwok=kwok, flags=flags, pod_range=POD_RANGE) as plane:
        yield plane


def dead(plane: ControlPlane) -> str | None:
    """Which process of the control plane has ended; None while all run."""
    return next((f"{one.name} has ended" for one in background_programs(plane.folder) if one.pid is None), None)


async def make_nodes(client: ApiClient, count: int) -> None:
    """Make so many nodes."""
    await for_each(range(count), lambda index: client.create("/api/v1/nodes", manifests.node(index)))


async def make_namespaces(client: ApiClient, *names: str) -> None:
    """Make these namespaces, and those of the pods."""
    bodies = ({"metadata": {"name": name}} for name in (*manifests.NAMESPACES, *names))
    await for_each(bodies, lambda body: client.create("/api/v1/namespaces", body))


async def make_pods(client: ApiClient, count: int, nodes: int, *, are_running: bool) -> None:
    """Make so many pods, bound to the nodes in turn; if they are to run, with the status of running ones."""

    async def make(index: int) -> None:
        path = f"/api/v1/namespaces/{manifests.namespace(index)}/pods"
        body = manifests.pod(index, manifests.node_name(index % nodes))
        await client.create(path, body)
        if are_running:
            status = manifests.running_status(index)
            await client.merge(f"{path}/{body['metadata']['name']}/status", {"status": status})

    await for_each(range(count), make)


async def until_all_run(client: ApiClient, *, patience: float, dead: Callable[[], str | None]) -> None:
    """Return when kwok has said of all pods that they run. Raises Failed when `dead` says what has died, and when it
    has not after `patience` seconds.
    """
    deadline = time.monotonic() + patience
    while (await _first(client, "/api/v1/pods", _NOT_RUNNING)).items:
        if (what := dead()) is not None:
            raise Failed(what)
        if time.monotonic() > deadline:
            raise Failed(f"not all pods run after {patience:g} s")
        await asyncio.sleep(_LOOK_SECONDS)


async def faults_of(client: ApiClient, *, nodes: int, pods: int) -> list[str]:
    """What is wrong on a cluster that should have so many nodes, and so many pods which are all bound."""
    found_nodes, found_pods = await count(client, "/api/v1/nodes"), await count(client, "/api/v1/pods")
    unbound, _ = await client.list("/api/v1/pods", _UNBOUND)
    faults = []
    if found_nodes != nodes:
        faults.append(f"{found_nodes} nodes; {nodes} should be there")
    if found_pods != pods or unbound:
        faults.append(f"{found_pods} pods, {len(unbound)} of them not bound; {pods} should be there, all bound")
    return faults


async def count(client: ApiClient, path: str) -> int:
    """How many objects are in a collection."""
    page = await _first(client, path, {})
    return len(page.items) + page.metadata.remaining_item_count


async def _first(client: ApiClient, path: str, query: Mapping[str, str]) -> _Page:
    return _decode_page(await client.text(f"{path}?{urlencode({**query, 'limit': '1'})}"))
