"""A job's output, printed once: nothing lost and nothing twice, however often the stream breaks.

Ray's log stream always starts at the beginning of the log. So what has been printed is counted, in characters, and that
many are passed over each time the stream starts anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from muster.ray.jobs_api import RayJobsClient

_SHORT: Final = 500_000
"""Characters up to which a log is short enough to be fetched whole: by the dashboard, and by us in a small pod."""


class LogPrinter:
    """Prints one job's log through `write`."""

    def __init__(self, client: RayJobsClient, submission_id: str, write: Callable[[str], None]) -> None:
        self._client = client
        self._submission_id = submission_id
        self._write = write
        self.printed = 0
        """Characters printed so far."""
        self.received = 0
        """Characters received so far, those of earlier passages again in each."""

    async def follow(self) -> bool:
        """Print what is new until the stream ends; whether it got as far as what had been printed before.

        Raises RayApiError when the stream breaks; calling again goes on where it broke.
        """
        passage = _Passage(self)
        await self._client.tail(self._submission_id, passage.receive)
        return passage.position >= self.printed

    async def catch_up(self) -> bool:
        """Print what is new up to now, all at once; False when more than is short has been printed already.

        Raises RayApiError, also when the log turns out too long to be fetched whole.
        """
        if self.printed > _SHORT:
            return False
        log = await self._client.logs(self._submission_id)
        _Passage(self).receive(log)
        return len(log) >= self.printed

    def print(self, text: str) -> None:
        """Print the next piece of the log."""
        self._write(text)
        self.printed += len(text)


class _Passage:
    """One way through the log, from its beginning."""

    def __init__(self, printer: LogPrinter) -> None:
        self._printer = printer
        self.position = 0

    def receive(self, text: str) -> None:
        fresh = text[max(0, self._printer.printed - self.position) :]
        self.position += len(text)
        self._printer.received += len(text)
        if fresh:
            self._printer.print(fresh)
