"""What is counted of RayJobs. No watch keeps them in memory, so their reconciler says what it sees, and nothing is
computed before somebody asks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

MOST_ATTEMPTS: Final = 20
"""How many of a job are remembered."""


@dataclass(slots=True)
class JobFigures:
    """One RayJob: its state, and how long each attempt that has ended took (seconds), by its end and its number."""

    namespace: str
    name: str
    uid: str
    state: str = ""
    attempts: dict[tuple[str, int], float] = field(default_factory=dict)
    """The newest: a job may be retried without end."""

    def ended(self, end: str, retries: int, seconds: float) -> None:
        """An attempt has ended so, after `retries` that had failed."""
        self.attempts[end, retries] = seconds
        while len(self.attempts) > MOST_ATTEMPTS:
            del self.attempts[next(iter(self.attempts))]


class KnownJobs:
    """All RayJobs that have been seen and are still there. What came before a restart is not known any more."""

    def __init__(self) -> None:
        self._jobs: dict[str, JobFigures] = {}

    def __iter__(self) -> Iterator[JobFigures]:
        return iter(self._jobs.values())

    def seen(self, namespace: str, name: str, uid: str, state: str) -> JobFigures:
        """The job is in this state; its figures."""
        key = f"{namespace}/{name}"
        known = self._jobs.get(key)
        if known is None or known.uid != uid:
            known = self._jobs[key] = JobFigures(namespace, name, uid)
        known.state = state
        return known

    def gone(self, key: str) -> None:
        """There is no job "namespace/name" any more, or it is another controller's."""
        self._jobs.pop(key, None)
