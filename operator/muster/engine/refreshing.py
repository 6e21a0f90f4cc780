"""How often numbers that are merely out of date are written.

One gang that comes or goes changes the numbers in the reasons of all that wait. To write them all would make it cost a
write for each of those, so only a few are, at the same pace however many there are. Who wants them all as they are now
asks for them (`muster explain`).
"""

from __future__ import annotations

from typing import Final

PACE: Final = 10.0
"""Seconds between two such writes, of all objects of a kind."""
EACH: Final = 60.0
"""Seconds between two such writes of one object."""


class Refreshing:
    """Whose turn it is. Kept are only those that may not have another one yet, at most `EACH / PACE`."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}

    def is_due(self, key: str, now: float) -> bool:
        """Take a turn for `key`, if there is one. `now` in seconds."""
        # A time in the future is one from before the clock was put back.
        self._last = {each: at for each, at in self._last.items() if now - EACH < at <= now}
        if key in self._last or any(now - at < PACE for at in self._last.values()):
            return False
        self._last[key] = now
        return True
