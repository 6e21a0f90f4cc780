"""Send pods away from where they are, because a plugin says that they should not be there (any more).

Nobody's room is made here: it is the plugin's rule that the pods break (tdm: a revocable node outside its hours).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.scheduler.specs import TaskStatus

if TYPE_CHECKING:
    from muster.scheduler.session import Session

REASON = "shuffle"


def shuffle(session: Session) -> None:
    """Evict the running pods that plugins name."""
    running = [
        task
        for job in sorted(session.cache.jobs.values(), key=lambda job: job.age_order)
        for task in sorted(job.tasks.values(), key=lambda task: task.order)
        if task.status is TaskStatus.RUNNING and task.spec.ours
    ]
    for task in session.framework.victim_tasks(session, running):
        statement = session.statement()
        statement.evict(task, REASON)
        statement.commit(by=task.job.key if task.job is not None else "")
