"""Cooldown protection: a pod that has only just started is not evicted for others.

A job that is preempted, comes back and is preempted again computes nothing. The pod says how long it is to be left
alone after its start.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from muster.scheduler.framework import ExtensionPoints, Plugin

if TYPE_CHECKING:
    from muster.scheduler.job import JobInfo
    from muster.scheduler.session import Session
    from muster.scheduler.task import TaskInfo


class CooldownProtection(Plugin):
    """Volcano's `cdp`."""

    name: ClassVar[str] = "cdp"
    protects: ClassVar[bool] = True

    def __init__(self, arguments: dict[str, Any]) -> None:
        super().__init__(arguments)
        self._ends: dict[str, float] = {}

    def register(self, points: ExtensionPoints) -> None:
        """Takes protected pods out of the candidates."""
        for point in ("preemptable", "reclaimable", "unified_evictable"):
            points.add(point, _cooled_down)

    def job_deadline(self, session: Session, job: JobInfo) -> float | None:
        """When the next of the job's pods loses its protection."""
        ends = [task.spec.cooldown_until for task in job.tasks.values() if is_protected(task, session.now)]
        earliest = min((end for end in ends if end is not None), default=None)
        if earliest is None:
            self._ends.pop(job.key, None)
        else:
            self._ends[job.key] = earliest
        return earliest

    def on_session_open(self, session: Session) -> None:
        """A pod that may be evicted from now on could help anybody."""
        over = [key for key, end in self._ends.items() if end <= session.now]
        for key in over:
            del self._ends[key]
        if over:
            session.cache.relief.everything = True


def _cooled_down(session: Session, _for_whom: object, candidates: Sequence[TaskInfo]) -> list[TaskInfo]:
    return [task for task in candidates if not is_protected(task, session.now)]


def is_protected(task: TaskInfo, now: float) -> bool:
    """Whether the pod has run too short a time."""
    until = task.spec.cooldown_until
    return until is not None and now < until
