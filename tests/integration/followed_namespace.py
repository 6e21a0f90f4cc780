"""What a namespace holds, kept current by watches, so that looking at it costs the API server nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec

from muster.kube.client import ApiClient
from muster.kube.errors import ApiError
from muster.kube.resource import Resource

Object = dict[str, Any]
_WATCH_SECONDS = 300


class FollowedNamespace:
    """The objects of some kinds in one namespace (None: in all), by UID, a moment old at the most.

    Plain lists and watches without the product's informer: what is under test is not what tells the test.
    """

    def __init__(self, api: ApiClient, namespace: str | None, resources: Iterable[Resource]) -> None:
        self._api = api
        self._namespace = namespace
        self.objects: dict[Resource, dict[str, Object]] = {resource: {} for resource in resources}
        self.ever: dict[Resource, set[str]] = {resource: set() for resource in self.objects}
        """The UIDs of all that were heard of."""

    @asynccontextmanager
    async def followed(self) -> AsyncIterator[None]:
        """Follow the namespace for the length of the block."""
        tasks = [asyncio.create_task(self._follow(resource)) for resource in self.objects]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            for task in tasks:
                with suppress(asyncio.CancelledError):
                    await task

    def all(self, resource: Resource) -> list[Object]:
        """The objects of a kind."""
        return list(self.objects[resource].values())

    def record(self, resource: Resource, written: Object) -> None:
        """Take in the answer to a write, before the watch tells of it."""
        uid = written["metadata"]["uid"]
        if uid in self.objects[resource]:
            self.objects[resource][uid] = written

    async def _follow(self, resource: Resource) -> None:
        while True:
            with suppress(ApiError):
                async for page in self._api.pages(resource, self._namespace, chunk=0):
                    self.objects[resource].clear()
                    for item in page.items or []:
                        self._hear(resource, "ADDED", item)
                    await self._watch(resource, page.metadata.resource_version)
            await asyncio.sleep(0.05)

    async def _watch(self, resource: Resource, version: str) -> None:
        async for events in self._api.watch(
            resource,
            self._namespace,
            resource_version=version,
            timeout_seconds=_WATCH_SECONDS,
            read_timeout=_WATCH_SECONDS + 30,
        ):
            for event in events:
                if event.type != "BOOKMARK":
                    self._hear(resource, event.type, event.object)

    def _hear(self, resource: Resource, change: str, content: msgspec.Raw) -> None:
        heard: Object = msgspec.json.decode(content)
        uid = heard["metadata"]["uid"]
        self.ever[resource].add(uid)
        if change == "DELETED":
            self.objects[resource].pop(uid, None)
        else:
            self.objects[resource][uid] = heard
