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
        await clock.advance(0.0009)
        assert cycles.times == []
        await clock.advance(0.0002)
        assert cycles.times == [0.001]


async def test_while_many_cycles_run_changes_gather_for_the_debounce_and_after_a_rest_for_a_moment() -> None:
    clock = ManualClock()
    cycles = Cycles(clock)
    loop = SchedulingLoop(cycles, clock, debounce=0.01)
    cycles.on_cycle = lambda: loop.wake() if len(cycles.times) < 13 else None
    async with running(loop):
        await clock.advance(1)
        assert cycles.times[8:] == pytest.approx([0.009, 0.01, 0.02, 0.03, 0.04], abs=1e-5)
        loop.wake()
        await clock.advance(1)
        assert cycles.times[13:] == [1.001]


@pytest.mark.parametrize(("took", "gathers"), [(0.0005, 0.001), (0.003, 0.01), (0.02, 0.06), (5.0, 0.1)])
async def test_after_a_long_cycle_changes_gather_longer(took: float, gathers: float) -> None:
    clock = ManualClock()
    cycles = Cycles(clock)
    loop = SchedulingLoop(cycles, clock, debounce=0.01)
    cycles.on_cycle = lambda: clock.pass_by(took)
    async with running(loop):
        await clock.advance(0.001)
        await assert_next_cycle_after(gathers, loop, cycles, clock)


@pytest.mark.parametrize(("took", "gathers"), [(0.0005, 0.01), (0.001, 0.01), (0.005, 0.015)])
async def test_while_many_cycles_run_changes_gather_longer_still(took: float, gathers: float) -> None:
    clock = ManualClock()
    cycles = Cycles(clock)
    loop = SchedulingLoop(cycles, clock, debounce=0.01)

    def busy() -> None:
        clock.pass_by(took)
        if len(cycles.times) < 10:
            loop.wake()

    cycles.on_cycle = busy
    async with running(loop):
        while len(cycles.times) < 10:
            await clock.advance(0.001)
        await assert_next_cycle_after(gathers, loop, cycles, clock)


async def assert_next_cycle_after(gathers: float, loop: SchedulingLoop, cycles: Cycles, clock: ManualClock) -> None:
    before, over = len(cycles.times), clock.now() - cycles.start
    loop.wake()
    await clock.advance(gathers * 0.9)
    assert len(cycles.times) == before
    await clock.advance(gathers * 0.2)
    assert len(cycles.times) == before + 1
    assert cycles.times[before] - over == pytest.approx(gathers, abs=1e-3)


async def test_nothing_changes_so_no_cycle_runs_however_long_it_takes() -> None:
    clock = ManualClock()
    cycles = Cycles(clock)
    loop = SchedulingLoop(cycles, clock, debounce=0.01)
    async with running(loop):
        await clock.advance(1)
        await loop.wait_idle()
        await clock.advance(100_000)
        assert cycles.times == [0.001]


async def test_a_burst_of_changes_is_one_cycle() -> None:
    clock = ManualClock()
    cycles = Cycles(clock)
    loop = SchedulingLoop(cycles, clock, debounce=0.01)
    async with running(loop):
        await clock.advance(1)
        for _ in range(5):
            loop.wake()
            await clock.advance(0.0001)
        await clock.advance(1)
        assert cycles.times == [0.001, 1.001]


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
        assert cycles.times == [0.001, 0.002]


async def test_a_deadline_runs_a_cycle_at_its_time_and_only_then() -> None:
    clock = ManualClock()
    cycles = Cycles(clock)
    cycles.deadlines = [60.0, None]
    loop = SchedulingLoop(cycles, clock, debounce=0.01)
    async with running(loop):
        await clock.advance(59)
        assert cycles.times == [0.001]
        await clock.advance(2)
        assert cycles.times == [0.001, 60.001]
        await clock.advance(1000)
        assert cycles.times == [0.001, 60.001]


async def test_a_later_cycle_may_take_a_deadline_back() -> None:
    clock = ManualClock()
    cycles = Cycles(clock)
    cycles.deadlines = [60.0, None]
    loop = SchedulingLoop(cycles, clock, debounce=0.01)
    async with running(loop):
        await clock.advance(1)
        loop.wake()
        await clock.advance(100)
        assert cycles.times == [0.001, 1.001]


async def test_a_deadline_that_has_passed_already_does_not_spin() -> None:
    clock = ManualClock()
    cycles = Cycles(clock)
    cycles.deadlines = [-5.0] * 50
    async with running(SchedulingLoop(cycles, clock, debounce=0.01)):
        await clock.advance(0.011)
        await settle(2000)
        assert len(cycles.times) == 10
        await clock.advance(0.01)
        assert len(cycles.times) == 11


async def test_a_failing_cycle_ends_the_loop() -> None:
    clock = ManualClock()

    def broken(now: float) -> float | None:
        raise ZeroDivisionError

    task = asyncio.create_task(SchedulingLoop(broken, clock).run())
    await clock.advance(1)
    with pytest.raises(ZeroDivisionError):
        await task
