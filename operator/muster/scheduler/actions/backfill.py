"""Place pods that ask for nothing: they need a node that takes them, and a free pod slot, no more.

A gang of such pods is placed like any other, all or nothing; a running gang's extra ones go one by one.
"""

from __future__ import annotations

from functools import partial

from muster.scheduler.actions.order import TurnOrder
from muster.scheduler.eligibility import obstacle_to_placement
from muster.scheduler.explain import refusal_reasons
from muster.scheduler.job import JobInfo
from muster.scheduler.placing import place_gang
from muster.scheduler.session import Session
from muster.scheduler.specs import Phase
from muster.scheduler.task import TaskInfo


def backfill(session: Session) -> None:
    """Place what asks for nothing, queue by queue."""
    turns = TurnOrder(session, [job for job in session.candidates if _applies(session, job)])
    while (queue := turns.next_queue()) is not None:
        job = turns.next_job(queue)
        if job is None:
            continue
        if _backfill_job(session, job):
            follower = session.next_like(job, Phase.INQUEUE)
            if follower is not None and _applies(session, follower):
                turns.push_job(follower)
        turns.push_queue(queue)


def _applies(session: Session, job: JobInfo) -> bool:
    return job.phase is not Phase.PENDING and bool(_tasks(job)) and obstacle_to_placement(session, job) is None


def _tasks(job: JobInfo) -> list[TaskInfo]:
    return [
        task for task in job.pending.values() if task.best_effort and task.schedulable and not job.is_companion(task)
    ]


def _backfill_job(session: Session, job: JobInfo) -> bool:
    """Place the job's pods; False when none of them found a node."""
    decided = False
    tasks = session.sort_tasks(_tasks(job))
    while tasks:
        attempt = session.holds.place(job, partial(place_gang, session, job, tasks))
        if not attempt.complete:
            attempt.statement.discard()
            session.find(job, *refusal_reasons(session, job, attempt))
            break
        attempt.statement.commit()
        decided = True
        tasks = [task for task in tasks if task.schedulable]
    return decided
