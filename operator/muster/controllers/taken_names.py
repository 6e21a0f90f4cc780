"""Names that others have, as far as no watch tells of it.

Muster does not watch all objects of a kind, only such as it makes. That a name is taken it hears when it wants to make
an object of that name, and that it is free again not at all: so it tries now and then, after longer and longer pauses,
whatever wakes the owner meanwhile.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from muster.controllers.clock import Clock
from muster.kube.objects import ObjectMeta

FIRST_PAUSE: Final = 5.0
LONGEST_PAUSE: Final = 60.0
"""Seconds."""


@dataclass(frozen=True, slots=True)
class _Taken:
    by: ObjectMeta
    pause: float
    until: float


class TakenNames:
    """Who has which name, and until when that is believed; in memory, so that after a restart all are tried."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._taken: dict[Hashable, _Taken] = {}

    def by(self, name: Hashable) -> ObjectMeta | None:
        """Who has the name, if that was found a moment ago; else None: try."""
        taken = self._taken.get(name)
        return taken.by if taken is not None and self._clock.monotonic() < taken.until else None

    def found(self, name: Hashable, by: ObjectMeta) -> None:
        """It is taken (still)."""
        now = self._clock.monotonic()
        # Whoever wanted a name that has not been tried for so long does not want it any more.
        self._taken = {key: one for key, one in self._taken.items() if now < one.until + LONGEST_PAUSE}
        before = self._taken.get(name)
        pause = FIRST_PAUSE if before is None else min(2 * before.pause, LONGEST_PAUSE)
        self._taken[name] = _Taken(by, pause, now + pause)
