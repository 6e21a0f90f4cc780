"""Follows the pods of a namespace, and tells when each gang has been bound.

Times are of this process's monotonic clock. A watch that ends is taken up where it was; where the server no longer
knows that version, the pods are listed again.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Sequence

import aiohttp
import msgspec

from bench.api_client import ApiClient, Change, RefusedError
from bench.manifests import GANG

_GONE = 410


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Pod(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: _Spec = msgspec.field(default_factory=_Spec)


_decode = msgspec.json.Decoder(_Pod).decode


class PodWatch:
    """What is known of the pods of `namespace`, whose gangs have `size` members; use it as a task: `run`.

    `bound` counts pods that were seen with a node, those included that are gone since; `last` is when the latest was.
    `whole` is when the last of each gang's pods was.
    """

    def __init__(self, client: ApiClient, namespace: str, size: int) -> None:
        self._client = client
        self._size = size
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._version = ""
        self._seen: set[str] = set()
        self._by_gang: dict[str, int] = defaultdict(int)
        self._waiting: dict[str, asyncio.Event] = {}
        self._wanted: tuple[int, asyncio.Event] | None = None
        self.synced = asyncio.Event()
        self.bound = 0
        self.whole: dict[str, float] = {}
        self.last = 0.0

    async def run(self) -> None:
        """Follow the pods until cancelled."""
        while True:
            try:
                if not self._version:
                    await self._list()
                async for batch in self._client.watch(self._path, self._version):
                    self._apply(batch)
            except RefusedError as error:
                if error.status == _GONE:
                    self._version = ""
                else:
                    await asyncio.sleep(0.2)
            except (aiohttp.ClientError, TimeoutError, OSError):
                await asyncio.sleep(0.2)

    async def gang_bound(self, gang: str) -> None:
        """Return when all of a gang's pods have been bound."""
        event = self._waiting.setdefault(gang, asyncio.Event())
        if gang not in self.whole:
            await event.wait()

    async def reaches(self, count: int) -> None:
        """Return when so many pods have been bound; one caller at a time."""
        event = asyncio.Event()
        self._wanted = (count, event)
        if self.bound < count:
            await event.wait()

    async def _list(self) -> None:
        items, self._version = await self._client.list(self._path)
        for raw in items:
            self._note(_decode(raw))
        self.synced.set()

    def _apply(self, batch: Sequence[Change]) -> None:
        for change in batch:
            pod = _decode(change.object)
            self._version = pod.metadata.resource_version
            if change.type in ("ADDED", "MODIFIED"):
                self._note(pod)
            elif change.type == "DELETED":
                self._seen.discard(pod.metadata.name)

    def _note(self, pod: _Pod) -> None:
        name, gang = pod.metadata.name, pod.metadata.labels.get(GANG, "")
        if not pod.spec.node_name or name in self._seen:
            return
        self._seen.add(name)
        self.bound += 1
        self.last = time.monotonic()
        self._by_gang[gang] += 1
        if self._by_gang[gang] == self._size:
            self.whole[gang] = self.last
            if gang in self._waiting:
                self._waiting.pop(gang).set()
        if self._wanted is not None and self.bound >= self._wanted[0]:
            self._wanted[1].set()
