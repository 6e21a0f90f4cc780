"""Growing pauses between tries."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses in seconds: `first`, doubled with each failure up to `limit`, shortened at random by up to a quarter."""

    first: float
    limit: float

    def pause(self, failures: int) -> float:
        """Return the pause after this many failures in a row (at least 1)."""
        return min(self.limit, self.first * 2.0 ** min(failures - 1, 32)) * random.uniform(0.75, 1.0)
