"""When to decide.

The loop sleeps until a change that matters wakes it or a deadline that the last cycle named is reached, lets changes
that come in a burst gather, and runs one cycle. Where few cycles have run of late, and short ones, they gather for a
moment only, for it is what a lone gang waits for most; else for `debounce` seconds, and while cycles take long for
longer, up to a tenth of a second, so that deciding leaves time for acting. There is no tick: a cluster in which nothing
changes costs nothing. Between two cycles it always yields, so that watches and writes go on.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from muster.engine.clock import Clock, wait_until

_SHARE: Final = 3.0
"""For so many times as long as a cycle took, changes gather before the next one."""
_LONGEST_GATHERING: Final = 0.1
_MOMENT: Final = 0.1
"""The part of the debounce for which changes gather while few cycles run."""
_SHORT: Final = 0.2
"""A cycle that takes less than this part of the debounce may be followed by another one in a moment."""
_FEW: Final = 10
"""Fewer cycles than these in `_OF_LATE` seconds are few: a gang alone takes one for each of its first pods as it comes,
and again as it is bound."""
_OF_LATE: Final = 0.1


class SchedulingLoop:
    """Runs cycles on demand, one at a time.

    `cycle` takes the time (Unix seconds) and returns the next time at which a deadline needs a cycle, or None.
    An exception from it ends the loop: a model in doubt is rebuilt from the API server, never carried on.
    """

    def __init__(self, cycle: Callable[[float], float | None], clock: Clock, *, debounce: float = 0.01) -> None:
        self._cycle = cycle
        self._clock = clock
        self._debounce = debounce
        self._woken = asyncio.Event()
        self._idle = asyncio.Event()
        self._latest: deque[float] = deque(maxlen=_FEW)
        """When the last cycles began."""
        self.cycles = 0

    def wake(self) -> None:
        """Ask for a cycle: something that a decision depends on has changed."""
        self._woken.set()
        self._idle.clear()

    async def run(self) -> None:
        """Run a first cycle, then one for each burst of changes or deadline, until cancelled."""
        self.wake()
        deadline: float | None = None
        took = 0.0
        while True:
            await wait_until(self._clock, self._woken, deadline)
            await self._clock.sleep(self._gathering(took))
            self._woken.clear()
            began = self._clock.now()
            self._latest.append(began)
            deadline = self._cycle(began)
            took = max(0.0, self._clock.now() - began)
            self.cycles += 1
            if not self._woken.is_set():
                self._idle.set()
            await asyncio.sleep(0)

    def _gathering(self, took: float) -> float:
        """Seconds for which changes gather, when the last cycle took so many."""
        few = len(self._latest) < _FEW or self._clock.now() - self._latest[0] > _OF_LATE
        if few and took < self._debounce * _SHORT:
            return self._debounce * _MOMENT
        return max(self._debounce, min(_SHARE * took, _LONGEST_GATHERING))

    @property
    def idle(self) -> bool:
        """Tell whether a cycle has ended and no cause for another waits."""
        return self._idle.is_set()

    async def wait_idle(self) -> None:
        """Return once a cycle has ended with no further cause waiting."""
        await self._idle.wait()
