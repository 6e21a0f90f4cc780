"""HTTP to the API server: one pool of connections, typed errors, a time-out on everything.

What may be sent twice and what may not is decided here. A read (GET) is repeated once when its connection breaks, and
waits out a 429 that names a time. A write is sent exactly once: when its answer is lost, `Unreachable` says that it may
have landed, and the caller reads before it writes again.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, Self
from urllib.parse import urlencode

import aiohttp
import msgspec
from yarl import URL

from muster.kube.config import Connection
from muster.kube.errors import ApiError, TimedOut, TooManyRequests, Unreachable, error_from_answer

_CONNECT_SECONDS: Final = 10.0
_MOST_WAITS: Final = 5
_LONGEST_WAIT: Final = 30.0
_LOST: Final = (aiohttp.ClientError, TimeoutError, OSError)
"""What aiohttp raises when there is no whole answer."""

Sleep = Callable[[float], Awaitable[None]]
Query = Mapping[str, str | None]


class Transport:
    """Sends requests over at most `concurrency` connections (watches not counted); `timeout` is in seconds."""

    def __init__(
        self, connection: Connection, *, user_agent: str, timeout: float, concurrency: int, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._connection = connection
        self._user_agent = user_agent
        self._timeout = aiohttp.ClientTimeout(total=timeout, sock_connect=min(timeout, _CONNECT_SECONDS))
        self._slots = asyncio.Semaphore(concurrency)
        self._sleep = sleep
        self._open_session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(limit=0, ssl=self._connection.ssl or True)
        session = aiohttp.ClientSession(
            connector=connector,
            headers={"User-Agent": self._user_agent, "Accept": "application/json"},
            timeout=self._timeout,
            read_bufsize=2**20,
        )
        # aiohttp would repeat a PUT or DELETE by itself when a kept connection breaks: a write is sent once.
        session._retry_connection = False
        self._open_session = session
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._open_session is not None:
            await self._open_session.close()
            self._open_session = None

    async def read(self, path: str, query: Query | None = None) -> bytes:
        """The body of a GET. Raises ApiError; see the module for what is repeated."""
        broken, waits = False, 0
        while True:
            try:
                return await self._send("GET", path, query, None, None)
            except Unreachable as error:
                if broken or not _is_broken_connection(error.__cause__):
                    raise
                broken = True
            except TooManyRequests as error:
                if error.retry_after is None or waits == _MOST_WAITS:
                    raise
                waits += 1
                await self._sleep(min(error.retry_after, _LONGEST_WAIT))

    async def write(
        self,
        method: str,
        path: str,
        body: Any,
        *,
        query: Query | None = None,
        content_type: str = "application/json",
    ) -> bytes:
        """The answer's body to one write, sent exactly once. Raises ApiError; Unreachable: it may have landed."""
        return await self._send(method, path, query, msgspec.json.encode(body), content_type)

    @asynccontextmanager
    async def stream(self, path: str, query: Query, read_timeout: float) -> AsyncIterator[aiohttp.StreamReader]:
        """The body of a GET while it comes; more than `read_timeout` seconds of silence raise Unreachable."""
        silence = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS, sock_read=read_timeout)
        headers = await self._headers(None)
        try:
            async with self._request("GET", path, query, headers, silence) as response:
                if not _is_good(response):
                    raise _error(response, await response.read())
                _probe_when_idle(response)
                yield response.content
        except _LOST as error:
            raise _unreachable("GET", path, error) from error

    async def _send(
        self, method: str, path: str, query: Query | None, data: bytes | None, content_type: str | None
    ) -> bytes:
        """The body of an answer with a good status; everything else becomes an ApiError."""
        async with self._slots:
            headers = await self._headers(content_type)
            try:
                async with self._request(method, path, query, headers, self._timeout, data) as response:
                    answer = await response.read()
            except _LOST as error:
                raise _unreachable(method, path, error) from error
        if not _is_good(response):
            raise _error(response, answer)
        return answer

    async def _headers(self, content_type: str | None) -> dict[str, str]:
        headers = {"Content-Type": content_type} if content_type else {}
        if token := await self._connection.authorization():
            headers["Authorization"] = token
        return headers

    def _request(
        self,
        method: str,
        path: str,
        query: Query | None,
        headers: Mapping[str, str],
        timeout: aiohttp.ClientTimeout,
        data: bytes | None = None,
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        return self._session.request(
            method,
            self._url(path, query),
            headers=headers,
            timeout=timeout,
            data=data,
            allow_redirects=False,
            proxy=self._connection.proxy,
            server_hostname=self._connection.server_name,
        )

    @property
    def _session(self) -> aiohttp.ClientSession:
        if self._open_session is None:
            raise RuntimeError("the client is not open: use it as an async context manager")
        return self._open_session

    def _url(self, path: str, query: Query | None) -> URL:
        # The path is encoded already; yarl must not resolve or decode anything in it.
        given = {key: value for key, value in (query or {}).items() if value is not None}
        return URL(f"{self._connection.server}{path}{'?' + urlencode(given) if given else ''}", encoded=True)


def _is_good(response: aiohttp.ClientResponse) -> bool:
    return 200 <= response.status < 300


def _error(response: aiohttp.ClientResponse, answer: bytes) -> ApiError:
    return error_from_answer(response.status, answer, response.headers.get("Retry-After"))


def _unreachable(method: str, path: str, error: BaseException) -> Unreachable:
    late = isinstance(error, TimeoutError) and not isinstance(error, aiohttp.ConnectionTimeoutError)
    kind = TimedOut if late else Unreachable
    return kind(f"{method} {path}: {str(error) or type(error).__name__}")


def _is_broken_connection(cause: BaseException | None) -> bool:
    """The connection was lost or refused; a time-out is not that, repeating it would only double the wait."""
    lost = (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, ConnectionError)
    return isinstance(cause, lost) and not isinstance(cause, TimeoutError)


def _probe_when_idle(response: aiohttp.ClientResponse) -> None:
    """Let the kernel probe a silent connection, so that a peer that vanished is noticed before the read time-out."""
    transport = response.connection.transport if response.connection is not None else None
    sock = transport.get_extra_info("socket") if transport is not None else None
    if sock is None:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):  # not every system has all three
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
