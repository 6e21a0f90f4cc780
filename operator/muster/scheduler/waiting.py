"""Since when a gang waits, and whether that is too long (P9).

What counts is the time for which the gang could have been placed, had there been room or quota: while it is gated,
incomplete or in a closed queue nobody overtakes it. The time survives a restart: it stands with the reason on the
PodGroup, and where nothing is written it follows from when the PodGroup was made, or lost its nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.scheduler.eligibility import obstacle_to_placement
from muster.scheduler.restore import SCHEDULED
from muster.scheduler.specs import Wait

if TYPE_CHECKING:
    from muster.scheduler.conf import SchedulerConfiguration
    from muster.scheduler.job import JobInfo
    from muster.scheduler.reasons import Reason
    from muster.scheduler.session import Session


def wait_for(job: JobInfo, reason: Reason | None, now: float) -> Wait | None:
    """What the job's wait is, given that it waits for this reason (or for none)."""
    if reason is None:
        return None
    for_room = reason.reason_class.for_room
    if job.wait is None:
        return Wait(_first_seen(job, now), for_room)
    return job.wait if job.wait.for_room is for_room else Wait(now, for_room)


def _first_seen(job: JobInfo, now: float) -> float:
    """Since when a gang waits of which nothing is known but its PodGroup."""
    made = min(now, job.spec.creation) if job.spec is not None and job.spec.creation else now
    placed_before = next((each for each in job.conditions if each.type == SCHEDULED), None)
    if placed_before is None:
        return made
    return now if placed_before.status else max(made, min(now, placed_before.last_transition))


def waits_since(job: JobInfo, now: float) -> float:
    """Since when the job waits, as far as is known."""
    return min(job.wait.since if job.wait is not None else _first_seen(job, now), now)


def patience(job: JobInfo, configuration: SchedulerConfiguration) -> float:
    """How many seconds the job's queue lets it wait; 0 for ever."""
    own = job.queue.spec.starvation_timeout if job.queue.spec is not None else None
    return configuration.starvation_timeout if own is None else own


def starves_at(session: Session, job: JobInfo) -> float | None:
    """When the job will have waited, or has waited, too long for a place for its minimum; None for never."""
    limit = patience(job, session.configuration)
    if limit <= 0 or job.spec is None or job.min_member == 0:
        return None
    if job.is_ready() or job.broken_since is not None or job.never is not None:
        return None
    if job.wait is not None and not job.wait.for_room:
        return None
    return max(waits_since(job, session.now) + limit, session.framework.may_wait_until(job))


def starves(session: Session, job: JobInfo) -> bool:
    """Whether the job has waited too long for nothing but room or quota."""
    at = starves_at(session, job)
    return at is not None and at <= session.now and obstacle_to_placement(session, job) is None
