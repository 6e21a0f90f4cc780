"""Whether what others hold can be taken back for a gang: whether an action that is configured may evict them for it.

The same rules and plugins are asked as by the actions themselves, without a search for places: who may not go for the
gang need not be waited for, who may go need not be enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.scheduler.actions.gangpreempt import REASON as GANGPREEMPT
from muster.scheduler.actions.gangreclaim import REASON as GANGRECLAIM
from muster.scheduler.actions.hunting import hunting_tasks
from muster.scheduler.actions.preempt import REASON as PREEMPT
from muster.scheduler.actions.reclaim import REASON as RECLAIM
from muster.scheduler.evictable import EvictionContext
from muster.scheduler.victims import PREEMPTABLE, RECLAIMABLE, in_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muster.scheduler.job import JobInfo
    from muster.scheduler.session import Session
    from muster.scheduler.specs import TaskStatus
    from muster.scheduler.task import TaskInfo


def takes_anything(session: Session) -> bool:
    """Whether any action that makes room for others is configured."""
    return not {PREEMPT, GANGPREEMPT, RECLAIM, GANGRECLAIM}.isdisjoint(session.configuration.actions)


def can_be_taken(session: Session, taker: JobInfo, holder: JobInfo) -> bool:
    """Whether pods of `holder` may be evicted for a pod of `taker` that waits."""
    waiting = (task for task in taker.pending.values() if task.schedulable and not taker.is_companion(task))
    task = min(waiting, key=lambda each: each.order, default=None)
    if task is None or task.spec.preemption_policy_never or holder is taker:
        return False
    if holder.queue is taker.queue:
        return _from_the_same_queue(session, task, taker, holder)
    return _from_another_queue(session, task, taker, holder)


def _from_the_same_queue(session: Session, task: TaskInfo, taker: JobInfo, holder: JobInfo) -> bool:
    candidates = _candidates(session, taker, holder, PREEMPTABLE)
    if PREEMPT in session.configuration.actions:
        worth_it = [each for each in candidates if each.best_effort or not task.best_effort]
        if session.framework.preemptable(session, task, worth_it):
            return True
    return holder.priority < taker.priority and _whole_gang(session, GANGPREEMPT, taker, holder, candidates)


def _from_another_queue(session: Session, task: TaskInfo, taker: JobInfo, holder: JobInfo) -> bool:
    framework = session.framework
    gives = holder.queue.spec is not None and holder.queue.spec.reclaimable
    if not gives or framework.overused(session, taker.queue):
        return False
    candidates = _candidates(session, taker, holder, RECLAIMABLE)
    may = RECLAIM in session.configuration.actions and framework.preemptive(session, taker.queue, [task]) is None
    if may and framework.reclaimable(session, task, candidates):
        return True
    if framework.preemptive(session, taker.queue, hunting_tasks(session, taker)) is not None:
        return False
    return _whole_gang(session, GANGRECLAIM, taker, holder, candidates)


def _whole_gang(session: Session, action: str, taker: JobInfo, holder: JobInfo, candidates: Sequence[TaskInfo]) -> bool:
    protected = holder.spec is not None and holder.spec.preemptable is False
    if action not in session.configuration.actions or protected:
        return False
    return bool(session.framework.unified_evictable(session, EvictionContext(action, taker), candidates))


def _candidates(session: Session, taker: JobInfo, holder: JobInfo, statuses: tuple[TaskStatus, ...]) -> list[TaskInfo]:
    found = [
        task
        for task in holder.tasks.values()
        if task.status in statuses and task.node is not None and task.spec.ours and task.spec.preemptable
    ]
    return [task for task in in_order(session, taker, found) if session.cache.rivals.may_take(taker, task)]
