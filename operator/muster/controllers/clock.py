"""Time as the controllers see it: passed in, never looked up, so that a test can hold and move it."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time for what is stored in objects, monotonic time for waiting, and the waiting itself."""

    def now(self) -> float:
        """Unix time in seconds, comparable with the timestamps in objects."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start, never going back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after that many seconds of monotonic time."""
        ...


class SystemClock:
    """The clock of the machine."""

    def now(self) -> float:
        """Unix time in seconds."""
        return time.time()

    def monotonic(self) -> float:
        """Monotonic seconds."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Sleep on the event loop."""
        await asyncio.sleep(seconds)


def timestamp(seconds: float) -> str:
    """Unix seconds as the API server writes times: RFC 3339, UTC, whole seconds."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds_of(text: str | None) -> float | None:
    """The Unix seconds of an RFC 3339 time; None for an absent or unreadable one."""
    if not text:
        return None
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
