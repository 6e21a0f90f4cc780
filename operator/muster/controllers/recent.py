"""What a dashboard said of each object a moment ago, so that it is not asked at each look.

News wakes an object as often as it comes, its own status writes included. A dashboard is its user's, and may answer
differently each time, and each answer is a write: asked at each look, it would have the API server written to without
end. So it is asked once in a while, unless the circumstances are others than those of its answer.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from muster.controllers.clock import Clock


@dataclass(frozen=True, slots=True)
class _Kept:
    circumstances: Hashable
    answer: object
    until: float


class RecentAnswers:
    """The last answer of each key; in memory, so that after a restart all are asked."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._kept: dict[str, _Kept] = {}

    def keep(self, key: str, circumstances: Hashable, answer: object) -> None:
        """This has been answered just now, under these circumstances."""
        self._kept[key] = _Kept(circumstances, answer, self._clock.monotonic() + self._seconds)

    def of(self, key: str, circumstances: Hashable) -> object | None:
        """The answer, if it is recent and the circumstances are the same; else None: ask."""
        kept = self._kept.get(key)
        return kept.answer if kept is not None and self.rest(key) > 0 and kept.circumstances == circumstances else None

    def rest(self, key: str) -> float:
        """In how many seconds to ask again; 0.0 for at once."""
        kept = self._kept.get(key)
        return 0.0 if kept is None else max(0.0, kept.until - self._clock.monotonic())

    def forget(self, key: str) -> None:
        """What was answered is not so any more, or nobody asks any more."""
        self._kept.pop(key, None)
