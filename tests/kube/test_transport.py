"""What the client does with time-outs, concurrency, odd answers and odd streams."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from muster.kube.client import ApiClient, WatchEvent
from muster.kube.config import Connection
from muster.kube.errors import ApiError, Expired, NotFound, ServerError, TimedOut, Undecodable, Unreachable
from muster.kube.resource import CONFIGMAPS

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def client_of(handler: Handler, **options: Any) -> AsyncIterator[ApiClient]:
    """A client of a server that answers everything with this handler."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        async with ApiClient(Connection(f"http://127.0.0.1:{runner.addresses[0][1]}"), **options) as client:
            yield client
    finally:
        await runner.cleanup()


async def never(_: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError("unreachable")


def streaming(*chunks: bytes, then: Callable[[], Awaitable[object]] | None = None) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
            await asyncio.sleep(0.01)
        if then is not None:
            await then()
        return response

    return handler


async def watched(client: ApiClient, read_timeout: float = 5.0) -> list[WatchEvent]:
    events: list[WatchEvent] = []
    async for batch in client.watch(
        CONFIGMAPS, "ns", resource_version="1", timeout_seconds=10, read_timeout=read_timeout
    ):
        events += batch
    return events


def event(event_type: str, **body: Any) -> bytes:
    return json.dumps({"type": event_type, "object": body}).encode() + b"\n"


@pytest.mark.parametrize("verb", ["get", "create", "delete"])
async def test_a_server_that_does_not_answer_has_timed_out(verb: str) -> None:
    async with client_of(never, timeout=0.1) as client:
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "get": lambda: client.get(CONFIGMAPS, "ns", "a"),
            "create": lambda: client.create(CONFIGMAPS, "ns", {}),
            "delete": lambda: client.delete(CONFIGMAPS, "ns", "a"),
        }
        with pytest.raises(TimedOut):
            await asyncio.wait_for(calls[verb](), 5)


async def test_one_that_is_not_there_was_not_late_with_its_answer() -> None:
    async with ApiClient(Connection("http://127.0.0.1:1")) as client:
        with pytest.raises(Unreachable) as nobody:
            await client.create(CONFIGMAPS, "ns", {})
    assert not isinstance(nobody.value, TimedOut)


async def test_no_more_requests_are_under_way_than_allowed() -> None:
    under_way, most = 0, 0

    async def counting(_: web.Request) -> web.StreamResponse:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.01)
        under_way -= 1
        return web.json_response({})

    async with client_of(counting, concurrency=3) as client:
        await asyncio.gather(*(client.get(CONFIGMAPS, "ns", "a") for _ in range(12)))
    assert most == 3


@pytest.mark.parametrize("status", [404, 503])
async def test_a_stream_that_is_refused_has_the_error_of_its_status(status: int) -> None:
    async def handler(_: web.Request) -> web.StreamResponse:
        return web.json_response({"reason": "Refused", "message": "not now"}, status=status)

    async with client_of(handler) as client:
        with pytest.raises(ApiError, match="not now") as refused:
            await watched(client)
    assert refused.value.status == status


async def test_a_redirect_is_not_followed() -> None:
    async def away(_: web.Request) -> web.StreamResponse:
        raise web.HTTPFound("http://elsewhere.example/")

    async with client_of(away) as client:
        with pytest.raises(ApiError) as refused:
            await client.get(CONFIGMAPS, "ns", "a")
    assert refused.value.status == 302


NO_JSON = {"a page of a browser": "<html>", "nested too deep": '{"a":' * 100_000 + "1" + "}" * 100_000}


@pytest.mark.parametrize("body", NO_JSON.values(), ids=NO_JSON.keys())
async def test_an_answer_that_is_no_json_is_undecodable(body: str) -> None:
    async def text(_: web.Request) -> web.StreamResponse:
        return web.Response(text=body)

    async with client_of(text) as client:
        with pytest.raises(Undecodable):
            await client.get(CONFIGMAPS, "ns", "a")
        with pytest.raises(Undecodable):
            await client.list(CONFIGMAPS, "ns")


async def test_names_in_the_path_arrive_as_they_are() -> None:
    seen: list[str] = []

    async def echo(request: web.Request) -> web.StreamResponse:
        seen.append(request.raw_path)
        return web.json_response({})

    async with client_of(echo) as client:
        await client.get(CONFIGMAPS, "ns", "a..b?x=+ é")
    assert seen == ["/api/v1/namespaces/ns/configmaps/a..b%3Fx%3D%2B%20%C3%A9"]


async def test_an_object_of_an_impossible_name_is_not_there_and_nobody_is_asked() -> None:
    seen: list[str] = []

    async def echo(request: web.Request) -> web.StreamResponse:
        seen.append(request.raw_path)
        return web.json_response({})

    async with client_of(echo) as client:
        for name in ("a/../b", "..", "a%2F..%2Fb"):
            with pytest.raises(NotFound):
                await client.get(CONFIGMAPS, "ns", name)
            with pytest.raises(NotFound):
                await client.patch(CONFIGMAPS, name, "b", {})
            with pytest.raises(NotFound):
                await client.delete(CONFIGMAPS, "ns", name)
    assert seen == []


async def test_events_are_put_together_from_any_pieces() -> None:
    large = "x" * 300_000
    stream = event("ADDED", a=large) + event("MODIFIED", b=1) + event("BOOKMARK", c=2)
    pieces = [stream[:10], stream[10:100_000], stream[100_000:-5], stream[-5:]]
    async with client_of(streaming(*pieces)) as client:
        assert [one.type for one in await watched(client)] == ["ADDED", "MODIFIED", "BOOKMARK"]


async def test_an_error_in_the_stream_has_its_type() -> None:
    gone = event("ERROR", kind="Status", code=410, reason="Expired", message="too old")
    async with client_of(streaming(event("ADDED"), gone)) as client:
        with pytest.raises(Expired, match="too old"):
            await watched(client)
    async with client_of(streaming(event("ERROR", kind="Status", message="?"))) as client:
        with pytest.raises(ServerError):
            await watched(client)


@pytest.mark.parametrize(
    "line", [b"garbage", b'{"type":"ADDED","object":' + b"[" * 100_000], ids=["garbage", "nested too deep"]
)
async def test_a_line_that_is_no_event_is_undecodable(line: bytes) -> None:
    async with client_of(streaming(line + b"\n")) as client:
        with pytest.raises(Undecodable):
            await watched(client)


async def test_a_silent_stream_is_unreachable_after_the_read_time_out() -> None:
    async with client_of(streaming(event("ADDED"), then=asyncio.Event().wait)) as client:
        with pytest.raises(Unreachable):
            await asyncio.wait_for(watched(client, read_timeout=0.1), 5)


async def test_a_closed_client_says_so() -> None:
    client = ApiClient(Connection("http://127.0.0.1:1"))
    with pytest.raises(RuntimeError, match="async context manager"):
        await client.get(CONFIGMAPS, "ns", "a")
