"""What a gang would find if nothing else ran: whether waiting can help at all.

The scheduler itself is asked, with the pods struck out of the accounts of their nodes for as long as it takes. Of
DaemonSets' pods, which come back, the nodes keep the accounts. No answer where it would be a guess: where the place of
a pod depends on others, on volumes or devices, or on a state of a node that may pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from muster.scheduler.constraints import NODE_NAME_FIELD
from muster.scheduler.judge import may_use
from muster.scheduler.placing import find_places, gang_key
from muster.scheduler.resources import Resources

if TYPE_CHECKING:
    from muster.scheduler.cache import SchedulerCache
    from muster.scheduler.job import JobInfo
    from muster.scheduler.node import NodeInfo
    from muster.scheduler.session import Session
    from muster.scheduler.task import Shape, TaskInfo


def too_few_if_empty(session: Session, jobs: Iterable[JobInfo]) -> dict[object, int]:
    """By `gang_key`, how many members would have a place, of the gangs that would not be complete.

    The caller sees to it that the model is as it was afterwards (`Trials.undone`), but for the nodes' accounts.
    """
    asked = {gang_key(job): job for job in jobs if _can_be_told(session, job)}
    found: dict[object, int] = {}
    if not asked:
        return found
    with session.holds.lifted(), _emptied(session.cache):
        for key, job in asked.items():
            attempt = find_places(session, job, session.sort_tasks(_members(job)), quota=False)
            attempt.statement.discard()
            if not attempt.complete and not attempt.denied:
                found[key] = min(attempt.members, job.min_member)
    return found


def _members(job: JobInfo) -> list[TaskInfo]:
    return [task for task in job.pending.values() if task.schedulable and not job.is_companion(task)]


def _can_be_told(session: Session, job: JobInfo) -> bool:
    if job.placed or job.min_member > len(_members(job)) or session.framework.judge.node_predicates:
        return False
    shapes = {task.shape.id: task.shape for task in (*_members(job), *job.companions_pending())}.values()
    return all(shape.plain and _refusals_last(session, shape) for shape in shapes)


def _refusals_last(session: Session, shape: Shape) -> bool:
    index = session.cache.index
    view = index.view(shape)
    refusals = (view.refusal(make) for make in index.makes.values())
    return all(each is None or not may_use(each) for each in refusals)


@contextmanager
def _emptied(cache: SchedulerCache) -> Iterator[None]:
    before = [(node, node.tasks.copy(), node.overdue) for node in cache.nodes.values() if node.spec is not None]
    used = cache.used.clone()
    struck = [task for _, tasks, _ in before for task in tasks.values() if not _comes_back(task)]
    for task in struck:
        cache.occupy(task, -1)
    for node, _, _ in before:
        _set_overdue(cache, node, None)
    try:
        yield
    finally:
        for task in struck:
            cache.occupy(task, 1)
        for node, tasks, overdue in before:
            node.tasks = tasks  # in their order
            _set_overdue(cache, node, overdue)
        cache.used = used


def _set_overdue(cache: SchedulerCache, node: NodeInfo, overdue: Resources | None) -> None:
    if node.overdue is not overdue:
        node.overdue = overdue
        cache.index.touch(node)


def _comes_back(task: TaskInfo) -> bool:
    """A DaemonSet's pod: it names its node, and takes its room whatever else ends."""
    return task.job is None and NODE_NAME_FIELD in task.spec.scheduling.label_keys()
