"""What gangpreempt and gangreclaim share: one hungry gang after the other gets all its room at once, or none."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from muster.scheduler.actions.hunting import Hunters, hunting_tasks, is_content, orders_to_try
from muster.scheduler.bundles import Bundle, bundles_of, keep_allowed
from muster.scheduler.gang_hunt import allowed_tasks, clear_room, place_with_room
from muster.scheduler.nominations import promise_free_room
from muster.scheduler.resources import Resources, total

if TYPE_CHECKING:
    from muster.scheduler.job import JobInfo
    from muster.scheduler.session import Session
    from muster.scheduler.statement import Statement
    from muster.scheduler.task import TaskInfo

Order = Callable[[Bundle, Resources], Any]
"""(bundle, need): sorts bundles of one kind; smaller goes first."""


def make_room_for_gang(
    session: Session, hunters: Hunters, job: JobInfo, action: str, candidates: Iterable[TaskInfo], order: Order
) -> None:
    """Evict bundles of these candidates for the job, if that gives it all that it needs."""
    with session.holds.lifted_for(job):
        statement = _free_room(session, job) or _cleared_room(session, job, action, candidates, order)
    if statement is None:
        hunters.failed(job)
        return
    hunters.decide(job, statement)
    hunters.succeeded(job)


def _free_room(session: Session, job: JobInfo) -> Statement | None:
    statement = session.statement()
    if _place(session, job, statement):
        return statement
    statement.discard()
    return None


def _cleared_room(
    session: Session, job: JobInfo, action: str, candidates: Iterable[TaskInfo], order: Order
) -> Statement | None:
    wanted = hunting_tasks(session, job)
    if any(task.spec.preemption_policy_never for task in wanted):
        return None
    least = [*wanted[: max(1, job.min_member - job.ready)], *job.companions_pending()]
    need = total(task.shape.init_request for task in least)
    by_job: dict[str, list[TaskInfo]] = {}
    for task in candidates:
        if task.job is not None and _may_go(session, job, task):
            by_job.setdefault(task.job.key, []).append(task)
    jobs = session.cache.jobs
    # As everywhere, of a job's pods the one that is placed last goes first.
    last_first = {key: reversed(session.sort_tasks(tasks)) for key, tasks in by_job.items()}
    bundles = [bundle for key, tasks in last_first.items() for bundle in bundles_of(jobs[key], tasks)]

    def key(bundle: Bundle) -> Any:
        return (bundle.whole, order(bundle, need), bundle.order)

    bundles.sort(key=key)
    bundles = keep_allowed(bundles, allowed_tasks(session, action, job, bundles))
    if not session.configuration.arguments.get(action, {}).get("allowWholeBundle", True):
        bundles = [bundle for bundle in bundles if not bundle.whole]
    bundles.sort(key=key)
    return clear_room(session, bundles, need, lambda statement: _place(session, job, statement), action)


def _may_go(session: Session, taker: JobInfo, task: TaskInfo) -> bool:
    job = task.job
    if job is None or task.node is None or (job.spec is not None and job.spec.preemptable is False):
        return False
    return session.cache.rivals.may_take(taker, task) and not session.holds.bars(taker, task.node)


def _place(session: Session, job: JobInfo, statement: Statement) -> bool:
    """Promise the gang room; False when it still lacks some."""
    for tasks in orders_to_try(session, job):
        trial = session.statement()
        place_with_room(
            session,
            tasks,
            trial,
            lambda: job.is_pipelined() and not session.framework.job_starving(session, job),
        )
        enough = len(trial) > 0 and is_content(session, job)
        if enough and all(promise_free_room(session, task, trial) for task in job.companions_pending()):
            statement.take_over(trial)
            return True
        trial.discard()
    return False
