from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from muster.engine.backoff import Backoff
from muster.engine.write_queue import PATIENCE, WriteQueue
from muster.kube.background_turns import BackgroundTurns
from muster.kube.errors import ApiError, Conflict, Forbidden, Invalid, NotFound, ServerError, TooManyRequests
from tests.engine.manual_clock import ManualClock, settle


class Writer:
    """Notes each write; `failures` are raised by the next ones; while `hold` is clear, writes stay open."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.failures: list[Exception] = []
        self.open = 0
        self.most_open = 0
        self.hold = asyncio.Event()
        self.hold.set()

    async def __call__(self, key: str) -> None:
        self.written.append(key)
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        await self.hold.wait()
        self.open -= 1
        if self.failures:
            raise self.failures.pop(0)


@asynccontextmanager
async def running(
    writer: Writer, clock: ManualClock, concurrency: int = 10, turns: BackgroundTurns | None = None
) -> AsyncIterator[WriteQueue]:
    backoff = Backoff(first=1.0, limit=8.0)
    turns = turns or BackgroundTurns()
    queue = WriteQueue(writer, clock, name="test", concurrency=concurrency, backoff=backoff, give_way=turns.turn)
    task = asyncio.create_task(queue.run())
    try:
        yield queue
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_a_key_put_many_times_while_it_waits_is_written_once() -> None:
    writer, clock = Writer(), ManualClock()
    async with running(writer, clock) as queue:
        for _ in range(3):
            queue.put("a")
        await queue.settled("a")
        assert writer.written == ["a"]
        assert queue.idle


async def test_a_key_put_during_its_write_is_written_once_more_and_never_twice_at_a_time() -> None:
    writer, clock = Writer(), ManualClock()
    writer.hold.clear()
    async with running(writer, clock) as queue:
        queue.put("a")
        await settle()
        queue.put("a")
        queue.put("a")
        await settle()
        assert writer.written == ["a"]
        writer.hold.set()
        await queue.settled("a")
        assert writer.written == ["a", "a"]
        assert writer.most_open == 1


async def test_different_keys_are_written_at_the_same_time_up_to_the_limit() -> None:
    writer, clock = Writer(), ManualClock()
    writer.hold.clear()
    async with running(writer, clock, concurrency=2) as queue:
        for key in "abc":
            queue.put(key)
        await settle()
        assert writer.written == ["a", "b"]
        writer.hold.set()
        await queue.settled("c")
        assert writer.most_open == 2


RETRIED: list[Exception] = [
    ServerError(500, "InternalError", ""),
    TooManyRequests(429, "TooManyRequests", ""),
    Conflict(409, "Conflict", ""),
    Forbidden(403, "Forbidden", ""),
    ValueError("nobody foresaw this"),
]


@pytest.mark.parametrize("failure", RETRIED, ids=lambda failure: type(failure).__name__)
async def test_a_failed_write_is_tried_again_with_growing_pauses(failure: Exception) -> None:
    writer, clock = Writer(), ManualClock()
    writer.failures = [failure] * 3
    async with running(writer, clock) as queue:
        queue.put("a")
        counts = []
        for seconds in (0.5, 1, 2, 4):
            await clock.advance(seconds)
            counts.append(len(writer.written))
        assert counts == [1, 2, 3, 4]
        assert queue.idle


@pytest.mark.parametrize(
    "failure", [NotFound(404, "NotFound", ""), Invalid(422, "Invalid", "")], ids=lambda e: e.reason
)
async def test_a_write_that_can_never_succeed_is_given_up(failure: ApiError) -> None:
    writer, clock = Writer(), ManualClock()
    writer.failures = [failure]
    async with running(writer, clock) as queue:
        queue.put("a")
        assert await queue.settled("a") is isinstance(failure, NotFound)
        await clock.advance(1000)
        assert writer.written == ["a"]


async def test_who_waits_is_told_of_a_write_that_fails_again_and_again_and_it_is_tried_on() -> None:
    writer, clock = Writer(), ManualClock()
    writer.failures = [Forbidden(403, "Forbidden", "")] * (2 * PATIENCE)
    async with running(writer, clock) as queue:
        queue.put("a")
        first = asyncio.create_task(queue.settled("a"))
        await clock.advance(6)
        second = asyncio.create_task(queue.settled("a"))
        assert not first.done()
        await clock.advance(12)
        assert first.done()
        assert not await first
        assert not second.done()
        await clock.advance(100)
        assert not await second
        assert queue.idle
        assert await queue.settled("a")
        assert len(writer.written) == 2 * PATIENCE + 1


async def test_a_waiter_that_has_gone_away_troubles_nobody() -> None:
    writer, clock = Writer(), ManualClock()
    writer.failures = [Forbidden(403, "Forbidden", "")] * PATIENCE
    async with running(writer, clock) as queue:
        queue.put("a")
        gone, there = (asyncio.create_task(queue.settled("a")) for _ in range(2))
        await settle()
        gone.cancel()
        await clock.advance(100)
        assert not await there
        assert queue.idle


async def test_a_failing_key_does_not_hold_up_the_others() -> None:
    writer, clock = Writer(), ManualClock()
    writer.failures = [ServerError(500, "InternalError", "")]
    async with running(writer, clock, concurrency=1) as queue:
        queue.put("a")
        queue.put("b")
        await queue.settled("b")
        assert writer.written == ["a", "b"]
        await clock.advance(2)
        assert writer.written == ["a", "b", "a"]


async def test_news_that_may_wait_is_written_later_and_once() -> None:
    writer, clock = Writer(), ManualClock()
    async with running(writer, clock) as queue:
        queue.put_later("a", 10)
        await clock.advance(6)
        queue.put_later("a", 10)
        assert (writer.written, queue.idle) == ([], False)
        await clock.advance(4)
        assert (writer.written, queue.idle) == (["a"], True)
        await clock.advance(100)
        assert writer.written == ["a"]


async def test_news_that_hurries_takes_with_it_what_may_wait() -> None:
    writer, clock = Writer(), ManualClock()
    async with running(writer, clock) as queue:
        queue.put_later("a", 10)
        queue.put("a")
        await queue.settled("a")
        await clock.advance(100)
        assert (writer.written, queue.idle) == (["a"], True)


async def test_news_that_may_wait_and_comes_during_a_write_is_written_too() -> None:
    writer, clock = Writer(), ManualClock()
    writer.hold.clear()
    async with running(writer, clock) as queue:
        queue.put("a")
        await settle()
        queue.put_later("a", 10)
        writer.hold.set()
        await settle()
        assert (writer.written, queue.idle) == (["a"], False)
        await clock.advance(10)
        assert (writer.written, queue.idle) == (["a", "a"], True)


async def test_news_that_may_be_overtaken_waits_until_it_has_stood_for_a_while() -> None:
    writer, clock = Writer(), ManualClock()
    async with running(writer, clock) as queue:
        for _ in range(3):
            queue.put_later("a", 4, at_most=10)
            await clock.advance(3)
        assert writer.written == []
        await clock.advance(1)
        assert (writer.written, queue.idle) == (["a"], True)


async def test_news_that_is_overtaken_again_and_again_is_written_all_the_same() -> None:
    writer, clock = Writer(), ManualClock()
    async with running(writer, clock) as queue:
        for _ in range(3):
            queue.put_later("a", 4, at_most=10)
            await clock.advance(3)
        queue.put_later("a", 4, at_most=10)
        await clock.advance(1)
        assert (writer.written, queue.idle) == (["a"], True)
        await clock.advance(100)
        assert writer.written == ["a"]


async def test_news_that_may_wait_less_brings_forward_what_may_wait_longer() -> None:
    writer, clock = Writer(), ManualClock()
    async with running(writer, clock) as queue:
        queue.put_later("a", 10)
        queue.put_later("a", 2, at_most=3)
        queue.put_later("a", 10)
        await clock.advance(2)
        assert (writer.written, queue.idle) == (["a"], True)
        await clock.advance(100)
        assert writer.written == ["a"]


async def test_a_clock_that_is_put_back_holds_nothing_back() -> None:
    writer, clock = Writer(), ManualClock()
    async with running(writer, clock) as queue:
        queue.put_later("a", 1, at_most=2)
        await clock.put_back(3600)
        queue.put_later("a", 1, at_most=2)
        await clock.advance(2)
        assert (writer.written, queue.idle) == (["a"], True)


async def test_what_may_wait_gives_way_to_what_is_urgent_elsewhere_and_what_is_put_does_not() -> None:
    writer, clock = Writer(), ManualClock()
    turns = BackgroundTurns(pause=5.0, clock=clock.now, sleep=clock.sleep)
    async with running(writer, clock, turns=turns) as queue:
        turns.begun()
        for key in "abc":
            queue.put_later(key, 1)
        await clock.advance(4)
        assert (writer.written, queue.idle) == ([], False)
        queue.put("c")
        await settle()
        assert writer.written == ["c"]
        await clock.advance(1)
        assert writer.written == ["c", "a"]
        turns.ended()
        await settle(50)
        assert (writer.written, queue.idle) == (["c", "a", "b"], True)


async def test_while_it_gives_way_news_is_gathered_and_written_once() -> None:
    writer, clock = Writer(), ManualClock()
    turns = BackgroundTurns(pause=100.0, clock=clock.now, sleep=clock.sleep)
    async with running(writer, clock, turns=turns) as queue:
        turns.begun()
        for seconds in (1, 2, 1):
            queue.put_later("a", seconds)
            await clock.advance(3)
        queue.put("a")
        queue.put_later("a", 1)
        turns.ended()
        await clock.advance(50)
        assert (writer.written, queue.idle) == (["a"], True)


async def test_news_that_waits_long_enough_during_a_write_of_its_object_is_written_after_it() -> None:
    writer, clock = Writer(), ManualClock()
    writer.hold.clear()
    async with running(writer, clock) as queue:
        queue.put("a")
        await settle()
        queue.put_later("a", 1)
        await clock.advance(2)
        assert (writer.written, writer.most_open) == (["a"], 1)
        writer.hold.set()
        await settle(50)
        assert (writer.written, writer.most_open, queue.idle) == (["a", "a"], 1, True)


async def test_of_what_may_wait_only_a_few_are_written_at_a_time_and_leave_room_for_what_may_not() -> None:
    writer, clock = Writer(), ManualClock()
    writer.hold.clear()
    async with running(writer, clock) as queue:
        for number in range(20):
            queue.put_later(f"later-{number}", 1)
        await clock.advance(2)
        assert writer.most_open == 4
        queue.put("now")
        await settle()
        assert writer.written[-1] == "now"
        writer.hold.set()
        await settle(200)
        assert (len(writer.written), queue.idle) == (21, True)
