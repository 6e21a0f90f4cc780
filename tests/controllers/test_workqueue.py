"""The workqueue's promises: once, never twice at a time, at the earliest time, later after each failure."""

from __future__ import annotations

import asyncio

import pytest

from muster.controllers.workqueue import BackOff, QueueClosed, WorkQueue
from tests.controllers.fake_clock import FakeClock, settle


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def queue(clock: FakeClock) -> WorkQueue:
    return WorkQueue(clock=clock, back_off=BackOff(first=1, factor=2, longest=5))


async def taken(queue: WorkQueue) -> list[str]:
    """Take and finish everything that is ready now."""
    keys: list[str] = []
    while True:
        getting = asyncio.ensure_future(queue.get())
        await settle()
        if not getting.done():
            getting.cancel()
            return keys
        keys.append(getting.result())
        queue.done(keys[-1])


async def test_a_key_added_many_times_is_handed_out_once_and_in_order(queue: WorkQueue) -> None:
    for key in ("a", "b", "a", "c", "a"):
        queue.add(key)
    assert len(queue) == 3
    assert await taken(queue) == ["a", "b", "c"]
    assert await taken(queue) == []


async def test_a_key_added_while_it_is_worked_on_is_handed_out_again_only_afterwards(queue: WorkQueue) -> None:
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    queue.add("a")
    assert await taken(queue) == []
    queue.done("a")
    assert await taken(queue) == ["a"]
    assert queue.idle


async def test_a_key_that_is_worked_on_does_not_hold_up_others(queue: WorkQueue) -> None:
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("b")
    assert await taken(queue) == ["b"]


@pytest.mark.parametrize(
    ("delays", "expected"),
    [
        pytest.param([5], 5, id="one time"),
        pytest.param([5, 2], 2, id="an earlier time wins when it comes second"),
        pytest.param([2, 5], 2, id="an earlier time wins when it comes first"),
        pytest.param([0], 0, id="no delay is now"),
        pytest.param([-3], 0, id="a time in the past is now"),
    ],
)
async def test_a_delayed_key_comes_once_at_the_earliest_time(
    queue: WorkQueue, clock: FakeClock, delays: list[float], expected: float
) -> None:
    for delay in delays:
        queue.add_after("a", delay)
    if expected:
        await clock.advance(expected - 0.5)
        assert await taken(queue) == []
        await clock.advance(0.5)
    assert await taken(queue) == ["a"]
    await clock.advance(100)
    assert await taken(queue) == []


async def test_someone_who_waits_is_woken_by_a_delayed_key(queue: WorkQueue, clock: FakeClock) -> None:
    getting = asyncio.ensure_future(queue.get())
    await settle()
    queue.add_after("late", 9)
    queue.add_after("early", 3)
    await settle()
    await clock.advance(3)
    assert await getting == "early"


async def test_a_look_at_the_key_replaces_the_time_it_waited_for(queue: WorkQueue, clock: FakeClock) -> None:
    queue.add_after("a", 10)
    queue.add("a")
    assert await taken(queue) == ["a"]
    await clock.advance(20)
    assert await taken(queue) == []


async def test_failures_in_a_row_wait_longer_up_to_a_bound_and_success_starts_over(queue: WorkQueue) -> None:
    assert [queue.failed("a") for _ in range(5)] == [1, 2, 4, 5, 5]
    assert queue.failed("b") == 1
    queue.succeeded("a")
    assert queue.failed("a") == 1


async def test_a_closed_queue_tells_who_waits_and_takes_nothing_more(queue: WorkQueue) -> None:
    getting = asyncio.ensure_future(queue.get())
    await settle()
    queue.close()
    with pytest.raises(QueueClosed):
        await getting
    queue.add("a")
    queue.add_after("b", 1)
    with pytest.raises(QueueClosed):
        await queue.get()


def test_a_thousand_failures_do_not_overflow_the_delay() -> None:
    assert BackOff().delay(1_000) == 60.0


async def test_changes_that_come_together_are_looked_at_together(clock: FakeClock) -> None:
    queue = WorkQueue(clock=clock, rest=1.0)
    queue.add("a")
    assert await taken(queue) == ["a"]
    queue.add("a")
    queue.add("b")
    assert await taken(queue) == ["b"]
    await clock.advance(0.5)
    queue.add("a")
    assert await taken(queue) == []
    await clock.advance(0.5)
    assert await taken(queue) == ["a"]
    await clock.advance(5)
    assert await taken(queue) == []
    queue.add("a")
    assert await taken(queue) == ["a"]


async def test_what_changes_during_the_work_is_looked_at_after_the_rest(clock: FakeClock) -> None:
    queue = WorkQueue(clock=clock, rest=1.0)
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    queue.done("a")
    assert await taken(queue) == []
    await clock.advance(1.0)
    assert await taken(queue) == ["a"]


@pytest.mark.parametrize(("took", "rests"), [(0.01, 0.1), (0.5, 0.5), (30.0, 1.0)])
async def test_after_long_work_a_key_rests_as_long_up_to_a_second(clock: FakeClock, took: float, rests: float) -> None:
    queue = WorkQueue(clock=clock, rest=0.1)
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    await clock.advance(took)
    queue.done("a")
    await clock.advance(rests * 0.9)
    assert await taken(queue) == []
    await clock.advance(rests * 0.2)
    assert await taken(queue) == ["a"]


async def test_a_key_that_has_rested_is_forgotten(clock: FakeClock) -> None:
    queue = WorkQueue(clock=clock, rest=1.0)
    for number in range(100):
        queue.add(f"k{number}")
    await taken(queue)
    await clock.advance(1.0)
    queue.add("one more")
    await taken(queue)
    assert list(queue._rested) == ["one more"]


async def test_what_is_on_its_way_comes_before_what_nobody_has_begun_with(queue: WorkQueue) -> None:
    for key in ("a", "b", "c"):
        queue.add(key)
    queue.add("on its way", begun=True)
    queue.add("b", begun=True)
    queue.add("b")
    assert len(queue) == 4
    assert await taken(queue) == ["on its way", "b", "a", "c"]


async def test_what_nobody_has_begun_with_does_not_wait_for_ever(queue: WorkQueue) -> None:
    queue.add("new")
    for key in "abcdefg":
        queue.add(key, begun=True)
    assert await taken(queue) == ["a", "b", "c", "new", "d", "e", "f", "g"]


@pytest.mark.parametrize("added", ["while it rests", "while it is worked on"])
async def test_it_is_on_its_way_also_when_it_can_not_be_taken_at_once(clock: FakeClock, added: str) -> None:
    queue = WorkQueue(clock=clock, rest=1)
    queue.add("a")
    assert await queue.get() == "a"
    if added == "while it is worked on":
        queue.add("a", begun=True)
        queue.add("a")
    queue.done("a")
    if added == "while it rests":
        queue.add("a", begun=True)
        queue.add("a")
    await clock.advance(1)
    queue.add("b")
    assert await taken(queue) == ["a", "b"]
