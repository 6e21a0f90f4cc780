from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from muster.engine.loop import SchedulingLoop
from tests.engine.manual_clock import ManualClock, settle


class Cycles:
    """Notes when cycles ran; `deadlines` are what the next ones return."""

    def __init__(self, clock: ManualClock) -> None:
        self.start = clock.now()
        self.times: list[float] = []
        self.deadlines: list[float | None] = []
        self.on_cycle: Callable[[], None] = lambda: None

    def __call__(self, now: float) -> float | None:
        self.times.append(round(now - self.start, 6))
        self.on_cycle()
        deadline = self.deadlines.pop(0) if self.deadlines else None
        return None if deadline is None else self.start + deadline


@asynccontextmanager
async def running(loop: SchedulingLoop) -> AsyncIterator[None]:
    task = asyncio.create_task(loop.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_the_first_cycle_comes_after_a_moment_without_any_cause() -> None:
    clock = ManualClock()
    cycles = Cycles(clock)
    async with running(SchedulingLoop(cycles, clock, debounce=0.01)):
        await clock.advance(0.0019)
        assert cycles.times == []
        await clock.advance(0.0002)
        assert cycles.times == [0.002]


async def test_while_many_cycles_run_changes_gather_for_the_debounce_and_after_a_rest_for_a_moment() -> None:
    clock = ManualClock()
    cycles = Cycles(clock)
    loop = SchedulingLoop(cycles, clock, debounce=0.01)
    cycles.on_cycle = lambda: loop.wake() if len(cycles.times) < 8 else None
    async with running(loop):
        await clock.advance(1)
        assert cycles.times == [0.002, 0.004, 0.006, 0.008, 0.01, 0.02, 0.03, 0.04]
        loop.wake()
        await clock.advance(1)
        assert cycles.times[8:] == [1.002]


@pytest.mark.parametrize(("took", "gathers"), [(0.0005, 0.002), (0.02, 0.06), (5.0, 0.1)])
async def test_after_a_long_cycle_changes_gather_longer(took: float, gathers: float) -> None:
    clock = ManualClock()
    cycles = Cycles(clock)
    loop = SchedulingLoop(cycles, clock, debounce=0.01)
    cycles.on_cycle = lambda: clock.pass_by(took)
    async with running(loop):
        await clock.advance(0.01)
        over = clock.now() - cycles.start
        loop.wake()
        await clock.advance(gathers * 0.9)
        assert len(cycles.times) == 1
        await clock.advance(gathers * 0.2)
        assert len(cycles.times) == 2
        assert cycles.times[1] - over == pytest.approx(gathers, abs=1e-3)


async def test_nothing_changes_so_no_cycle_runs_however_long_it_takes() -> None:
    clock = ManualClock()
    cycles = Cycles(clock)
    loop = SchedulingLoop(cycles, clock, debounce=0.01)
    async with running(loop):
        await clock.advance(1)
        await loop.wait_idle()
        await clock.advance(100_000)
        assert cycles.times == [0.002]


async def test_a_burst_of_changes_is_one_cycle() -> None:
    clock = ManualClock()
    cycles = Cycles(clock)
    loop = SchedulingLoop(cycles, clock, debounce=0.01)
    async with running(loop):
        await clock.advance(1)
        for _ in range(5):
            loop.wake()
            await clock.advance(0.0003)
        await clock.advance(1)
        assert cycles.times == [0.002, 1.002]


async def test_a_change_during_a_cycle_is_not_lost() -> None:
    clock = ManualClock()
    cycles = Cycles(clock)
    loop = SchedulingLoop(cycles, clock, debounce=0.01)

    def wake_once() -> None:
        cycles.on_cycle = lambda: None
        loop.wake()

    cycles.on_cycle = wake_once
    async with running(loop):
        await clock.advance(1)
        assert cycles.times == [0.002, 0.004]


async def test_a_deadline_runs_a_cycle_at_its_time_and_only_then() -> None:
    clock = ManualClock()
    cycles = Cycles(clock)
    cycles.deadlines = [60.0, None]
    loop = SchedulingLoop(cycles, clock, debounce=0.01)
    async with running(loop):
        await clock.advance(59)
        assert cycles.times == [0.002]
        await clock.advance(2)
        assert cycles.times == [0.002, 60.002]
        await clock.advance(1000)
        assert cycles.times == [0.002, 60.002]


async def test_a_later_cycle_may_take_a_deadline_back() -> None:
    clock = ManualClock()
    cycles = Cycles(clock)
    cycles.deadlines = [60.0, None]
    loop = SchedulingLoop(cycles, clock, debounce=0.01)
    async with running(loop):
        await clock.advance(1)
        loop.wake()
        await clock.advance(100)
        assert cycles.times == [0.002, 1.002]


async def test_a_deadline_that_has_passed_already_does_not_spin() -> None:
    clock = ManualClock()
    cycles = Cycles(clock)
    cycles.deadlines = [-5.0] * 50
    async with running(SchedulingLoop(cycles, clock, debounce=0.01)):
        await clock.advance(0.011)
        await settle(2000)
        assert len(cycles.times) == 5
        await clock.advance(0.01)
        assert len(cycles.times) == 6


async def test_a_failing_cycle_ends_the_loop() -> None:
    clock = ManualClock()

    def broken(now: float) -> float | None:
        raise ZeroDivisionError

    task = asyncio.create_task(SchedulingLoop(broken, clock).run())
    await clock.advance(1)
    with pytest.raises(ZeroDivisionError):
        await task
