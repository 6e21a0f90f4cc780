"""Which objects the API server fails with for longer than a moment, so that their users are told."""

from __future__ import annotations

from typing import Final

from muster.controllers.clock import Clock

LASTING_SECONDS: Final = 10.0
"""A fail-over of the control plane, or a webhook that is being replaced, is over by then."""


class Setbacks:
    """Since when looks at a key have come to nothing. In memory: after a restart the time counts anew."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: dict[str, float] = {}

    def last(self, key: str) -> bool:
        """There is another one; whether they have lasted long enough to be told."""
        now = self._clock.now()
        return now - self._since.setdefault(key, now) >= LASTING_SECONDS

    def over(self, key: str) -> None:
        """A look at the key went well, or there is nothing to look at any more."""
        self._since.pop(key, None)
