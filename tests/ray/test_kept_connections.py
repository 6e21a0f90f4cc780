"""Connections are used again, and one that has broken meanwhile is no failure of the dashboard's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from muster.ray.jobs_api import DashboardUnreachable, RayJobsClient
from muster.ray.kept_connections import KeptConnections

_ANSWER = b'HTTP/1.1 200 OK\r\ncontent-length: 15\r\n\r\n{"version":"4"}'


class Server:
    """Answers `answers` requests on each connection and closes it when the next one comes."""

    def __init__(self) -> None:
        self.answers = 1000
        self.connections = 0
        self.requests: list[str] = []
        self.asked = asyncio.Semaphore(0)
        self.silent = False
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            for number in range(self.answers + 1):
                self.requests.append((await reader.readuntil(b"\r\n\r\n")).decode().partition(" ")[0])
                self.asked.release()
                if self.silent:
                    await asyncio.Event().wait()
                if number == self.answers:
                    return
                writer.write(_ANSWER)
                await writer.drain()
        except asyncio.IncompleteReadError:
            return
        finally:
            writer.close()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    yield server
    listening.close()


async def _version(server: Server, connections: KeptConnections) -> None:
    async with RayJobsClient(f"http://127.0.0.1:{server.port}", transport=connections) as ray:
        assert await ray.version() == {"version": "4"}


async def test_clients_that_come_one_after_the_other_use_one_connection(server: Server) -> None:
    connections = KeptConnections()
    for _ in range(3):
        await _version(server, connections)
    assert (server.connections, len(server.requests)) == (1, 3)


async def test_a_question_over_a_connection_that_breaks_is_asked_again(server: Server) -> None:
    connections, server.answers = KeptConnections(), 1
    await _version(server, connections)
    await _version(server, connections)
    assert (server.connections, server.requests) == (2, ["GET", "GET", "GET"])


async def test_what_may_have_been_done_is_not_sent_again(server: Server) -> None:
    connections, server.answers = KeptConnections(), 1
    await _version(server, connections)
    async with RayJobsClient(f"http://127.0.0.1:{server.port}", transport=connections) as ray:
        with pytest.raises(DashboardUnreachable):
            await ray.stop("job")
    assert server.requests == ["GET", "POST"]


async def test_a_dashboard_that_always_hangs_up_is_asked_twice_and_no_more(server: Server) -> None:
    server.answers = 0
    async with RayJobsClient(f"http://127.0.0.1:{server.port}", transport=KeptConnections()) as ray:
        with pytest.raises(DashboardUnreachable):
            await ray.version()
    assert server.requests == ["GET", "GET"]


async def test_hundreds_that_hang_keep_nobody_from_asking(server: Server) -> None:
    connections, server.silent = KeptConnections(), True
    hanging = [asyncio.create_task(_version(server, connections)) for _ in range(300)]
    async with asyncio.timeout(30):
        for _ in hanging:
            await server.asked.acquire()
        server.silent = False
        await _version(server, connections)
    for task in hanging:
        task.cancel()
    await asyncio.gather(*hanging, return_exceptions=True)
