"""Pauses before what failed the last time is tried again."""

from __future__ import annotations

import asyncio

from muster.engine.backoff import Backoff
from muster.engine.setbacks import Setbacks
from tests.engine.manual_clock import ManualClock


async def rest_of(setbacks: Setbacks, clock: ManualClock, *keys: str) -> float:
    """How long it rests, to the next whole second."""
    task = asyncio.create_task(setbacks.rest(*keys))
    seconds = 0
    await clock.advance(0)
    while not task.done():
        await clock.advance(1)
        seconds += 1
    return seconds


async def test_what_failed_most_often_of_several_says_how_long_to_rest() -> None:
    clock = ManualClock()
    setbacks = Setbacks(clock, Backoff(first=4.0, limit=16.0))
    assert await rest_of(setbacks, clock, "a", "b") == 0
    for key in ("a", "b", "b"):
        setbacks.remember(key)
    assert await rest_of(setbacks, clock, "a") == 4
    assert await rest_of(setbacks, clock, "a", "b") in (7, 8)
    setbacks.forget("b")
    assert await rest_of(setbacks, clock, "a", "b") == 4
    assert await rest_of(setbacks, clock) == 0


async def test_only_so_much_is_remembered() -> None:
    setbacks = Setbacks(ManualClock(), Backoff(first=1.0, limit=1.0))
    for index in range(5000):
        setbacks.remember(str(index))
    assert len(setbacks) == 1000
