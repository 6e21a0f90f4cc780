"""All or nothing: what makes a gang valid, ready and worth holding room for.

The core keeps P1 whatever a configuration says; this plugin adds Volcano's order (a gang that is not ready goes before
one that only wants to grow) and its votes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from muster.scheduler.framework import ExtensionPoints, Plugin, Vote
from muster.scheduler.reasons import Code, Reason

if TYPE_CHECKING:
    from muster.scheduler.job import JobInfo
    from muster.scheduler.session import Session
    from muster.scheduler.task import TaskInfo


class Gang(Plugin):
    """Volcano's `gang`."""

    name: ClassVar[str] = "gang"

    def register(self, points: ExtensionPoints) -> None:
        """Validity, readiness, order, starvation; no gang is broken for another's sake."""
        points.add("job_valid", lambda _session, job: not_enough_pods(job))
        points.add("job_ready", lambda _session, job: job.is_ready())
        points.add("job_order", lambda _session, job: _has_enough(job))
        points.add("job_pipelined", _pipelined)
        points.add("job_starving", lambda _session, job: job.ready + job.waiting < job.min_member)
        points.add("preemptable", _surplus)
        points.add("reclaimable", _surplus)


def _has_enough(job: JobInfo) -> bool:
    """Whether what asks for something has its nodes: for the rest there is room anywhere (Volcano's IsReady)."""
    return job.is_ready() or job.ready + job.light >= max(1, job.min_member)


def _pipelined(_session: Session, job: JobInfo) -> Vote:
    if job.is_pipelined():
        return True
    return Reason(Code.NOT_ENOUGH_NODES, have=job.ready + job.waiting, need=job.min_member)


def _surplus(_session: Session, _for_whom: TaskInfo, candidates: Sequence[TaskInfo]) -> list[TaskInfo]:
    """Members above their gang's minimum and above their role's, counted along the candidates.

    Volcano does not look at roles: it would take the head of a Ray cluster that has workers to spare.
    """
    found: dict[str, _Spare] = {}
    victims = []
    for task in candidates:
        if task.job is None:
            continue
        spare = found.get(task.job.key)
        if spare is None:
            spare = found[task.job.key] = _Spare(task.job)
        if spare.take(task.role):
            victims.append(task)
    return victims


class _Spare:
    """What a gang can do without: so many members in all, and so many of each role that has a minimum."""

    def __init__(self, job: JobInfo) -> None:
        self._members = job.ready - job.min_member
        self._of_role = {role: job.placed_of(role) - least for role, least in job.role_minimums()}

    def take(self, role: str) -> bool:
        """Whether one more member of the role can go; if so it is counted."""
        of_role = self._of_role.get(role, 1)
        if self._members <= 0 or of_role <= 0:
            return False
        self._members -= 1
        if role in self._of_role:
            self._of_role[role] = of_role - 1
        return True


def not_enough_pods(job: JobInfo) -> Reason | None:
    """Which pods are missing for the gang to be possible."""
    short = job.short_role()
    if short is not None:
        role, have, need = short
        return Reason(Code.NOT_ENOUGH_PODS_OF_ROLE, role=role, have=have, need=need)
    if job.valid < job.min_member:
        return Reason(Code.NOT_ENOUGH_PODS, have=job.valid, need=job.min_member)
    return None
