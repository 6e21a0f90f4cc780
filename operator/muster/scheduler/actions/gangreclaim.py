"""Take room back from queues that use more than is theirs, for a whole gang at once.

First what gangs can spare is taken, from the queue that is to lose first, then whole gangs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from muster.scheduler.actions.gang_evicting import make_room_for_gang
from muster.scheduler.actions.hunting import Hunters, hunting_tasks
from muster.scheduler.bundles import Bundle
from muster.scheduler.victims import RECLAIMABLE, pool_of, victim_queue_key

if TYPE_CHECKING:
    from muster.scheduler.queue import QueueInfo
    from muster.scheduler.resources import Resources
    from muster.scheduler.session import Session

REASON = "gangreclaim"


def gangreclaim(session: Session) -> None:
    """Let starving gangs of every queue that is not overused take room from other queues."""
    hunters = Hunters(session, REASON)
    for queue in hunters.queues():
        if not session.framework.overused(session, queue):
            _reclaim_for(session, hunters, queue)


def _reclaim_for(session: Session, hunters: Hunters, queue: QueueInfo) -> None:
    others = [
        each for each in session.cache.queues.values() if each is not queue and each.spec and each.spec.reclaimable
    ]
    pool = pool_of(others, RECLAIMABLE)
    loses_first = victim_queue_key(session, queue)

    def order(bundle: Bundle, need: Resources) -> Any:
        return (loses_first(bundle.job.queue), -bundle.worth(need))

    for job in hunters.jobs(queue):
        if session.framework.preemptive(session, queue, hunting_tasks(session, job)) is not None:
            hunters.failed(job)
            continue
        running = [task for tasks in pool.values() for task in tasks if task.status in RECLAIMABLE]
        make_room_for_gang(session, hunters, job, REASON, running, order)
