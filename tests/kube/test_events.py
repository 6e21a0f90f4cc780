"""The recorder's memory and its bounds; what it posts is tested on the real API server."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, cast

from muster.kube.client import ApiClient
from muster.kube.errors import Forbidden
from muster.kube.events import EventRecorder, ObjectReference
from tests.kube.fake_time import settle


class Posted:
    """Takes events, or holds them up until `flows` is set."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.flows = asyncio.Event()
        self.flows.set()

    async def create(self, _resource: Any, _namespace: str, body: dict[str, Any]) -> dict[str, Any]:
        await self.flows.wait()
        self.bodies.append(body)
        if body["reason"] == "Refused":
            raise Forbidden(403, "Forbidden", "no")
        return body


def about(uid: str = "u") -> ObjectReference:
    return ObjectReference("v1", "Pod", "ns", "p", uid)


async def test_events_that_nobody_takes_are_bounded_and_the_newest_are_dropped() -> None:
    server = Posted()
    server.flows.clear()
    recorder = EventRecorder(cast(ApiClient, server), "muster")
    task = asyncio.create_task(recorder.run())
    for number in range(1500):
        recorder.event(about(), "Normal", "News", f"number {number}", "Act")
    assert not await recorder.flush(0.01)
    server.flows.set()
    assert await recorder.flush(5)
    assert len(server.bodies) == 1000
    assert server.bodies[0]["note"] == "number 0"
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


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


async def test_the_memory_of_what_was_said_is_bounded_and_forgets_the_oldest_object() -> None:
    recorder = EventRecorder(cast(ApiClient, Posted()), "muster")
    for number in range(10_001):
        recorder.event(about(f"u{number}"), "Normal", "News", "same", "Act")
    assert len(recorder._said) == 10_000
    for topic in range(100):
        recorder.event(about("u500"), "Normal", f"News{topic}", "same", "Act")
    assert len(recorder._said["u500"]) == 20


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
