"""Give gangs their nodes.

A gang is placed in one Statement: committed when its minimum and its companions have nodes that are idle now, else
undone. A gang whose last members only wait for leaving pods keeps the room it has found until the cycle ends, but
nothing of it is bound (P1). Members above the minimum are placed one a turn, so that queues and jobs grow in step.
Gangs that others were evicted for, then those that hold nodes below their minimum, go first.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from muster.scheduler.actions.enqueue import admit
from muster.scheduler.actions.order import TurnOrder
from muster.scheduler.eligibility import obstacle_to_placement
from muster.scheduler.explain import refusal_reasons, waiting_for_release
from muster.scheduler.job import JobInfo
from muster.scheduler.nominations import honour
from muster.scheduler.placing import Attempt, find_places, gang_key, place_companions, place_gang
from muster.scheduler.queue import QueueInfo
from muster.scheduler.session import Session
from muster.scheduler.specs import Phase
from muster.scheduler.task import TaskInfo


def allocate(session: Session) -> None:
    """Place what can be placed: gangs that were promised room first, then broken ones, then queue by queue."""
    honour(session)
    with session.room_only_shrinks():
        _place_all(session)


def _place_all(session: Session) -> None:
    worksheets = _Worksheets(session)
    worksheets.add(session.candidates)
    worksheets.add(session.kept.given_up_by_companions())
    turns = TurnOrder(session, _complete_broken(session, worksheets))

    def join(woken: list[JobInfo], at_turn: QueueInfo | None) -> bool:
        joining = worksheets.add(woken)
        for job in joining:
            turns.join(job, at_turn)
        return bool(joining)

    while True:
        queue = turns.next_queue()
        if queue is None:
            if join(session.kept.given_up_unseen(), None):
                continue
            return
        if session.framework.overused(session, queue):
            rest = turns.rest(queue)
            _refuse_rest(session, queue, rest)
            join(session.kept.given_up(rest), None)
            continue
        job = turns.next_job(queue)
        if job is None:
            continue
        sheet = worksheets.of(job)
        decided = _allocate_job(session, job, sheet)
        if decided and sheet:
            turns.push_job(job)
        if decided or job.key in session.reserving:
            follower = session.next_like(job, Phase.INQUEUE)
            join([follower] if follower is not None else [], queue)
        join(session.kept.given_up([job], sheet if decided else ()), queue)
        turns.push_queue(queue)


class _Worksheets:
    """What is left to place of each job, the first task last (they are popped)."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._sheets: dict[str, list[TaskInfo]] = {}

    def of(self, job: JobInfo) -> list[TaskInfo]:
        return self._sheets[job.key]

    def add(self, jobs: Iterable[JobInfo]) -> list[JobInfo]:
        """Give those of the jobs that have business here a sheet, and return them."""
        added = []
        for job in jobs:
            promised = job.key in self._session.nominations
            sheet = None if promised else _worksheet(self._session, job)
            if sheet:
                self._sheets[job.key] = sheet
                added.append(job)
        return added

    def jobs(self) -> list[JobInfo]:
        return [self._session.cache.jobs[key] for key in self._sheets]


def _complete_broken(session: Session, worksheets: _Worksheets) -> list[JobInfo]:
    """Place the gangs that are broken; the jobs that have their turns afterwards."""
    broken = sorted((job for job in worksheets.jobs() if job.broken_since is not None), key=_repair_order)
    stranded = set()
    while broken:
        job = broken.pop(0)
        sheet = worksheets.of(job)
        decided = _allocate_job(session, job, sheet)
        if not decided:
            stranded.add(job.key)
        woken = worksheets.add(session.kept.given_up([job], sheet if decided else ()))
        broken = sorted([*broken, *(each for each in woken if each.broken_since is not None)], key=_repair_order)
    return [job for job in worksheets.jobs() if job.key not in stranded and worksheets.of(job)]


def _repair_order(job: JobInfo) -> tuple[float, tuple[float, str, str]]:
    return (job.broken_since or 0.0, job.age_order)


def _worksheet(session: Session, job: JobInfo) -> list[TaskInfo] | None:
    """The tasks to place, the first last (they are popped); None when the job has no business here."""
    if job.phase is Phase.PENDING and job.broken_since is None:
        if "enqueue" in session.configuration.actions or job.spec is None:
            return None
        admit(session, job)
    if obstacle_to_placement(session, job) is not None:
        return None
    pending = [task for task in job.pending.values() if task.schedulable and not job.is_companion(task)]
    tasks = [task for task in pending if not task.best_effort]
    if job.is_ready():
        _hold_companions(session, job)
    elif tasks:
        light = session.sort_tasks(task for task in pending if task.best_effort)
        return _with_light_ones(job, session.sort_tasks(tasks), light)[::-1]
    return session.sort_tasks(tasks)[::-1] or None


