"""Take room back from queues that use more than is theirs.

A starving job of a queue that is below what it deserves evicts running pods of other, reclaimable queues. Which queue
may take, and which pods it may take, is the plugins' word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.scheduler.actions.hunting import Hunters, hunt_for_gang
from muster.scheduler.hunt import Hunt
from muster.scheduler.victims import RECLAIMABLE, pool_of

if TYPE_CHECKING:
    from muster.scheduler.queue import QueueInfo
    from muster.scheduler.session import Session
    from muster.scheduler.task import TaskInfo

REASON = "reclaim"


def reclaim(session: Session) -> None:
    """Let starving jobs of every queue that is not overused take room from other queues."""
    hunters = Hunters(session, REASON)
    for queue in hunters.queues():
        if session.framework.overused(session, queue):
            continue
        hunt = _hunt(session, queue)
        for job in hunters.jobs(queue):
            statement = session.statement()
            if hunt_for_gang(hunt, job, statement, applies=lambda task: _may_reclaim(session, task)) and len(statement):
                hunters.decide(job, statement)
                hunters.succeeded(job)
            else:
                statement.discard()
                hunters.failed(job)


def _hunt(session: Session, queue: QueueInfo) -> Hunt:
    others = [
        each for each in session.cache.queues.values() if each is not queue and each.spec and each.spec.reclaimable
    ]
    return Hunt(
        session,
        REASON,
        pool_of(others, RECLAIMABLE),
        lambda _reclaimer, _candidate: True,
        lambda task, candidates: session.framework.reclaimable(session, task, candidates),
    )


def _may_reclaim(session: Session, task: TaskInfo) -> bool:
    if task.spec.preemption_policy_never or task.job is None:
        return False
    return session.framework.preemptive(session, task.job.queue, [task]) is None
