"""The recorder's queue and what becomes of what it can't post; what it posts is tested on the real API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import pytest

from muster.kube.background_turns import BackgroundTurns
from muster.kube.client import ApiClient
from muster.kube.errors import Forbidden, Unreachable
from muster.kube.events import EventRecorder, EventType, ObjectReference
from tests.kube.fake_time import settle


class Posted:
    """Takes events, or holds them up until `flows` is set."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.flows = asyncio.Event()
        self.flows.set()
        self.down = False
        self.waiting = 0

    async def create(self, _resource: Any, _namespace: str, body: dict[str, Any]) -> dict[str, Any]:
        self.waiting += 1
        await self.flows.wait()
        self.waiting -= 1
        if self.down:
            raise Unreachable("nobody is there")
        self.bodies.append(body)
        if body["reason"] == "Refused":
            raise Forbidden(403, "Forbidden", "no")
        return body


def about(uid: str = "u") -> ObjectReference:
    return ObjectReference("v1", "Pod", "ns", "p", uid)


async def no_pause(_: float) -> None:
    await asyncio.sleep(0)


def of_tenant(namespace: str, number: int = 0) -> ObjectReference:
    return ObjectReference("v1", "Pod", namespace, "p", f"{namespace}-{number}")


@asynccontextmanager
async def running(recorder: EventRecorder) -> AsyncIterator[None]:
    """Run a recorder; at the end of the block everything has been posted."""
    task = asyncio.create_task(recorder.run())
    try:
        yield
        assert await recorder.flush(5)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_events_that_nobody_takes_are_bounded_and_the_newest_are_dropped() -> None:
    server = Posted()
    recorder = EventRecorder(cast(ApiClient, server), "muster")
    for number in range(6000):
        recorder.event(about(), "Normal", "News", f"number {number}", "Act")
    assert not await recorder.flush(0)
    async with running(recorder):
        pass
    assert [body["note"] for body in server.bodies] == [f"number {number}" for number in range(5000)]


@pytest.mark.parametrize("type_of_burst", ["Normal", "Warning"])
async def test_a_burst_of_one_kind_swallows_no_warning_of_another(type_of_burst: EventType) -> None:
    server = Posted()
    recorder = EventRecorder(cast(ApiClient, server), "muster")
    for number in range(6000):
        recorder.event(of_tenant("a"), type_of_burst, "Burst", f"number {number}", "Act")
    recorder.event(of_tenant("b"), "Warning", "Invalid", "of another tenant", "Validate")
    recorder.event(of_tenant("a"), "Warning", "Invalid", "of the same tenant", "Validate")
    async with running(recorder):
        pass
    notes = [body["note"] for body in server.bodies]
    assert len(notes) == 5000
    assert {"of another tenant", "of the same tenant"} < set(notes[:10])


async def test_what_was_dropped_is_told_when_it_still_stands_at_the_next_look() -> None:
    server = Posted()
    recorder = EventRecorder(cast(ApiClient, server), "muster")
    for _ in range(3):
        for number in range(6000):
            recorder.event(of_tenant("a", number), "Warning", "Invalid", "stands", "Validate")
        async with running(recorder):
            pass
    assert len(server.bodies) == 6000
    assert len({body["regarding"]["uid"] for body in server.bodies}) == 6000


async def test_what_no_server_took_is_told_when_it_still_stands_at_the_next_look() -> None:
    server = Posted()
    server.down = True
    recorder = EventRecorder(cast(ApiClient, server), "muster", sleep=no_pause)
    for is_down in (True, False):
        server.down = is_down
        for _ in range(3):
            recorder.event(about(), "Warning", "Invalid", "stands", "Validate")
            async with running(recorder):
                pass
    assert len(server.bodies) == 1


async def test_several_are_posted_at_once() -> None:
    server = Posted()
    server.flows.clear()
    recorder = EventRecorder(cast(ApiClient, server), "muster")
    async with running(recorder):
        for number in range(100):
            recorder.event(about(), "Normal", "News", f"number {number}", "Act")
        await settle()
        assert 1 < server.waiting < 20
        server.flows.set()
    assert len(server.bodies) == 100


async def test_nothing_to_say_is_flushed_at_once_and_a_refusal_is_no_hindrance() -> None:
    server = Posted()
    recorder = EventRecorder(cast(ApiClient, server), "muster")
    assert await recorder.flush(0.01)
    task = asyncio.create_task(recorder.run())
    recorder.event(about(), "Normal", "Refused", "x", "Act")
    recorder.event(about(), "Normal", "Taken", "x", "Act")
    assert await recorder.flush(5)
    assert [body["reason"] for body in server.bodies] == ["Refused", "Taken"]
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_names_are_unique_and_valid_for_any_object() -> None:
    server = Posted()
    recorder = EventRecorder(cast(ApiClient, server), "muster")
    task = asyncio.create_task(recorder.run())
    reference = ObjectReference("v1", "Pod", "ns", "n" * 199 + ".tail", "u")
    for number in range(3):
        recorder.event(reference, "Normal", "News", str(number), "Act")
    await recorder.flush(5)
    await settle()
    names = [body["metadata"]["name"] for body in server.bodies]
    assert len(set(names)) == 3
    assert all(len(name) <= 253 and ".." not in name for name in names)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_an_event_gives_way_to_urgent_writes() -> None:
    server, turns = Posted(), BackgroundTurns(pause=3600.0)
    recorder = EventRecorder(cast(ApiClient, server), "muster", turns=turns)
    turns.begun()
    async with running(recorder):
        recorder.event(about(), "Normal", "News", "text", "Act")
        await settle()
        assert server.bodies == []
        turns.ended()
    assert len(server.bodies) == 1
