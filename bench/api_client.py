"""A plain client of the API server: what loads it, and what watches it.

It is none of Muster's: a change there must change neither the load nor how it is measured. Every request is sent once.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp
import msgspec

from bench.api_writes import write
from muster.kube.config import load_connection

_MERGE = "application/merge-patch+json"
_LIMIT = 5000
"""Objects in one page of a list."""


class RefusedError(RuntimeError):
    """The API server did not do what was asked; `status` is the HTTP status, 410 when a version is too old."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class _Code(msgspec.Struct):
    code: int = 0
    message: str = ""


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class _Page(msgspec.Struct):
    metadata: _Metadata
    items: list[msgspec.Raw] | None = None


class Change(msgspec.Struct):
    """One line of a watch."""

    type: str
    object: msgspec.Raw


_decode_page = msgspec.json.Decoder(_Page).decode
_decode_change = msgspec.json.Decoder(Change).decode


class ApiClient:
    """A client with at most `concurrency` requests under way, watches not counted; an async context manager.

    `writes` counts the writes that were answered, refused ones included, as `api_writes.writes` does.
    """

    def __init__(self, kubeconfig: Path, *, concurrency: int = 50) -> None:
        self._connection = load_connection(kubeconfig)
        self._slots = asyncio.Semaphore(concurrency)
        self._open: aiohttp.ClientSession | None = None
        self.writes: Counter[str] = Counter()

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(limit=0, ssl=self._connection.ssl or True)
        timeout = aiohttp.ClientTimeout(total=60)
        token = await self._connection.authorization()  # of a service account it holds longer than any run
        headers = {"Authorization": token} if token else {}
        self._open = aiohttp.ClientSession(connector=connector, timeout=timeout, headers=headers, read_bufsize=2**20)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._open is not None:
            await self._open.close()

    async def create(self, path: str, body: Mapping[str, Any]) -> None:
        """Create an object in its collection. Raises RefusedError."""
        await self._write("POST", path, body, "application/json")

    async def merge(self, path: str, patch: Mapping[str, Any]) -> None:
        """Change an object by a JSON merge patch. Raises RefusedError."""
        await self._write("PATCH", path, patch, _MERGE)

    async def delete(self, path: str) -> None:
        """Delete an object at once. Raises RefusedError."""
        await self._write("DELETE", path, {"gracePeriodSeconds": 0}, "application/json")

    async def text(self, path: str) -> str:
        """What stands at a path, as it is. Raises RefusedError."""
        return (await self._read(path, {})).decode()

    async def list(self, path: str, query: Mapping[str, str] | None = None) -> tuple[list[msgspec.Raw], str]:
        """All objects of a collection, and the version that they are of."""
        found: list[msgspec.Raw] = []
        token = ""
        while True:
            page = _decode_page(await self._read(path, {**(query or {}), "limit": str(_LIMIT), "continue": token}))
            found += page.items or []
            token = page.metadata.continue_
            if not token:
                return found, page.metadata.resource_version

    async def watch(
        self, path: str, version: str, query: Mapping[str, str] | None = None
    ) -> AsyncIterator[Sequence[Change]]:
        """What changes after `version`, in the batches in which it comes, until the server ends it.

        Raises RefusedError, with status 410 when the version is too old.
        """
        sent = {**(query or {}), "watch": "true", "allowWatchBookmarks": "true", "resourceVersion": version}
        silence = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=100)
        async with self._session.get(self._connection.server + path, params=sent, timeout=silence) as response:
            if response.status >= 300:
                raise RefusedError(response.status, await response.text())
            rest = b""
            async for chunk in response.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                yield [_change(line) for line in lines if line]

    async def _read(self, path: str, query: Mapping[str, str]) -> bytes:
        async with self._slots, self._session.get(self._connection.server + path, params=query) as response:
            return await _good(response)

    async def _write(self, method: str, path: str, body: Mapping[str, Any], content_type: str) -> None:
        data, headers = msgspec.json.encode(body), {"Content-Type": content_type}
        url = self._connection.server + path
        async with self._slots, self._session.request(method, url, data=data, headers=headers) as response:
            self.writes[write(method, path)] += 1
            await _good(response)

    @property
    def _session(self) -> aiohttp.ClientSession:
        if self._open is None:
            raise RuntimeError("the client is not open: use it as an async context manager")
        return self._open


async def _good(response: aiohttp.ClientResponse) -> bytes:
    answer = await response.read()
    if response.status >= 300:
        text = answer.decode(errors="replace")[:500]
        raise RefusedError(response.status, f"{response.method} {response.url.path}: {response.status} {text}")
    return answer


def _change(line: bytes) -> Change:
    change = _decode_change(line)
    if change.type == "ERROR":
        status = msgspec.json.decode(change.object, type=_Code)
        raise RefusedError(status.code, status.message)
    return change
