"""A proxy between Muster and a real API server that can lose, delay, refuse and falsify on request.

It listens on plain http and adds the upstream credentials itself, so a client needs only `proxy.connection()`. What
goes wrong is scripted: a fault, a predicate on the request, and how often.

    async with FaultProxy(load_connection(control_plane.kubeconfig)) as proxy, ApiClient(proxy.connection()) as client:
        proxy.inject(Answer(409, "Conflict"), when=matching("POST", "/binding$"), times=2)
        proxy.inject(LoseAnswer(), when=matching("PATCH", "/rayjobs/"))          # it lands, nobody is told
        proxy.cut_watches(matching(path="/pods"))                                # now, those that are running

For restart tests `on_write` sees every write before it is passed on and after it has landed. The callback may stop the
operator there, and raise `KillHere` so that the write (before), or only its answer (after), is lost with it.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Self

import aiohttp
import yaml
from aiohttp import web
from yarl import URL

from muster.kube.config import Connection
from tests.integration.faults import (
    Answer,
    CutWatch,
    Delay,
    Drop,
    Fault,
    FreezeWatch,
    Hold,
    KillHere,
    LoseAnswer,
    Phase,
    ProxiedRequest,
    Replay,
    SpoilAnswer,
    StallAnswer,
    WatchError,
    When,
    Write,
    anything,
    matching,
)

__all__ = [
    "Answer",
    "CutWatch",
    "Delay",
    "Drop",
    "FaultProxy",
    "FreezeWatch",
    "Hold",
    "Injection",
    "KillHere",
    "LoseAnswer",
    "Phase",
    "ProxiedRequest",
    "Replay",
    "SpoilAnswer",
    "StallAnswer",
    "WatchError",
    "Write",
    "anything",
    "matching",
]

OnWrite = Callable[[Write], Awaitable[None] | None]


class Injection:
    """A fault in wait: `hits` counts how often it struck; `remove` takes it back."""

    def __init__(self, fault: Fault, when: When, times: int | None) -> None:
        self.fault = fault
        self.hits = 0
        self._when = when
        self._times = times

    def strikes(self, request: ProxiedRequest) -> bool:
        """Whether it is this request's turn; counts it."""
        if (self._times is not None and self.hits >= self._times) or not self._when(request):
            return False
        self.hits += 1
        return True

    def remove(self) -> None:
        """Strike no more."""
        self._times = 0


class _RunningWatch:
    def __init__(self, request: ProxiedRequest, transport: asyncio.BaseTransport | None) -> None:
        self.request = request
        self.transport = transport
        self.flows = asyncio.Event()
        self.flows.set()
        self.lines = 0


