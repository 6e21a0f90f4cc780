"""Gangs that hold nodes below their minimum are completed, or taken down (P1).

A bind fails or a kubelet refuses a pod, a pod is deleted, a node is lost: what is left of the gang computes nothing and
holds nodes. It has the first turn in `allocate`; if that does not complete it within the set time, its members are
evicted, by the gang itself, so that it can wait as a whole.
"""

from __future__ import annotations

from collections import Counter
from math import inf

from muster.scheduler import companions
from muster.scheduler.job import JobInfo
from muster.scheduler.outcome import ROLLBACK
from muster.scheduler.session import Session
from muster.scheduler.specs import Phase, TaskStatus
from muster.scheduler.task import TaskInfo


def is_broken(job: JobInfo) -> bool:
    """Whether the gang is a fragment: it holds nodes, but fewer members than it had are there.

    A gang whose minimum has risen was whole before and is not broken; nor is one with members that have succeeded,
    for it is ending, nor one without a minimum.
    """
    lost = job.lost.total()
    if note_whole(job) or job.placed == lost:
        job.held_min = job.min_member
        return False
    if job.spec is None or job.count(TaskStatus.SUCCEEDED):
        return False
    ready = job.ready - lost
    there = ready + _ended(job)
    return there < min(job.held_min, job.min_member) or (job.held_min >= job.min_member and ready >= job.min_member)


def find_lost(session: Session, job: JobInfo) -> Counter[str]:
    """Members, by role, on nodes that were deleted. Kubernetes deletes such pods, but may take minutes to notice."""
    gone = session.cache.gone_nodes
    if not gone:
        return Counter()
    return Counter(task.role for task in job.tasks.values() if task.node in gone and task.status.placed)


def _is_whole(job: JobInfo) -> bool:
    """Whether the gang has its minimum on nodes that exist."""
    if not job.lost:
        return job.is_ready()
    if job.ready - job.lost.total() < job.min_member:
        return False
    return all(job.placed_of(role) - job.lost[role] >= least for role, least in job.role_minimums())


def _ended(job: JobInfo) -> int:
    """Members that ran and failed, and that nothing is made to replace: the gang is ending, it was whole."""
    if not job.count(TaskStatus.FAILED) or job.count(TaskStatus.PENDING):
        return 0
    return sum(
        task.status is TaskStatus.FAILED and not task.spec.lost and not job.is_companion(task)
        for task in job.tasks.values()
    )


def note_whole(job: JobInfo) -> bool:
    """Whether the gang has its minimum; if so that is what it must not fall below from now on."""
    if not _is_whole(job):
        return False
    job.held_min = job.min_member
    forget_when_confirmed(job)
    return True


def forget_when_confirmed(job: JobInfo) -> None:
    """A gang is repaired once its bindings are confirmed: one that is under way can still be refused, for ever."""
    if not job.count(TaskStatus.BINDING):
        job.broken_since = None


def watch_over(session: Session, job: JobInfo) -> None:
    """Note since when a gang is broken, and take it down when its time is up."""
    if not session.cache.has_begun and job.broken_since is not None:
        _remember_gone_nodes(session, job)
    job.lost = find_lost(session, job)
    late = overdue(session, job)
    take_down(session, job, [task for task in late if not task.status.placed])
    late = [task for task in late if task.status.placed]
    job.lost.update(task.role for task in late if not job.is_companion(task))
    since = note_broken(session, job)
    if since is not None and (late or session.now >= since + session.configuration.gang_repair_timeout):
        roll_back(session, job)
    elif late:
        take_down(session, job, late)
        job.lost = find_lost(session, job)


def note_broken(session: Session, job: JobInfo) -> float | None:
    """Since when the gang is broken, which it may be by what the cycle itself has decided; None when it is not."""
    if not is_broken(job):
        forget_when_confirmed(job)
        return None
    job.broken_since = _at_most_now(session, job.broken_since)
    return job.broken_since


