"""A clock that moves only when a test says so."""

from __future__ import annotations

import asyncio
import heapq
import itertools


class ManualClock:
    """Satisfies the engine's Clock. Sleepers wake in the order of their deadlines as `advance` passes them."""

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._now = start
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = itertools.count()

    def now(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + seconds, next(self._order), future))
        await future

    async def advance(self, seconds: float) -> None:
        """Move on, stopping at each deadline on the way to let whoever waited for it run."""
        target = self._now + seconds
        await settle()
        while self._sleepers and self._sleepers[0][0] <= target:
            deadline, _, future = heapq.heappop(self._sleepers)
            self._now = max(self._now, deadline)
            if not future.done():
                future.set_result(None)
                await settle()
        self._now = target
        await settle()

    def pass_by(self, seconds: float) -> None:
        """Time that goes by while the caller works: nobody else runs meanwhile."""
        self._now += seconds

    async def put_back(self, seconds: float) -> None:
        """Be set to an earlier time. Who sleeps does so as long as before: a sleep is no appointment."""
        await settle()
        self._now -= seconds
        self._sleepers = [(deadline - seconds, order, future) for deadline, order, future in self._sleepers]


async def settle(turns: int = 20) -> None:
    """Let everything that can run without time passing run."""
    for _ in range(turns):
        await asyncio.sleep(0)
