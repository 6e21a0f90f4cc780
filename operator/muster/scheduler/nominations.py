"""Room that gangs have had pods evicted for, kept for them until they are bound.

Victims take time to leave, and promises end with their session. So a task that was promised room by an evicting action
is nominated for the node (`status.nominatedNodeName` of its pod, which also brings the promise over a restart). At the
start of each cycle, before anybody else is looked at, nominated tasks are pipelined again, so that nobody takes what is
theirs; `allocate` binds them, the whole gang at once (P1), as soon as all find their room idle. A promise that can't be
kept any more (the node is gone, an eviction failed, the queue was closed) is dropped, and the gang competes like any
other.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from muster.scheduler.eligibility import obstacle_to_placement
from muster.scheduler.placement import fits
from muster.scheduler.placing import find_places, place_gang
from muster.scheduler.reasons import Code, Reason, Wake
from muster.scheduler.specs import Phase, TaskStatus
from muster.scheduler.statement import Statement

if TYPE_CHECKING:
    from muster.scheduler.accounts import Accounts
    from muster.scheduler.job import JobInfo
    from muster.scheduler.node import NodeInfo
    from muster.scheduler.session import Session
    from muster.scheduler.task import TaskInfo


def nominate(accounts: Accounts, task: TaskInfo, now: float) -> None:
    """Keep the node that the task is pipelined on for it. `now` (Unix seconds) orders the promises."""
    if task.job is not None and task.node is not None:
        accounts.keep_room(task, task.node)
        accounts.nominated.setdefault(task.job.key, now)


def withdraw(accounts: Accounts, job: JobInfo) -> None:
    """What was kept for the job is there for others, but what it has been promised anew in this session."""
    since = accounts.nominated.pop(job.key, 0.0)
    for task in job.all_tasks():
        if task.nominated is None:
            continue
        if task.status is TaskStatus.PIPELINED:
            accounts.nominated[job.key] = since
        else:
            accounts.give_room_up(task)
            task.spoils = {}
    accounts.relief.queues.add(job.queue.name)
    accounts.relief.cluster = True
    accounts.changed[job.key] = job


def restore(session: Session) -> None:
    """Make the promises of earlier cycles again, the oldest first."""
    cache = session.cache
    for key in [key for key in cache.nominated if key not in cache.jobs]:
        del cache.nominated[key]
    for job in sorted((cache.jobs[key] for key in cache.nominated), key=lambda job: _promise_order(cache, job)):
        statement = session.statement()
        if _promise_again(session, job, statement):
            session.nominations[job.key] = statement
            session.reserving[job.key] = job
        else:
            statement.discard()
            withdraw(cache, job)


def _promise_order(accounts: Accounts, job: JobInfo) -> tuple[float, tuple[float, str, str]]:
    return (accounts.nominated[job.key], job.age_order)


def _promise_again(session: Session, job: JobInfo, statement: Statement) -> bool:
    """Pipeline the nominated tasks, and as many others as the gang lacks since one has lost its place."""
    if job.phase in (Phase.PENDING, Phase.COMPLETED) and job.broken_since is None:
        return False
    if obstacle_to_placement(session, job) is not None:
        return False
    for task in _nominated(job):
        node = session.cache.nodes.get(task.nominated or "")
        if node is None or not can_promise(session, task, node) or not statement.pipeline(task, node):
            session.cache.give_room_up(task)
    if job.is_ready():
        return len(statement) > 0
    members = (task for task in job.pending.values() if task.schedulable and not job.is_companion(task))
    for task in session.sort_tasks(members):
        if job.is_pipelined():
            break
        _promise_anywhere(session, task, statement)
    for task in job.companions_pending():
        _promise_anywhere(session, task, statement)
    return job.is_pipelined() and not job.companions_pending()


def _nominated(job: JobInfo) -> list[TaskInfo]:
    waiting = (task for task in job.all_tasks() if task.status is TaskStatus.PENDING and task.nominated is not None)
    return sorted(waiting, key=lambda task: task.order)


def can_promise(session: Session, task: TaskInfo, node: NodeInfo) -> bool:
    """Whether the task fits on the node and into its queue once the leaving pods are gone."""
    if node.spec is None or session.framework.judge.objection(task.shape, node, later=True) is not None:
        return False
    return fits(task.shape, node.future_idle) and has_quota(session, task)


def _has_room(session: Session, task: TaskInfo, node: NodeInfo) -> bool:
    """Whether the task, pipelined nowhere, fits on the node now, without taking what is promised to others."""
    return (
        can_promise(session, task, node)
        and fits(task.shape, node.idle)
        and session.framework.judge.objection(task.shape, node) is None
        and has_quota(session, task, later=False)
    )


def has_quota(session: Session, task: TaskInfo, *, later: bool = True) -> bool:
    """Whether the task fits into its queue now or, `later`, once the leaving pods are gone."""
    return task.job is not None and session.allocatable(task.job.queue, session.charge_of(task), later=later) is None


def promise_free_room(session: Session, task: TaskInfo, statement: Statement) -> bool:
    """Pipeline the task on the best node that has room for it, now or once the leaving pods are gone.

    Room of now must be there later too: in company that stays, and beside all who have been promised room.
    """
    if not has_quota(session, task):
        return False
    view = session.cache.index.view(task.shape)
    node = view.best()
    if node is None or session.framework.judge.check(task.shape, later=True)(node) is not None:
        node = view.best_later()
    return node is not None and statement.pipeline(task, node)


def _promise_anywhere(session: Session, task: TaskInfo, statement: Statement) -> None:
    if promise_free_room(session, task, statement):
        nominate(session.cache, task, session.now)


def waiting_for_victims(job: JobInfo) -> Reason:
    """The gang has its places, and waits for the pods on them to leave."""
    return Reason(Code.WAITING_FOR_RELEASE, have=job.ready, need=job.min_member, wakes=(Wake.NODES, Wake.GANG))


def honour(session: Session) -> None:
    """Bind the gangs whose promised room is idle by now, or that find other room."""
    for key, statement in list(session.nominations.items()):
        job = session.cache.jobs[key]
        places = [(task, session.cache.nodes[task.node]) for task in statement.tasks if task.node is not None]
        statement.discard()
        if job.is_ready():
            _grow(session, job, places)
        elif not _start(session, job, places):
            for task, node in places:
                statement.pipeline(task, node)
        if key in session.cache.nominated:
            session.find(job, waiting_for_victims(job))


def _start(session: Session, job: JobInfo, places: list[tuple[TaskInfo, NodeInfo]]) -> bool:
    """Bind the gang, if its whole minimum and its companions have room now."""
    attempt = session.statement()
    with session.holds.lifted():
        if all(_allocate(session, task, node, attempt) for task, node in places) and session.job_ready(job):
            _bind(session, job, attempt)
            return True
        attempt.discard()
    members = [task for task in job.pending.values() if task.schedulable and not job.is_companion(task)]
    elsewhere = session.holds.place(job, lambda: find_places(session, job, session.sort_tasks(members)))
    if elsewhere.complete:
        _bind(session, job, elsewhere.statement)
        return True
    elsewhere.statement.discard()
    return False


def _allocate(session: Session, task: TaskInfo, node: NodeInfo, statement: Statement) -> bool:
    return _has_room(session, task, node) and statement.allocate(task, node)


def _bind(session: Session, job: JobInfo, statement: Statement) -> None:
    """Decide it. The rest of the promise, if any, is needed no more."""
    statement.commit()
    del session.nominations[job.key]
    withdraw(session.cache, job)
    if job.key not in session.cache.nominated:
        session.reserving.pop(job.key, None)


def _grow(session: Session, job: JobInfo, places: Iterable[tuple[TaskInfo, NodeInfo]]) -> None:
    """A gang that runs is given its promised members one by one."""
    waiting = session.nominations[job.key] = session.statement()
    for task, node in places:
        one = session.statement()
        with session.holds.lifted():
            is_there = _allocate(session, task, node, one)
        if not is_there:
            attempt = session.holds.place(job, partial(place_gang, session, job, [task]))
            if not attempt.complete:
                attempt.statement.discard()
                waiting.pipeline(task, node)
                continue
            one = attempt.statement
        one.commit()
    if not len(waiting):
        _bind(session, job, waiting)
