"""When the extender is asked again about gangs that it refused.

Its opinion can change while nothing does in the cluster, and nobody would tell. So each refused gang has a time at
which it is looked at again: soon at first, then ever later. What changes in the cluster wakes it as always, and does
not count as another refusal.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

FIRST, LONGEST = 1.0, 60.0


@dataclass(frozen=True, slots=True)
class _Wait:
    pause: float
    until: float


class Retries:
    """The waits of all refused gangs, by key. Times are Unix seconds."""

    def __init__(self) -> None:
        self._waits: dict[str, _Wait] = {}

    def refused(self, key: str, now: float) -> None:
        """The gang was refused in a cycle of this time."""
        known = self._waits.get(key)
        if known is not None and known.until > now:
            return
        pause = FIRST if known is None else min(LONGEST, 2 * known.pause)
        self._waits[key] = _Wait(pause, now + pause)

    def forget(self, key: str) -> None:
        """The gang is refused no more."""
        self._waits.pop(key, None)

    def keep(self, keys: Container[str]) -> None:
        """Forget gangs that there are no more."""
        self._waits = {key: wait for key, wait in self._waits.items() if key in keys}

    def at(self, key: str) -> float | None:
        """When to ask about the gang again; None when it is not refused."""
        wait = self._waits.get(key)
        return wait.until if wait is not None else None
