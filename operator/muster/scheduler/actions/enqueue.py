"""Admit waiting gangs: Pending becomes Inqueue where queue and cluster have room for the gang's minResources.

A gang that is refused does not hold up the ones behind it. A gang whose pods can never be placed is admitted as
Volcano would, but reserves nothing.
"""

from __future__ import annotations

from muster.scheduler.actions.order import TurnOrder
from muster.scheduler.eligibility import obstacle_to_admission
from muster.scheduler.job import JobInfo
from muster.scheduler.reasons import Reason
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
        if objection is None or _has_waited_too_long(session, job, objection):
            admit(session, job, reserve=objection is None)
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


def _has_waited_too_long(session: Session, job: JobInfo, objection: Reason) -> bool:
    """Whether the gang is to be held room for (P9); not where it is refused more than there will ever be."""
    possible = (
        objection.requested is not None and objection.limit is not None and objection.requested <= objection.limit
    )
    return possible and job.key in session.cache.starved


def admit(session: Session, job: JobInfo, *, reserve: bool = True) -> None:
    """The gang is Inqueue from now on. Without `reserve` it is promised nothing by that."""
    job.phase = Phase.INQUEUE
    job.inqueue_since = session.now
    job.reservation_expired = not reserve
    session.cache.unsettle(job)
    session.cache.changed[job.key] = job
    if session.hunting_has_begun:
        session.late.add(job.key)
    session.framework.job_enqueued(session, job)