def _with_light_ones(job: JobInfo, tasks: list[TaskInfo], light: list[TaskInfo]) -> list[TaskInfo]:
    """Pods that ask for nothing count towards the minimum (Volcano's rule): no more others are taken than it lacks."""
    others = max(1, job.min_member - job.ready - len(light))
    return tasks[:others] + light + tasks[others:]


def _hold_companions(session: Session, job: JobInfo) -> None:
    """A running gang's companion that has no room yet gets some before anything else is placed."""
    waiting = job.companions_pending()
    if not waiting:
        return
    attempt = Attempt(session.statement(), 1)
    with session.holds.lifted():  # without it the gang runs in vain
        place_companions(session, job, attempt)
    attempt.statement.commit()
    if job.companions_pending():
        session.find(job, *refusal_reasons(session, job, attempt))


def _allocate_job(session: Session, job: JobInfo, sheet: list[TaskInfo]) -> bool:
    """One turn of one job; True when something was decided for it."""
    key = session.holds.key(job)
    known = session.attempts.get(key)
    if known is not None:
        session.find(job, *refusal_reasons(session, job, known))
        return False
    if job.is_ready():
        return _grow(session, job, sheet, key)
    attempt = session.holds.place(job, lambda: find_places(session, job, sheet[::-1]))
    if attempt.complete:
        chosen = set(attempt.statement.tasks)
        attempt.statement.commit()
        sheet[:] = [task for task in sheet if task not in chosen and not task.best_effort]
        return True
    if attempt.later and job.is_pipelined() and session.framework.job_pipelined(session, job):
        session.find(job, waiting_for_release(job, attempt))
        session.keep(attempt.statement, job)
        return False
    if session.framework.holds_room(session, job):
        _hold(session, job, sheet, attempt)
        return False
    _refuse(session, job, attempt, key)
    return False


def _hold(session: Session, job: JobInfo, sheet: list[TaskInfo], attempt: Attempt) -> None:
    """Keep what a gang has found from the jobs after it, until the cycle ends."""
    attempt.statement.discard()
    session.find(job, *refusal_reasons(session, job, attempt))
    session.keep(place_gang(session, job, sheet[::-1]).statement, job)


def _grow(session: Session, job: JobInfo, sheet: list[TaskInfo], key: object) -> bool:
    """Place one member above the minimum; those that find no place are not tried again in this cycle."""
    attempt = Attempt(session.statement(), 1)
    decided = False
    while sheet and not decided:
        task = sheet.pop()
        one = session.holds.place(job, partial(place_gang, session, job, [task]))
        attempt.short.update(one.short)
        attempt.denied.update(one.denied)
        attempt.reserved = one.reserved or attempt.reserved
        decided = one.complete or one.later > 0
        if one.complete:
            one.statement.commit()
        elif one.later:
            session.find(job, waiting_for_release(job, one))
            session.keep(one.statement, job)
        else:
            one.statement.discard()
            failed = attempt.short.keys() | attempt.denied.keys() | ({task.shape.id} if one.reserved else set())
            sheet[:] = [task for task in sheet if task.shape.id not in failed]
    if attempt.short or attempt.denied or attempt.reserved is not None:
        if not decided:
            session.attempts[key] = attempt
        session.find(job, *refusal_reasons(session, job, attempt))
    return decided


def _refuse(session: Session, job: JobInfo, attempt: Attempt, key: object) -> None:
    attempt.statement.discard()
    session.attempts[key] = attempt
    session.find(job, *refusal_reasons(session, job, attempt))


def _refuse_rest(session: Session, queue: QueueInfo, jobs: list[JobInfo]) -> None:
    """The queue uses all that it deserves: its other jobs wait for that."""
    for job in jobs:
        key = gang_key(job)
        attempt = session.attempts.get(key)
        if attempt is None:
            attempt = Attempt(session.statement(), max(1, job.min_member - job.ready))
            for task in session.sort_tasks(task for task in job.pending.values() if task.schedulable):
                objection = session.allocatable(queue, session.charge_of(task))
                if objection is not None:
                    attempt.denied[task.shape.id] = objection
            session.attempts[key] = attempt
        session.find(job, *refusal_reasons(session, job, attempt))
