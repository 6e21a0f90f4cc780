"""Take room from gangs of lower priority in the same queue, for a whole gang at once.

First what gangs can spare is taken, the last gang in the order of jobs first; then whole gangs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from muster.scheduler.actions.gang_evicting import make_room_for_gang
from muster.scheduler.actions.hunting import Hunters
from muster.scheduler.bundles import Bundle
from muster.scheduler.descending import Descending
from muster.scheduler.victims import PREEMPTABLE, pool_of

if TYPE_CHECKING:
    from muster.scheduler.resources import Resources
    from muster.scheduler.session import Session

REASON = "gangpreempt"


def gangpreempt(session: Session) -> None:
    """Let starving gangs of every queue take room from their own queue."""
    hunters = Hunters(session, REASON)

    def order(bundle: Bundle, need: Resources) -> Any:
        return (Descending(session.job_key(bundle.job)), -bundle.worth(need))

    for queue in hunters.queues():
        pool = pool_of([queue], PREEMPTABLE)
        for job in hunters.jobs(queue):
            lower = [
                task
                for tasks in pool.values()
                for task in tasks
                if task.status in PREEMPTABLE and task.job is not None and task.job.priority < job.priority
            ]
            make_room_for_gang(session, hunters, job, REASON, lower, order)
