"""Who may be evicted for whom: what plugins answer, and how their answers are combined.

Candidates are always handed over in the order in which they would go, the first victim first, and a plugin that counts
(a gang's surplus, a queue's allowance) counts along it. A plugin answers with those that it permits, in the order
given; with an empty list it rejects them all, with None it abstains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muster.scheduler.job import JobInfo
    from muster.scheduler.queue import QueueInfo
    from muster.scheduler.reasons import Reason
    from muster.scheduler.session import Session
    from muster.scheduler.task import TaskInfo

Permitted = Sequence["TaskInfo"] | None
"""Those of the candidates that may go; None abstains."""
Evictable = Callable[["Session", "TaskInfo", Sequence["TaskInfo"]], Permitted]
"""(session, preemptor, candidates): points `preemptable` (preempt) and `reclaimable` (reclaim)."""
UnifiedEvictable = Callable[["Session", "EvictionContext", Sequence["TaskInfo"]], Permitted]
"""(session, for whom, candidates): point `unified_evictable` (gangpreempt, gangreclaim)."""
Preemptive = Callable[["Session", "QueueInfo", Sequence["TaskInfo"]], "Reason | None"]
"""(session, queue, its tasks): point `preemptive`; the objection to the queue reclaiming room for these tasks."""
VictimQueueOrder = Callable[["Session", "QueueInfo", "QueueInfo", "QueueInfo"], int]
"""(session, left, right, preemptor's queue): point `victim_queue_order`; negative: `left` loses its pods first."""
VictimTasks = Callable[["Session", Sequence["TaskInfo"]], Iterable["TaskInfo"]]
"""(session, running tasks): point `victim_tasks` (shuffle); those that should leave where they are."""


@dataclass(frozen=True, slots=True)
class EvictionContext:
    """On whose behalf a whole gang's worth of room is freed; `action` is gangpreempt or gangreclaim."""

    action: str
    job: JobInfo


def decide(tiers: Iterable[Iterable[Callable[[], Permitted]]]) -> list[TaskInfo]:
    """The victims that the first tier with an opinion agrees on (Volcano's rule, quirks included).

    In a tier the answers are intersected; one that rejects all ends the tier without an opinion, and the next tier is
    asked. When an intersection comes out empty the next plugin's answer starts a new one.
    """
    for tier in tiers:
        victims: list[TaskInfo] | None = None
        for ask in tier:
            permitted = ask()
            if permitted is None:
                continue
            if not permitted:
                victims = None
                break
            victims = list(permitted) if victims is None else _both(victims, permitted) or None
        if victims is not None:
            return victims
    return []


def _both(victims: list[TaskInfo], permitted: Sequence[TaskInfo]) -> list[TaskInfo]:
    names = {task.spec.uid for task in permitted}
    return [task for task in victims if task.spec.uid in names]
