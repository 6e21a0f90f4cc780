"""Gangs that may wait only so long.

Who has to start sooner goes first. Once a gang has waited as long as it may it is admitted whatever the plugins of
later tiers say, and the room that it finds is held for it although the rest is missing: otherwise small jobs would
take it away for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from muster.scheduler.framework import ExtensionPoints, Plugin, Vote
from muster.scheduler.plugins.arguments import duration, shown

if TYPE_CHECKING:
    from muster.scheduler.job import JobInfo
    from muster.scheduler.session import Session


def _waiting_time(value: object) -> float:
    seconds = duration(value)
    if seconds <= 0:
        raise ValueError(f"must be longer than nothing, not {shown(value)}")
    return seconds


class Sla(Plugin):
    """Volcano's `sla`."""

    name: ClassVar[str] = "sla"
    arguments: ClassVar = {"sla-waiting-time": _waiting_time}

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._default: float | None = arguments.get("sla-waiting-time")

    def register(self, points: ExtensionPoints) -> None:
        """Orders jobs, and votes for those whose time is up."""
        points.add("job_order", lambda _session, job: self._order(job))
        points.add("job_enqueueable", self._permit)
        points.add("job_pipelined", self._permit)

    def job_deadline(self, session: Session, job: JobInfo) -> float | None:
        """When the job has waited as long as it may."""
        latest = self._latest(job)
        return latest if latest is not None and latest > session.now and not job.is_ready() else None

    def may_wait_until(self, job: JobInfo) -> float | None:
        """The same moment, past or to come."""
        return self._latest(job)

    def _latest(self, job: JobInfo) -> float | None:
        """When the job has to start at the latest."""
        if job.spec is None:
            return None
        allowed = job.spec.sla_waiting_time
        allowed = allowed if allowed is not None else self._default
        return None if allowed is None else job.spec.creation + allowed

    def _order(self, job: JobInfo) -> tuple[bool, float]:
        latest = self._latest(job)
        return (latest is None, latest or 0.0)

    def _permit(self, session: Session, job: JobInfo) -> Vote:
        latest = self._latest(job)
        return True if latest is not None and session.now >= latest else None
