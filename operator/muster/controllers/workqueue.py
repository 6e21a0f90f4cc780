"""A queue of object keys that need a look.

It promises: a key that is added any number of times before it is taken is handed out once; a key is never handed out
twice at the same time, and a key added while it is being worked on is handed out again afterwards; a delayed key comes
at the earliest time that anybody asked for; a failing key is delayed longer each time, up to a bound, without holding
up the others; a key that was looked at a moment ago rests, so that changes which come together are looked at together;
what has been begun is brought to its end before more is begun, though nothing waits for ever.
It keeps keys only, never objects: whoever takes a key reads the present state.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from muster.controllers.clock import Clock, SystemClock

_BEGUN_IN_A_ROW: Final = 3
"""So many keys that are on their way are handed out before one that is not, when there are both."""
_LONGEST_REST: Final = 1.0
"""Seconds that a key rests at most because the work on it took long."""


class QueueClosed(Exception):  # noqa: N818 - an end, not an error
    """The queue has been closed: nothing more will be handed out."""


@dataclass(frozen=True, slots=True)
class BackOff:
    """How long a key rests after its n-th failure in a row: `first * factor**(n-1)` seconds, at most `longest`."""

    first: float = 0.1
    factor: float = 2.0
    longest: float = 60.0

    def delay(self, failures: int) -> float:
        """Seconds to wait after `failures` (at least 1) failures in a row."""
        exponent = min(failures - 1, 64)
        return min(self.first * self.factor**exponent, self.longest)


class WorkQueue:
    """Keys ready to be worked on, keys being worked on, and keys that wait for their time.

    A key is not handed out again for `rest` seconds after the work on it was over, or, up to a second, for as long as
    that work took: when the API server is busy looks take long, and what changes meanwhile had better be seen by one.
    """

    def __init__(self, *, clock: Clock | None = None, back_off: BackOff | None = None, rest: float = 0.0) -> None:
        self._rest = rest
        self._rested: OrderedDict[str, float] = OrderedDict()
        """When the rest of each key is over, about in that order; keys that have rested may still be there."""
        self._clock = clock or SystemClock()
        self._back_off = back_off or BackOff()
        self._ready: dict[str, None] = {}
        self._begun: dict[str, None] = {}
        """The ready ones that are on their way; they are not in `_ready`."""
        self._begun_in_a_row = 0
        self._active: dict[str, float] = {}
        """The keys that are being worked on, and since when."""
        self._again: dict[str, bool] = {}
        """Those of them that have been added since, and whether as begun."""
        self._due: dict[str, float] = {}
        self._due_begun: set[str] = set()
        self._heap: list[tuple[float, str]] = []
        self._failures: dict[str, int] = {}
        self._changed = asyncio.Event()
        self._closed = False

    def __len__(self) -> int:
        return len(self._ready) + len(self._begun)

    @property
    def idle(self) -> bool:
        """Whether no key is ready or being worked on; keys that wait for their time do not count."""
        return not len(self) and not self._active

    def add(self, key: str, *, begun: bool = False) -> None:
        """Ask for a look at the key as soon as possible; `begun`: what was done for it before has led to this."""
        if self._closed:
            return
        if key in self._active:
            self._again[key] = begun or self._again.get(key, False)
            return
        rest = self._rested.get(key, 0.0) - self._clock.monotonic()
        if rest > 0:
            if begun:
                self._due_begun.add(key)
            self.add_after(key, rest)
            return
        if begun:
            self._ready.pop(key, None)
            self._begun.setdefault(key)
        elif key not in self._begun:
            self._ready.setdefault(key)
        self._changed.set()

    def add_after(self, key: str, seconds: float) -> None:
        """Ask for a look at the key in that many seconds; an earlier time already asked for stays."""
        if seconds <= 0:
            self.add(key)
            return
        due = self._clock.monotonic() + seconds
        if self._closed or self._due.get(key, due + 1) <= due:
            return
        self._due[key] = due
        heapq.heappush(self._heap, (due, key))
        self._changed.set()

    async def get(self) -> str:
        """Wait for the next key and take it; `done` must follow. Raises QueueClosed once the queue is closed."""
        while True:
            if self._closed:
                raise QueueClosed
            self._release_due()
            if len(self):
                return self._take()
            await self._wait()

    def done(self, key: str) -> None:
        """The work on the key that `get` handed out is over."""
        self._lay_down(key, self._active.pop(key, None))
        if key in self._again:
            self.add(key, begun=self._again.pop(key))

    def failed(self, key: str) -> float:
        """The work on the key went wrong: have it looked at again after a delay, which is returned (seconds)."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay = self._back_off.delay(failures)
        self.add_after(key, delay)
        return delay

    def succeeded(self, key: str) -> None:
        """The work on the key went well: its next failure is again a first one."""
        self._failures.pop(key, None)

    def close(self) -> None:
        """Hand out nothing more; whoever waits in `get` is told."""
        self._closed = True
        self._ready.clear()
        self._begun.clear()
        self._again.clear()
        self._due.clear()
        self._due_begun.clear()
        self._heap.clear()
        self._changed.set()

    def _lay_down(self, key: str, taken: float | None) -> None:
        if self._rest <= 0 or taken is None:
            return
        now = self._clock.monotonic()
        while self._rested and next(iter(self._rested.values())) <= now:
            self._rested.popitem(last=False)
        self._rested[key] = now + max(self._rest, min(now - taken, _LONGEST_REST))
        self._rested.move_to_end(key)

    def _take(self) -> str:
        is_begun = bool(self._begun) and (self._begun_in_a_row < _BEGUN_IN_A_ROW or not self._ready)
        self._begun_in_a_row = self._begun_in_a_row + 1 if is_begun else 0
        some = self._begun if is_begun else self._ready
        key = next(iter(some))
        del some[key]
        # Whoever looks at the key now decides anew when it has to be looked at again.
        self._due.pop(key, None)
        self._due_begun.discard(key)
        self._active[key] = self._clock.monotonic()
        return key

    def _release_due(self) -> None:
        now = self._clock.monotonic()
        while self._heap and self._heap[0][0] <= now:
            due, key = heapq.heappop(self._heap)
            if self._due.get(key) == due:
                del self._due[key]
                begun = key in self._due_begun
                self._due_begun.discard(key)
                self.add(key, begun=begun)

    async def _wait(self) -> None:
        self._changed.clear()
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        if not self._heap:
            await self._changed.wait()
            return
        timer = asyncio.ensure_future(self._clock.sleep(self._heap[0][0] - self._clock.monotonic()))
        change = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait((timer, change), return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            change.cancel()