class FaultProxy:
    """The proxy; an async context manager. `requests` holds all that came, `writes` counts those passed on."""

    def __init__(self, upstream: Connection) -> None:
        self._upstream = upstream
        self._injections: list[Injection] = []
        self._on_write: list[tuple[OnWrite, When, list[int]]] = []
        self._watches: list[_RunningWatch] = []
        self._arrived = asyncio.Condition()
        self.requests: list[ProxiedRequest] = []
        self.writes = 0
        self.url = ""

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._upstream.ssl or True),
            timeout=aiohttp.ClientTimeout(total=None),
            read_bufsize=2**20,
        )
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cut_watches()
        await self._runner.cleanup()
        await self._session.close()

    def connection(self) -> Connection:
        """What a client needs to go through this proxy."""
        return Connection(server=self.url)

    def kubeconfig(self) -> str:
        """A kubeconfig for programs that want one."""
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "proxy", "cluster": {"server": self.url}}],
            "users": [{"name": "proxy", "user": {}}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}],
            "current-context": "proxy",
        }
        return yaml.safe_dump(document)

    # --- what goes wrong --------------------------------------------------------------------------------------------

    def inject(self, fault: Fault, *, when: When = anything, times: int | None = 1) -> Injection:
        """Let the fault strike the next `times` requests (None: all) for which `when` holds."""
        injection = Injection(fault, when, times)
        self._injections.append(injection)
        return injection

    def on_write(self, callback: OnWrite, *, when: When = anything) -> None:
        """Call back before and after every write for which `when` holds; they are numbered from 1."""
        self._on_write.append((callback, when, [0]))

    def cut_watches(self, when: When = anything) -> int:
        """Break the connections of the watches that are running; says how many."""
        found = [watch for watch in self._watches if when(watch.request)]
        for watch in found:
            _abort(watch.transport)
        return len(found)

    def freeze_watches(self, when: When = anything) -> int:
        """Let no more bytes through the watches that are running, and keep them open; says how many."""
        found = [watch for watch in self._watches if when(watch.request)]
        for watch in found:
            watch.flows.clear()
        return len(found)

    async def snapshot(self, path_and_query: str) -> Replay:
        """What the API server answers to this GET now, to be served again later (a stale list)."""
        async with self._session.get(URL(self._upstream.server + path_and_query, encoded=True)) as response:
            return Replay(response.status, await response.read())

    async def arrival(self, when: When, *, count: int = 1, deadline: float = 60.0) -> ProxiedRequest:
        """Wait until `count` requests for which `when` holds have come, since the start; returns the last of them."""

        def found() -> list[ProxiedRequest]:
            return [request for request in self.requests if when(request)]

        async with asyncio.timeout(deadline), self._arrived:
            await self._arrived.wait_for(lambda: len(found()) >= count)
        return found()[count - 1]

    # --- passing on -------------------------------------------------------------------------------------------------

    async def _handle(self, incoming: web.Request) -> web.StreamResponse:
        request = await ProxiedRequest.of(incoming)
        self.requests.append(request)
        async with self._arrived:
            self._arrived.notify_all()
        fault = next((one.fault for one in self._injections if one.strikes(request)), None)
        try:
            return await self._answer(incoming, request, fault)
        except (KillHere, aiohttp.ClientError):
            return _dropped(incoming)

    async def _answer(self, incoming: web.Request, request: ProxiedRequest, fault: Fault | None) -> web.StreamResponse:
        match fault:
            case Answer() | Replay() | WatchError():
                return fault.response()
            case Drop():
                return _dropped(incoming)
            case Delay():
                await asyncio.sleep(fault.seconds)
            case Hold():
                fault.reached.set()
                await fault.release.wait()
                if fault.then is not None:
                    return fault.then.response()
        if request.is_watch:
            return await self._stream(incoming, request, fault)
        answer = await self._pass_on(request)
        match fault:
            case LoseAnswer():
                return _dropped(incoming)
            case StallAnswer():
                await fault.release.wait()
            case SpoilAnswer():
                return fault.answer.response()
        return answer

    async def _pass_on(self, request: ProxiedRequest) -> web.Response:
        if request.is_write:
            numbers = self._number(request)
            await self._tell(request, Phase.BEFORE, numbers)
            self.writes += 1
        async with self._open(request) as response:
            content = await response.read()
            kept = {key: value for key, value in response.headers.items() if key in ("Content-Type", "Retry-After")}
            answer = web.Response(status=response.status, body=content, headers=kept)
        if request.is_write:
            await self._tell(request, Phase.AFTER, numbers)
        return answer

    def _number(self, request: ProxiedRequest) -> list[int]:
        """The number of this write for each callback; 0 where it is none of its business."""
        numbers = []
        for _, when, count in self._on_write:
            concerned = when(request)
            count[0] += concerned
            numbers.append(count[0] if concerned else 0)
        return numbers

    async def _tell(self, request: ProxiedRequest, phase: Phase, numbers: list[int]) -> None:
        for (callback, _, _), number in zip(self._on_write, numbers, strict=False):
            if number:
                outcome = callback(Write(number, phase, request))
                if inspect.isawaitable(outcome):
                    await outcome

    async def _stream(self, incoming: web.Request, request: ProxiedRequest, fault: Fault | None) -> web.StreamResponse:
        watch = _RunningWatch(request, incoming.transport)
        async with self._open(request) as upstream:
            response = web.StreamResponse(status=upstream.status, headers={"Content-Type": "application/json"})
            await response.prepare(incoming)
            self._watches.append(watch)
            try:
                await self._pump(upstream, response, watch, fault)
            finally:
                self._watches.remove(watch)
        with suppress(ConnectionError):
            await response.write_eof()
        return response

    async def _pump(
        self, upstream: aiohttp.ClientResponse, response: web.StreamResponse, watch: _RunningWatch, fault: Fault | None
    ) -> None:
        async for line in _lines(upstream):
            if isinstance(fault, CutWatch) and watch.lines >= fault.after:
                raise KillHere
            if isinstance(fault, FreezeWatch) and watch.lines >= fault.after:
                watch.flows.clear()
            await watch.flows.wait()
            await response.write(line)
            watch.lines += 1

    def _open(self, request: ProxiedRequest) -> Any:
        return self._session.request(
            request.method,
            URL(self._upstream.server + request.raw_path, encoded=True),
            data=request.content or None,
            headers=request.headers,
            allow_redirects=False,
        )


async def _lines(upstream: aiohttp.ClientResponse) -> Any:
    rest = b""
    async for chunk in upstream.content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line + b"\n"


def _dropped(incoming: web.Request) -> web.Response:
    _abort(incoming.transport)
    return web.Response(status=500)


def _abort(transport: asyncio.BaseTransport | None) -> None:
    if isinstance(transport, asyncio.WriteTransport):
        transport.abort()
