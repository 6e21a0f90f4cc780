"""When to decide.

The loop sleeps until a change that matters wakes it or a deadline that the last cycle named is reached, lets changes
that come in a burst gather for `debounce` seconds, and runs one cycle. While cycles take long they gather longer, up to
a tenth of a second, so that deciding leaves time for acting. There is no tick: a cluster in which nothing changes costs
nothing. Between two cycles it always yields, so that watches and writes go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from muster.engine.clock import Clock, wait_until

_SHARE: Final = 3.0
"""For so many times as long as a cycle took, changes gather before the next one."""
_LONGEST_GATHERING: Final = 0.1


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
            await self._clock.sleep(max(self._debounce, min(_SHARE * took, _LONGEST_GATHERING)))
            self._woken.clear()
            began = self._clock.now()
            deadline = self._cycle(began)
            took = max(0.0, self._clock.now() - began)
            self.cycles += 1
            if not self._woken.is_set():
                self._idle.set()
            await asyncio.sleep(0)

    @property
    def idle(self) -> bool:
        """Tell whether a cycle has ended and no cause for another waits."""
        return self._idle.is_set()

    async def wait_idle(self) -> None:
        """Return once a cycle has ended with no further cause waiting."""
        await self._idle.wait()
