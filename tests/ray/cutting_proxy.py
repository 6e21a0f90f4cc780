"""A TCP proxy in front of a dashboard that loses connections on demand."""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType
from typing import Self

from tests.cluster.ports import free_ports

_CHUNK = 65536


class CuttingProxy:
    """Passes bytes on between its own port and `target`, both on 127.0.0.1, until told otherwise.

    `cut_streams` has one number for each log stream to be opened: after so many bytes the stream is cut. Streams beyond
    the list go through. With `lose_next_answer` the next submission reaches the dashboard, but its answer is lost.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.StreamWriter] = set()
        (self.port,) = free_ports(1)
        self.cut_streams: list[int] = []
        self.cuts = 0
        self.lose_next_answer = False
        self.answers_lost = 0

    @property
    def address(self) -> str:
        """Where the proxy listens: host:port."""
        return f"127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Accept connections."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    async def close(self) -> None:
        """Refuse connections, and cut all that are open."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._connections):
            writer.transport.abort()

    async def _serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        server, to_server = await asyncio.open_connection("127.0.0.1", self._target)
        link = _Link(self, to_client, to_server)
        self._connections |= {to_client, to_server}
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(link.upwards(client))
                tasks.create_task(link.downwards(server))
        except* (OSError, _Cut):
            pass
        finally:
            for writer in (to_client, to_server):
                self._connections.discard(writer)
                writer.transport.abort()


class _Cut(Exception):  # noqa: N818 - what happens, not an error
    """The connection is to be lost now."""


class _Link:
    def __init__(self, proxy: CuttingProxy, to_client: asyncio.StreamWriter, to_server: asyncio.StreamWriter) -> None:
        self._proxy = proxy
        self._to_client = to_client
        self._to_server = to_server
        self._bytes_left: int | None = None
        self._lose_answer = False

    async def upwards(self, client: asyncio.StreamReader) -> None:
        while chunk := await client.read(_CHUNK):
            request = chunk.split(b"\r\n", 1)[0]
            if b"/logs/tail " in request and self._proxy.cut_streams:
                self._bytes_left = self._proxy.cut_streams.pop(0)
            if request.startswith(b"POST /api/jobs/ ") and self._proxy.lose_next_answer:
                self._proxy.lose_next_answer = False
                self._lose_answer = True
            self._to_server.write(chunk)
            await self._to_server.drain()
        raise _Cut

    async def downwards(self, server: asyncio.StreamReader) -> None:
        while chunk := await server.read(_CHUNK):
            if self._lose_answer:
                self._proxy.answers_lost += 1
                raise _Cut
            if self._bytes_left is not None:
                chunk = chunk[: self._bytes_left]
                self._bytes_left -= len(chunk)
            self._to_client.write(chunk)
            await self._to_client.drain()
            if self._bytes_left == 0:
                self._proxy.cuts += 1
                with contextlib.suppress(OSError):
                    self._to_client.close()
                    await self._to_client.wait_closed()
                raise _Cut
        raise _Cut
