"""Pauses before what failed the last time is tried again.

The model is told of a failure at once, and may decide the same again at once; the next try then waits, longer each
time, so that a server that refuses is not asked a hundred times a second.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from muster.engine.backoff import Backoff
from muster.engine.clock import Clock

_REMEMBERED: Final = 1000


class Setbacks:
    """How often in a row each thing has failed, by any key. Of very many the oldest are forgotten."""

    def __init__(self, clock: Clock, backoff: Backoff) -> None:
        self._clock = clock
        self._backoff = backoff
        self._counts: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._counts)

    async def rest(self, *keys: str) -> None:
        """Pause, if one of these failed the last time, for as long as its failures call for."""
        if most := self._most(keys):
            await self._clock.sleep(self._backoff.pause(most))

    def call_for_rest(self, *keys: str) -> bool:
        """Whether one of these failed the last time."""
        return self._most(keys) > 0

    def _most(self, keys: Iterable[str]) -> int:
        return max((self._counts.get(key, 0) for key in keys), default=0) if self._counts else 0

    def remember(self, key: str) -> None:
        """It has failed."""
        count = self._counts.pop(key, 0) + 1
        if len(self._counts) >= _REMEMBERED:  # what is gone leaves its count behind
            del self._counts[next(iter(self._counts))]
        self._counts[key] = count

    def forget(self, key: str) -> None:
        """It has succeeded, or is needed no more."""
        self._counts.pop(key, None)
