"""What kopf is told of the custom resources, and what reaches the workqueue."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from aiohttp import web

from muster.controllers.custom_resources import CustomResourceWatch, Handover
from muster.kube.config import Connection
from muster.kube.resource import RAYCLUSTERS

DEADLINE = 60.0


_VERSION = {"groupVersion": "ray.io/v1", "version": "v1"}
_NAMESPACES = {"name": "namespaces", "singularName": "namespace", "kind": "Namespace", "namespaced": False}
_KIND = {"name": "rayclusters", "singularName": "raycluster", "kind": "RayCluster", "namespaced": True}
_DISCOVERY: dict[str, dict[str, Any]] = {
    "/version": {},
    "/api": {"versions": ["v1"]},
    "/api/v1": {"resources": [{**_NAMESPACES, "verbs": ["list", "watch"]}]},
    "/apis": {"groups": [{"name": "ray.io", "versions": [_VERSION], "preferredVersion": _VERSION}]},
    "/apis/ray.io/v1": {"resources": [{**_KIND, "verbs": ["list", "watch", "patch"]}]},
}


class ClusterServer:
    """An API server that knows RayClusters only: it lists `there`, and its watch tells what `tell` is given."""

    def __init__(self, *there: dict[str, Any]) -> None:
        self.there = there
        self.writes: list[str] = []
        self._events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    def tell(self, kind: str, cluster: dict[str, Any]) -> None:
        self._events.put_nowait({"type": kind, "object": cluster})

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.method != "GET":
            self.writes.append(f"{request.method} {request.path}")
        if request.path in _DISCOVERY:
            return web.json_response(_DISCOVERY[request.path])
        if request.path != "/apis/ray.io/v1/rayclusters":
            return web.json_response({}, status=404)
        if "watch" not in request.query:
            return web.json_response({"metadata": {"resourceVersion": "1"}, "items": list(self.there)})
        return await self._watch(request)

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        with suppress(ConnectionError):
            while True:
                await response.write(json.dumps(await self._events.get()).encode() + b"\n")
        return response

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[Connection]:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.answer)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            yield Connection(f"http://127.0.0.1:{runner.addresses[0][1]}")
        finally:
            await runner.cleanup()


def cluster(name: str, version: int, **annotations: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": "team", "uid": name, "resourceVersion": str(version), "annotations": annotations}
    return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": meta, "spec": {"rayVersion": "2.52.0"}}


@asynccontextmanager
async def watched(server: ClusterServer) -> AsyncIterator[asyncio.Queue[tuple[str, str]]]:
    """The keys and versions that come from a watch on that server's RayClusters."""
    told: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    def put(key: str, version: str) -> None:
        told.put_nowait((key, version))

    async with server.serve() as connection:
        watch = asyncio.create_task(CustomResourceWatch(connection, {RAYCLUSTERS: put}).run())
        try:
            yield told
        finally:
            watch.cancel()
            with suppress(asyncio.CancelledError):
                await watch


async def heard(told: asyncio.Queue[tuple[str, str]]) -> tuple[str, str]:
    async with asyncio.timeout(DEADLINE):
        return await told.get()


async def test_what_is_listed_and_what_changes_comes_as_keys_with_versions_and_nothing_is_written() -> None:
    server = ClusterServer(cluster("old", 1))
    async with watched(server) as told:
        assert await heard(told) == ("team/old", "1")
        for version, kind in enumerate(("ADDED", "MODIFIED", "DELETED"), start=2):
            server.tell(kind, cluster("news", version))
            assert await heard(told) == ("team/news", str(version))
    assert server.writes == []


async def test_an_annotation_of_kopf_that_a_user_wrote_hides_no_change() -> None:
    """kopf's own way to remember an object would read this annotation as JSON, and fail on each of its events."""
    taken = {"kopf.zalando.org/last-handled-configuration": "not JSON"}
    server = ClusterServer(cluster("odd", 1, **taken))
    async with watched(server) as told:
        assert await heard(told) == ("team/odd", "1")
        server.tell("MODIFIED", cluster("odd", 2, **taken))
        assert await heard(told) == ("team/odd", "2")


class TestHandover:
    async def test_what_comes_before_the_loop_looks_is_handed_over_at_once_with_its_last_version(self) -> None:
        loop, wakings, put = asyncio.get_running_loop(), WakingsCounted(), Noted()
        handover = Handover(wakings.around(loop), put)
        from_a_thread(handover, ("b", "1"), ("a", "2"), ("b", "3"))
        assert put.told == []  # only the loop may touch what it puts the keys into
        await asyncio.sleep(0)
        assert put.told == [("b", "3"), ("a", "2")]
        assert wakings.count == 1

    async def test_a_key_that_comes_again_later_is_handed_over_again(self) -> None:
        put = Noted()
        handover = Handover(asyncio.get_running_loop(), put)
        for _ in range(2):
            from_a_thread(handover, ("a", "1"))
            await asyncio.sleep(0)
        assert put.told == [("a", "1"), ("a", "1")]

    async def test_a_key_that_comes_while_others_are_put_is_not_lost(self) -> None:
        put = Noted()

        def take(key: str, version: str) -> None:
            put(key, version)
            if key == "a":
                from_a_thread(handover, ("late", "9"))

        handover = Handover(asyncio.get_running_loop(), take)
        from_a_thread(handover, ("a", "1"), ("b", "1"))
        for _ in range(2):
            await asyncio.sleep(0)
        assert put.told == [("a", "1"), ("b", "1"), ("late", "9")]

    def test_a_closed_loop_gets_no_more(self) -> None:
        loop = asyncio.new_event_loop()
        loop.close()
        put = Noted()
        Handover(loop, put)("a", "1")
        assert put.told == []


class Noted:
    """Notes what is put."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def __call__(self, key: str, version: str) -> None:
        self.told.append((key, version))


class WakingsCounted:
    """Counts how often a loop is woken from another thread."""

    def __init__(self) -> None:
        self.count = 0

    def around(self, loop: asyncio.AbstractEventLoop) -> Any:
        counter = self

        class Counted:
            def call_soon_threadsafe(self, *arguments: Any) -> None:
                counter.count += 1
                loop.call_soon_threadsafe(*arguments)

        return Counted()


def from_a_thread(handover: Handover, *told: tuple[str, str]) -> None:
    def hand_over() -> None:
        for key, version in told:
            handover(key, version)

    thread = threading.Thread(target=hand_over)
    thread.start()
    thread.join()
