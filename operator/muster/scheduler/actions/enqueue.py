"""Admit waiting gangs: Pending becomes Inqueue where queue and cluster have room for the gang's minResources.

A gang that is refused does not hold up the ones behind it. A gang whose pods can never be placed is admitted as
Volcano would, but reserves nothing.
"""

from __future__ import annotations

from muster.scheduler.actions.order import TurnOrder
from muster.scheduler.eligibility import impossible, obstacle_to_admission
from muster.scheduler.job import JobInfo
from muster.scheduler.session import Session
from muster.scheduler.specs import Phase


def enqueue(session: Session) -> None:
    """Let every Pending gang that is not parked apply, queue by queue."""
    turns = TurnOrder(session, [job for job in session.candidates if _applies(session, job)])
    while (queue := turns.next_queue()) is not None:
        job = turns.next_job(queue)
        if job is None:
            continue
        objection = session.framework.job_enqueueable(session, job) if job.min_resources is not None else None
        if objection is None:
            admit(session, job)
            follower = session.next_like(job, Phase.PENDING)
            if follower is not None and _applies(session, follower):
                turns.push_job(follower)
        else:
            session.find(job, objection)
        turns.push_queue(queue)


def _applies(session: Session, job: JobInfo) -> bool:
    if job.phase is not Phase.PENDING or (job.min_member == 0 and not job.pending):
        return False
    obstacle = obstacle_to_admission(job)
    if obstacle is not None:
        session.find(job, obstacle)
    return obstacle is None


def admit(session: Session, job: JobInfo) -> None:
    """The gang is Inqueue from now on."""
    job.phase = Phase.INQUEUE
    job.inqueue_since = session.now
    job.reservation_expired = False
    job.never = impossible(session, job) if job.tasks else None
    session.cache.unsettle(job)
    session.cache.changed[job.key] = job
    session.framework.job_enqueued(session, job)
