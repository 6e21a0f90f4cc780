"""A stand-in for the API server's list and watch, so that a test decides what is told and when.

Integration tests use the real one; this one exists for orders of events that the real one can't be made to produce.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from muster.kube.client import ApiClient, ListMeta, Page, WatchEvent
from muster.kube.errors import Expired, Unreachable
from muster.kube.informer import Informer
from muster.kube.objects import PartialObject
from muster.kube.resource import CONFIGMAPS


@dataclass(frozen=True)
class Entry:
    version: int
    type: str
    obj: dict[str, Any]


class ScriptedServer:
    """Objects with a history; `told` is how many events of it a watch may pass on."""

    def __init__(self) -> None:
        self.version = 10
        self.objects: dict[str, dict[str, Any]] = {}
        self.history: list[Entry] = []
        self.told = 0
        self.oldest = 0
        self.lists = 0
        self.page_size = 2
        self.during_list: Callable[[], None] = lambda: None
        self._moved = asyncio.Event()
        self._cuts = 0

    def put(self, name: str, **labels: str) -> PartialObject:
        """Create or change an object; returns what a client would get as the answer."""
        before = self.objects.get(name)
        self.version += 1
        uid = before["metadata"]["uid"] if before else f"uid-{self.version}"
        metadata = {"name": name, "namespace": "ns", "uid": uid, "resourceVersion": str(self.version), "labels": labels}
        self.objects[name] = {"metadata": metadata}
        self.history.append(Entry(self.version, "MODIFIED" if before else "ADDED", self.objects[name]))
        return msgspec.convert(self.objects[name], PartialObject)

    def delete(self, name: str) -> None:
        """Delete an object."""
        self.version += 1
        gone = self.objects.pop(name)
        metadata = {**gone["metadata"], "resourceVersion": str(self.version)}
        self.history.append(Entry(self.version, "DELETED", {"metadata": metadata}))

    def tell(self, count: int | None = None) -> None:
        """Let the watch pass on so many more events (None: all there are)."""
        behind = len(self.history)
        self.told = behind if count is None else min(behind, self.told + count)
        self._wake()

    def cut(self) -> None:
        """Break the watch."""
        self._cuts += 1
        self._wake()

    def forget(self) -> None:
        """Make the next resumed watch fail: its version is too old."""
        self.oldest = self.version + 1
        self.cut()

    def informer(self, **options: Any) -> Informer[PartialObject]:
        """An informer of this server."""
        return Informer(cast(ApiClient, self), CONFIGMAPS, PartialObject, jitter=lambda: 0.0, **options)

    # --- what an informer calls -------------------------------------------------------------------------------------

    async def pages(self, *_: Any, **__: Any) -> AsyncGenerator[Page, None]:
        """List in pages of one moment."""
        self.lists += 1
        self.oldest = 0
        version, items = str(self.version), [msgspec.Raw(msgspec.json.encode(obj)) for obj in self.objects.values()]
        for start in range(0, max(len(items), 1), self.page_size):
            more = "more" if start + self.page_size < len(items) else ""
            yield Page(ListMeta(version, more), items[start : start + self.page_size])
            self.during_list()
            await asyncio.sleep(0)

    async def watch(self, *_: Any, resource_version: str, **__: Any) -> AsyncGenerator[Sequence[WatchEvent], None]:
        """Pass on what came after the version and may be told."""
        passed, cuts = int(resource_version), self._cuts
        while True:
            if passed < self.oldest:
                raise Expired(410, "Expired", "too old")
            for entry in self.history[: self.told]:
                if entry.version > passed:
                    passed = entry.version
                    yield [WatchEvent(entry.type, msgspec.Raw(msgspec.json.encode(entry.obj)))]
            if cuts != self._cuts:
                raise Unreachable("cut")
            self._moved.clear()
            await self._moved.wait()

    def _wake(self) -> None:
        self._moved.set()