def overdue(session: Session, job: JobInfo) -> list[TaskInfo]:
    """Members that the default scheduler was told to bind and has not bound in time.

    What it knows against the node we do not know. Gate and pin can't be put back, so such a pod has to be made anew.
    """
    waiting = session.cache.delegated.get(job.key)
    if not waiting:
        return []
    for task in waiting.values():
        task.delegated_at = _at_most_now(session, task.delegated_at)
    return [task for task in waiting.values() if _gives_up_at(session, task) <= session.now]


def _gives_up_at(session: Session, task: TaskInfo) -> float:
    """When the default scheduler's time for the task is up; never for one that is leaving."""
    if task.delegated_at is None or task.status is TaskStatus.RELEASING:
        return inf
    return task.delegated_at + session.configuration.gang_repair_timeout


def _remember_gone_nodes(session: Session, job: JobInfo) -> None:
    """After a restart nobody says that a node was deleted; a gang that is known to be broken may be so because of it.

    Without that note a node of which nothing is known may be one that can't be read.
    """
    nodes = session.cache.nodes
    places = {task.node for task in job.tasks.values() if task.node is not None and not task.status.finished}
    session.cache.gone_nodes.update(name for name in places if nodes[name].spec is None)


def roll_back(session: Session, job: JobInfo) -> None:
    """Evict what is left of the gang; it may be placed again as a whole."""
    take_down(session, job, [task for task in job.all_tasks() if task.status.placed and task.spec.ours])
    job.broken_since = None
    job.held_min = job.min_member


def take_down(session: Session, job: JobInfo, tasks: list[TaskInfo]) -> None:
    """Evict these members, by the gang itself."""
    if not tasks:
        return
    statement = session.statement()
    for task in sorted(tasks, key=lambda each: each.order):
        session.cache.free(task)
        if task.delegated_at is not None:
            task.delegated_at = session.now  # if it can't be evicted it is waited for once more
        statement.evict(task, ROLLBACK)
    statement.commit(by=job.key)


def release_room_of_the_unplaced(session: Session, job: JobInfo) -> bool:
    """A gang without members on nodes holds no room for its companions either; whether it has given some back."""
    if not job.placeholders or job.ready:
        return False
    held = [placeholder for placeholder in job.placeholders.values() if placeholder.node is not None]
    for placeholder in held:
        companions.vacate(session.cache, placeholder)
    if held:
        job.shape_key = None
    return bool(held)


def expire_reservation(session: Session, job: JobInfo) -> None:
    """An admitted gang that is not placed in time gives its reservation back (P7); it stays admitted and in order."""
    if job.phase is not Phase.INQUEUE or job.is_ready() or job.reservation_expired:
        return
    job.inqueue_since = _at_most_now(session, job.inqueue_since)
    if session.now >= job.inqueue_since + session.configuration.admission_timeout:
        job.reservation_expired = True
        session.cache.unsettle(job)


def _at_most_now(session: Session, since: float | None) -> float:
    """A time that was stored; it lies in the future if a clock was wrong, or a user wrote it to hold on for ever."""
    return session.now if since is None else min(since, session.now)


def next_deadline(session: Session, job: JobInfo) -> float | None:
    """When the job needs a cycle although nothing changes."""
    deadlines = []
    if job.broken_since is not None and not _is_whole(job):
        # A gang that is ready again waits for the confirmation of its bindings, and what becomes of them is an event.
        deadlines.append(job.broken_since + session.configuration.gang_repair_timeout)
    waiting = session.cache.delegated.get(job.key, {}).values()
    deadlines += [at for task in waiting if (at := _gives_up_at(session, task)) < inf]
    if (
        job.phase is Phase.INQUEUE
        and job.inqueue_since is not None
        and not job.reservation_expired
        and job.min_resources is not None
        and not job.is_ready()
    ):
        deadlines.append(job.inqueue_since + session.configuration.admission_timeout)
    return min(deadlines, default=None)
