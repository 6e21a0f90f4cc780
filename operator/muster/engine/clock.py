"""Time as the engine sees it: one injected object, so that no test waits for the wall clock."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """A source of time and of waiting."""

    def now(self) -> float:
        """Return seconds since the Unix epoch."""

    async def sleep(self, seconds: float) -> None:
        """Return once `seconds` have passed on this clock."""


class SystemClock:
    """The machine's own clock."""

    def now(self) -> float:
        """Return seconds since the Unix epoch."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """Return once `seconds` have passed."""
        await asyncio.sleep(seconds)


async def wait_until(clock: Clock, event: asyncio.Event, deadline: float | None) -> None:
    """Return when `event` is set or `clock` reaches `deadline` (Unix seconds; None: no deadline)."""
    if deadline is None:
        await event.wait()
        return
    waiters = [
        asyncio.ensure_future(event.wait()),
        asyncio.ensure_future(clock.sleep(max(0.0, deadline - clock.now()))),
    ]
    try:
        await asyncio.wait(waiters, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for waiter in waiters:
            waiter.cancel()
