"""For how long what a status says on the way has to stand before it is written.

A cluster comes to be pod by pod, and its job tells each step: most are over before anybody could read of them. What
lasts is told in time, and what something depends on (a state, a verdict) is written at once, by whoever writes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from muster.controllers.clock import Clock

SETTLING: Final = 1.0
"""Seconds for which it has to stand."""
LONGEST_SETTLING: Final = 3.0
"""Seconds after which it is written though it still changes."""


@dataclass(slots=True)
class _Unwritten:
    said: object
    since: float
    began: float


class Settling:
    """What each object's status would say, and since when; in memory, so that after a restart the time counts anew."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._unwritten: dict[str, _Unwritten] = {}

    def rest(self, key: str, said: object) -> float:
        """The status of the key would say this now: in how many seconds it is to be written, 0.0 for at once."""
        now = self._clock.monotonic()
        unwritten = self._unwritten.setdefault(key, _Unwritten(said, now, now))
        if unwritten.said != said:
            unwritten.said, unwritten.since = said, now
        return max(0.0, min(unwritten.since + SETTLING, unwritten.began + LONGEST_SETTLING) - now)

    def over(self, key: str) -> None:
        """The status says all that there is to say, or there is none any more."""
        self._unwritten.pop(key, None)
