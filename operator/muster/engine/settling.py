"""For how long what is decided has to stand before people are told.

A gang comes to be pod by pod, and most find their place within moments: a wait that is over before anybody could read
of it costs a write and an event for nothing. What lasts is told in time.
"""

from __future__ import annotations

from typing import Final

SETTLING: Final = 1.0
"""Seconds for which a status has to stand before it is written."""
LONGEST_SETTLING: Final = 2.0
"""Seconds after which it is written though it still changes."""
