"""Time division: nodes that the cluster may use only at certain times of the day.

Such a node carries a revocable zone in the label `volcano.sh/revocable-zone`, and the configuration says when a zone is
open (`tdm.revocable-zone.night: 22:00-06:00`, in UTC, the last minute included). While it is, pods that bear to be
revoked prefer its nodes; nobody else is placed there. When it has closed, `shuffle` evicts what may be evicted, as many
of a job at a time as its disruption budget allows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from muster.scheduler.framework import ExtensionPoints, Plugin, Vote
from muster.scheduler.node import NodeInfo
from muster.scheduler.plugins.arguments import duration, shown
from muster.scheduler.reasons import Code, Reason
from muster.scheduler.specs import TaskStatus
from muster.scheduler.task import Shape

if TYPE_CHECKING:
    from muster.scheduler.job import JobInfo
    from muster.scheduler.session import Session
    from muster.scheduler.task import TaskInfo

ZONE_LABEL = "volcano.sh/revocable-zone"
_PREFIX = "tdm.revocable-zone."
_PERIOD = "tdm.evict.period"
_DAY = 24 * 60 * 60
_SCORE = 100
_WINDOW = re.compile(r"\s*(\d{1,2}):(\d\d)-(\d{1,2}):(\d\d)\s*")


@dataclass(frozen=True, slots=True)
class Window:
    """A part of the day, in seconds after midnight (UTC), both ends included; it may reach over midnight."""

    start: int
    end: int

    def is_open(self, now: float) -> bool:
        """Whether the time (Unix seconds) lies in it."""
        second = int(now) % _DAY
        if self.start < self.end:
            return self.start <= second <= self.end
        return second >= self.start or second <= self.end

    def next_change(self, now: float) -> float:
        """When it opens or closes next."""
        midnight = int(now) // _DAY * _DAY
        moments = [midnight + day * _DAY + second for day in (0, 1) for second in (self.start, self.end + 1)]
        return float(min(moment for moment in moments if moment > now))


def window(value: object) -> Window:
    """`HH:MM-HH:MM`."""
    match = _WINDOW.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"must be a part of the day such as 22:00-06:00, not {shown(value)}")
    hours, minutes = (int(match[1]), int(match[3])), (int(match[2]), int(match[4]))
    if max(hours) > 23 or max(minutes) > 59:
        raise ValueError(f"there is no such time of the day: {value!r}")
    return Window(hours[0] * 3600 + minutes[0] * 60, hours[1] * 3600 + minutes[1] * 60)


class TimeDivision(Plugin):
    """Volcano's `tdm`."""

    name: ClassVar[str] = "tdm"
    arguments: ClassVar = {_PERIOD: duration}
    argument_prefixes: ClassVar = {_PREFIX: window}

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._period: float = arguments.get(_PERIOD, 60.0)
        self._zones: dict[str, Window] = {
            key.removeprefix(_PREFIX): value for key, value in arguments.items() if key.startswith(_PREFIX)
        }
        self._open: frozenset[str] | None = None
        self._evicted_at: float | None = None

    def register(self, points: ExtensionPoints) -> None:
        """Keeps pods off closed zones, draws revocable ones to open zones, and clears zones that have closed."""
        points.mention(ZONE_LABEL)
        points.add("predicates", self._admits)
        points.add("make_orders", self._score)
        points.add("preemptable", _preemptable)
        points.add("victim_tasks", self._victims)
        points.add("job_order", lambda _session, job: is_preemptable(job))
        points.add("job_pipelined", _pipelined)
        points.add("job_starving", lambda _session, job: not is_preemptable(job) and job.count(TaskStatus.PENDING) > 0)

    def on_session_open(self, session: Session) -> None:
        """Note which zones are open now."""
        now_open = frozenset(zone for zone, hours in self._zones.items() if hours.is_open(session.now))
        if self._open is not None and now_open != self._open:
            session.framework.judge_anew(session)
        self._open = now_open

    def deadline(self, session: Session) -> float | None:
        """When a zone opens or closes, or more of a closed one can be cleared."""
        moments = [hours.next_change(session.now) for hours in self._zones.values()]
        if self._evicted_at is not None and self._evicted_at + self._period > session.now:
            moments.append(self._evicted_at + self._period)
        return min(moments, default=None)

    def _admits(self, shape: Shape, node: NodeInfo) -> str | None:
        zone = node.labels.get(ZONE_LABEL)
        if not zone:
            return None
        if zone not in (self._open or ()):
            return f"node(s) in revocable zone {zone}, which is closed now"
        return None if shape.scheduling.revocable else f"node(s) in revocable zone {zone}, which the pod does not bear"

    def _score(self, shape: Shape, nodes: Sequence[NodeInfo]) -> list[int]:
        """Called with nodes that are admissible only: whoever is in a zone may be used."""
        return [_SCORE if shape.scheduling.revocable and node.labels.get(ZONE_LABEL) else 0 for node in nodes]

    def _victims(self, session: Session, running: Sequence[TaskInfo]) -> Iterable[TaskInfo]:
        if self._evicted_at is not None and session.now < self._evicted_at + self._period:
            return []
        closed = self._zones.keys() - (self._open or frozenset())
        stranded = [task for task in running if _zone_of(session, task) in closed and _may_go(task)]
        victims = within_budgets(stranded)
        if victims:
            self._evicted_at = session.now
        return victims


def is_preemptable(job: JobInfo) -> bool:
    """Whether the gang as a whole says that it may be preempted (by default it may not)."""
    return job.spec is not None and bool(job.spec.preemptable)


def _pipelined(_session: Session, job: JobInfo) -> Vote:
    if job.ready + job.waiting >= job.min_member:
        return True
    return Reason(Code.NOT_ENOUGH_NODES, have=job.ready + job.waiting, need=job.min_member)


def _preemptable(session: Session, preemptor: TaskInfo, candidates: Sequence[TaskInfo]) -> list[TaskInfo]:
    """Who may be preempted, or revoked, preempts nobody; the others preempt outside of revocable zones."""
    if preemptor.spec.preemptable or preemptor.shape.scheduling.revocable:
        return []
    return within_budgets(task for task in candidates if _may_go(task) and not _zone_of(session, task))


def _may_go(task: TaskInfo) -> bool:
    return task.spec.preemptable and task.status is TaskStatus.RUNNING


def _zone_of(session: Session, task: TaskInfo) -> str:
    node = session.cache.nodes.get(task.node) if task.node is not None else None
    return node.labels.get(ZONE_LABEL, "") if node is not None else ""


def within_budgets(tasks: Iterable[TaskInfo]) -> list[TaskInfo]:
    """As many of each job's tasks as its disruption budget allows, the first given first."""
    left: dict[str, int] = {}
    allowed = []
    for task in tasks:
        job = task.job
        if job is None:
            continue
        if job.key not in left:
            left[job.key] = allowance(job)
        if left[job.key] > 0:
            left[job.key] -= 1
            allowed.append(task)
    return allowed


def allowance(job: JobInfo) -> int:
    """How many of the job's running pods may be evicted at once: what its budget leaves, one without a budget."""
    budget = job.spec.budget if job.spec is not None else None
    if budget is None:
        return 1
    running, members = job.count(TaskStatus.RUNNING), job.members
    if budget.max_unavailable is not None:
        finished = job.count(TaskStatus.SUCCEEDED) + job.count(TaskStatus.FAILED)
        return max(0, budget.max_unavailable.of(members) - (members - finished - running))
    if budget.min_available is not None:
        return max(0, running - budget.min_available.of(members))
    return 1
