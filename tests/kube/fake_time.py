"""A clock that only moves when told to, and sleeps that end when it has moved far enough."""

from __future__ import annotations

import asyncio
import heapq
from itertools import count


class FakeTime:
    """Seconds since some start; `sleep` and `clock` are what the code under test gets."""

    def __init__(self) -> None:
        self.now = 0.0
        self._order = count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def clock(self) -> float:
        """The present time."""
        return self.now

    async def sleep(self, seconds: float) -> None:
        """Return once the time has moved on by `seconds`."""
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.now + seconds, next(self._order), woken))
        await woken

    async def advance(self, seconds: float) -> None:
        """Move on, waking every sleeper at its own moment and letting the others react before the next one."""
        await settle()
        end = self.now + seconds
        while self._sleepers and self._sleepers[0][0] <= end:
            due, _, woken = heapq.heappop(self._sleepers)
            if woken.done():
                continue
            self.now = due
            woken.set_result(None)
            await settle()
        self.now = end


async def settle() -> None:
    """Let everything run that can run without time passing."""
    for _ in range(25):
        await asyncio.sleep(0)
