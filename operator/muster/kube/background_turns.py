"""When writes may be sent that nobody waits for: statuses that have stood for a moment, and events.

An API server takes so many requests, and whatever tells of a binding takes its time from the next one. So while urgent
writes are under way the others take turns: one each `pause` seconds, so that they are slow and never starve. When the
last urgent write has been answered all may go.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from muster.kube.transport import Sleep

PAUSE: Final = 0.03
"""Seconds between two of them: a tenth of what a small API server does meanwhile."""


class BackgroundTurns:
    """Counts what is urgent, and lets the rest wait for its turn. `clock` is monotonic, in seconds."""

    def __init__(
        self, *, pause: float = PAUSE, clock: Callable[[], float] = time.monotonic, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._pause = pause
        self._clock = clock
        self._sleep = sleep
        self._urgent = 0
        self._calm = asyncio.Event()
        self._calm.set()
        self._waiting = asyncio.Lock()
        self._next = 0.0
        """When one may be sent though something urgent is under way."""

    def begun(self, count: int = 1) -> None:
        """So many more urgent writes are under way."""
        if not self._urgent and count:
            self._calm.clear()
            self._next = self._clock() + self._pause
        self._urgent += count

    def ended(self, count: int = 1) -> None:
        """So many fewer are."""
        self._urgent -= count
        if not self._urgent:
            self._calm.set()

    async def turn(self) -> None:
        """Return when the caller may send one write that nobody waits for; in the order of the calls."""
        if not self._urgent and not self._waiting.locked():
            return
        async with self._waiting:
            while self._urgent and (left := self._next - self._clock()) > 0:
                await self._calm_within(left)
            self._next = self._clock() + self._pause

    async def _calm_within(self, seconds: float) -> None:
        either = [asyncio.ensure_future(self._calm.wait()), asyncio.ensure_future(self._sleep(seconds))]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in either:
                each.cancel()
