"""The account in a Queue's status: written when it changes, and put right when somebody else has changed it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from typing import Any, cast

import msgspec
import pytest

from muster.engine.queue_status import QueueWriter
from muster.kube.informer import Change
from muster.kube.objects import Queue
from muster.kube.store import Store
from muster.scheduler.outcome import QueueStatus
from muster.scheduler.resources import Resources
from tests.engine.manual_clock import ManualClock, settle

TWO = QueueStatus(Resources(2000, 1024))
TWO_TEXT = {"cpu": "2", "memory": "1Ki"}
THREE = QueueStatus(Resources(3000, 1024))


class Server:
    """An API server with queues, and the informer on it: each write is seen at once. `keeps` is what it stores."""

    def __init__(self) -> None:
        self.store: Store[Queue] = Store("Queue")
        self.writes: list[dict[str, Any]] = []
        self.keeps: Callable[[dict[str, Any]], dict[str, Any]] = lambda allocated: allocated
        self._version = 0

    def put(self, allocated: dict[str, Any] | None, name: str = "q", uid: str = "u") -> Queue:
        """Somebody's write."""
        self._version += 1
        meta = {"name": name, "uid": uid, "resourceVersion": str(self._version)}
        found = msgspec.convert({"metadata": meta, "status": {"allocated": allocated}}, type=Queue)
        self.store.put(found)
        return found

    def shown(self, name: str = "q") -> dict[str, Any] | None:
        found = self.store.get(name)
        assert found is not None
        return cast("dict[str, Any] | None", found.status.allocated)

    # as a client

    async def patch(self, resource: Any, namespace: None, name: str, patch: dict[str, Any], **_: Any) -> Queue:
        self.writes.append(patch["status"])
        merged = {**(self.shown(name) or {}), **self.keeps(patch["status"]["allocated"])}
        return self.put(
            {key: value for key, value in merged.items() if value is not None}, name, patch["metadata"]["uid"]
        )

    # as an informer

    def get(self, namespace: None, name: str) -> Queue | None:
        return self.store.get(name)

    def record(self, found: Queue) -> None:
        self.store.put(found)

    def subscribe(self, handler: Callable[[Change[Queue]], None]) -> None:
        self.store.subscribe(handler)


@asynccontextmanager
async def writing(server: Server, clock: ManualClock) -> AsyncIterator[QueueWriter]:
    writer = QueueWriter(cast(Any, server), cast(Any, server), clock)
    writer.attach()
    task = asyncio.create_task(writer.queue.run())
    try:
        yield writer
    finally:
        writer.close()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_many_changes_by_somebody_else_are_put_right_by_one_write() -> None:
    server, clock = Server(), ManualClock()
    server.put(None)
    async with writing(server, clock) as writer:
        writer.update({"q": TWO})
        await clock.advance(2)
        assert (server.shown(), len(server.writes)) == (TWO_TEXT, 1)
        for number in range(10):
            server.put({"cpu": str(700 + number), "nvidia.com/gpu": "1"})
            await clock.advance(0.05)
        await clock.advance(100)
        assert (server.shown(), len(server.writes)) == (TWO_TEXT, 2)
        assert writer.queue.idle


@pytest.mark.parametrize("allocated", [None, {}, {"cpu": "much"}], ids=["taken away", "emptied", "unreadable"])
async def test_whatever_has_been_made_of_it_is_put_right(allocated: dict[str, Any] | None) -> None:
    server, clock = Server(), ManualClock()
    server.put(TWO_TEXT)
    async with writing(server, clock) as writer:
        writer.update({"q": TWO})
        await clock.advance(2)
        assert server.writes == []
        server.put(allocated)
        await clock.advance(2)
        assert server.shown() == TWO_TEXT


async def test_the_same_in_other_words_is_left_as_it_is() -> None:
    server, clock = Server(), ManualClock()
    server.put(TWO_TEXT)
    async with writing(server, clock) as writer:
        writer.update({"q": TWO})
        await clock.advance(2)
        server.put({"cpu": "2000m", "memory": "1024"})
        await settle()
        assert (writer.queue.idle, server.writes) == (True, [])


async def test_the_newest_account_is_what_is_put_in() -> None:
    server, clock = Server(), ManualClock()
    server.put(TWO_TEXT)
    async with writing(server, clock) as writer:
        writer.update({"q": TWO})
        await clock.advance(2)
        server.put({"cpu": "777"})
        writer.update({"q": THREE})
        await clock.advance(2)
        assert (server.shown(), len(server.writes)) == ({"cpu": "3", "memory": "1Ki"}, 1)


async def test_another_writer_is_answered_after_longer_and_longer_pauses_until_it_rests() -> None:
    server, clock = Server(), ManualClock()
    server.put(TWO_TEXT)
    async with writing(server, clock) as writer:
        writer.update({"q": TWO})
        await clock.advance(2)
        times: list[float] = []
        for _ in range(4000):
            server.put({"cpu": "777", "memory": "1Ki"})
            await clock.advance(0.1)
            times += [clock.now()] * (len(server.writes) - len(times))
        pauses = [later - earlier for earlier, later in pairwise(times)]
        assert pauses[:8] == pytest.approx([2, 4, 8, 16, 32, 60, 60, 60], abs=0.3)
        await clock.advance(60)
        assert server.shown() == TWO_TEXT
        await clock.advance(400)
        before = len(server.writes)
        server.put({"cpu": "777"})
        await clock.advance(1)
        assert (server.shown(), len(server.writes)) == (TWO_TEXT, before + 1)


async def test_the_scheduler_s_own_news_does_not_wait_for_the_end_of_a_dispute() -> None:
    server, clock = Server(), ManualClock()
    server.put(TWO_TEXT)
    async with writing(server, clock) as writer:
        writer.update({"q": TWO})
        await clock.advance(2)
        for _ in range(50):
            server.put({"cpu": "777"})
            await clock.advance(1)
        writer.update({"q": THREE})
        await clock.advance(1)
        assert server.shown() == {"cpu": "3", "memory": "1Ki"}


async def test_what_the_server_makes_of_our_own_write_is_not_written_for_ever() -> None:
    server, clock = Server(), ManualClock()
    server.keeps = lambda allocated: {**allocated, "cpu": "1"}
    server.put(None)
    async with writing(server, clock) as writer:
        writer.update({"q": TWO})
        await clock.advance(10)
        before = len(server.writes)
        assert before <= 2, "the first time the watch may tell of it before the answer does"
        await clock.advance(100)
        assert len(server.writes) == before
        server.put({"cpu": "777"})
        await clock.advance(100)
        assert len(server.writes) == before + 1


async def test_a_queue_that_is_made_anew_waits_for_its_own_account() -> None:
    server, clock = Server(), ManualClock()
    server.put(TWO_TEXT)
    async with writing(server, clock) as writer:
        writer.update({"q": TWO})
        await clock.advance(2)
        server.store.remove("q")
        server.put({"cpu": "777"}, uid="another")
        await clock.advance(2)
        assert server.writes == []
        writer.update({"q": TWO})
        await clock.advance(2)
        assert server.shown() == TWO_TEXT


async def test_a_writer_that_is_closed_leaves_queues_to_the_next_one() -> None:
    server, clock = Server(), ManualClock()
    server.put(TWO_TEXT)
    async with writing(server, clock) as writer:
        writer.update({"q": TWO})
        await clock.advance(2)
    server.put({"cpu": "777"})
    await clock.advance(100)
    assert (server.writes, writer.queue.idle) == ([], True)
