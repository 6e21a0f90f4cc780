"""A clock that stands still until a test moves it."""

from __future__ import annotations

import asyncio
import heapq
import itertools


class FakeClock:
    """Time by hand: `advance` wakes the sleepers whose time has come, in order."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self._now = now
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = itertools.count()

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        awake: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + seconds, next(self._order), awake))
        await awake

    async def advance(self, seconds: float) -> None:
        """Move the time on and let everything that this wakes come to rest."""
        end = self._now + seconds
        while self._sleepers and self._sleepers[0][0] <= end:
            self._now, _, awake = heapq.heappop(self._sleepers)
            if not awake.done():
                awake.set_result(None)
            await settle()
        self._now = end
        await settle()


async def settle(turns: int = 20) -> None:
    """Let tasks that are ready to run do so, turn by turn of the event loop."""
    for _ in range(turns):
        await asyncio.sleep(0)
