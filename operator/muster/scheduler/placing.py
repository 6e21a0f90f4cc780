"""Finding places for a gang.

Tasks are taken in order, each goes to the best node on which it fits now, else to the best on which it will fit once
leaving pods are gone. Room only shrinks while a cycle runs, so a shape of task that found no node is not tried again,
and a gang of the same shapes as one that was refused is refused with it (`gang_key`). Only a task that looks for the
company of others is asked once more when one of its own gang has found a place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from muster.scheduler.reasons import Reason
from muster.scheduler.resources import dominant_share
from muster.scheduler.specs import TaskStatus
from muster.scheduler.statement import Statement
from muster.scheduler.task import TaskInfo

if TYPE_CHECKING:
    from muster.scheduler.job import JobInfo
    from muster.scheduler.session import Session


@dataclass(slots=True)
class Attempt:
    """How far a gang came.

    `placed` tasks have a node now, `later` ones will; `companions` of both are no members. `found` counts both, by
    shape. `short` are the shapes that found no node, `lacking` their kinds, `denied` those that quota (or a volume that
    is not ready) refused. `reserved` is set when there is room, but held for others.
    """

    statement: Statement
    need: int
    complete: bool = False
    placed: int = 0
    later: int = 0
    companions: int = 0
    found: dict[int, int] = field(default_factory=dict)
    short: dict[int, TaskInfo] = field(default_factory=dict)
    lacking: dict[Hashable, TaskInfo] = field(default_factory=dict)
    denied: dict[int, Reason] = field(default_factory=dict)
    reserved: Reason | None = None

    @property
    def members(self) -> int:
        """How many members have found a place, now or later."""
        return self.placed + self.later - self.companions

    def wanting_nodes(self) -> dict[int, int]:
        """The shapes that more nodes would help, each with how many tasks of it found a place all the same."""
        return {shape: self.found.get(shape, 0) for shape in self.short}

    def note_refusal(self, task: TaskInfo) -> None:
        """A plugin did not let the task have the place that was chosen."""
        if self.statement.refusal is not None:
            self.denied[task.shape.id] = self.statement.refusal

    def ask_again(self, tasks: list[TaskInfo]) -> list[TaskInfo]:
        """The tasks that found no place but look for company, which has been placed meanwhile."""
        hopeful = [shape for shape, task in self.short.items() if task.shape.sociable]
        for shape in hopeful:
            del self.short[shape]
        self.lacking = {kind: task for kind, task in self.lacking.items() if not task.shape.sociable}
        return [task for task in tasks if task.shape.id in hopeful and task.status is TaskStatus.PENDING]


def gang_key(job: JobInfo) -> object:
    """Equal for gangs that are placed or refused alike: same queue, same minimum, same shapes still to place."""
    if job.shape_key is None:
        shapes: dict[tuple[int, str], int] = {}
        for task in job.pending.values():
            if task.schedulable:
                key = (task.shape.id, task.spec.role)
                shapes[key] = shapes.get(key, 0) + 1
        held = sorted(task.shape.id for task in job.placeholders.values() if task.node is None)
        minimum = job.min_resources
        job.shape_key = (
            job.queue.name,
            job.min_member,
            tuple(job.role_minimums()),
            minimum.key() if minimum is not None else None,
            job.ready,
            job.priority,
            job.expected_runtime(),
            tuple(sorted((role, tuple(counts)) for role, counts in job.role_counts.items())),
            tuple(sorted(shapes.items())),
            tuple(held),
        )
    return job.shape_key


def place_gang(session: Session, job: JobInfo, tasks: Iterable[TaskInfo], *, quota: bool = True) -> Attempt:
    """Place tasks until the gang is complete: its minimum and its companions have nodes now.

    A job that is ready already is complete with one task more. `quota` False asks the nodes only.
    """
    need = max(1, job.min_member - job.ready)
    attempt = Attempt(session.statement(), need)
    waiting = list(tasks)
    while waiting:
        before = attempt.placed + attempt.later
        for task in waiting:
            place_task(session, job, task, attempt, quota=quota)
            if attempt.placed >= need and session.job_ready(job):
                attempt.complete = place_companions(session, job, attempt, quota=quota)
                return attempt
        waiting = attempt.ask_again(waiting) if attempt.placed + attempt.later > before else []
    return attempt


def required_first(job: JobInfo, tasks: list[TaskInfo]) -> list[TaskInfo]:
    """The tasks in their order, but who is not needed for the minimum of the gang and its roles after all others.

    Otherwise a worker too many could take the place without which the head, and so the whole gang, can't start.
    """
    missing = missing_of_roles(job)
    if not missing:
        return tasks
    free = max(0, job.min_member - job.ready - missing.total())
    needed, others = [], []
    for task in tasks:
        role = task.spec.role
        if missing[role] > 0:
            missing[role] -= 1
            needed.append(task)
        elif free > 0:
            free -= 1
            needed.append(task)
        else:
            others.append(task)
    return needed + others


def missing_of_roles(job: JobInfo) -> Counter[str]:
    """How many members with a node each role lacks for its minimum; roles that lack none are left out."""
    return Counter({role: lack for role, least in job.role_minimums() if (lack := least - job.placed_of(role)) > 0})


def find_places(session: Session, job: JobInfo, tasks: list[TaskInfo], *, quota: bool = True) -> Attempt:
    """Place a gang: spread by score, or, where that leaves a member out, packed as tightly as it goes.

    Spreading can put a small member on the only node that would have held a large one; a gang that just fits must
    not wait for ever because of that.
    """
    tasks = required_first(job, tasks)
    everybody = [*tasks, *job.companions_pending()]
    kinds = {session.kind(task.shape) for task in everybody}
    attempt = place_gang(session, job, tasks, quota=quota)
    if attempt.complete or attempt.later or not (attempt.short or attempt.denied):
        return attempt
    if len(tasks) > attempt.need and len(kinds) > 1:
        attempt.statement.discard()
        whole = session.cache.total
        smallest = sorted(tasks, key=lambda task: dominant_share(task.request, whole))
        again = place_gang(session, job, required_first(job, smallest), quota=quota)
        if again.complete:
            return again
        again.statement.discard()
    if attempt.denied or not attempt.short:
        return attempt
    if len(kinds) < 2:
        return attempt
    attempt.statement.discard()
    if any(not task.shape.plain for task in everybody):
        picky_first = sorted(tasks, key=lambda task: task.shape.id not in attempt.short)
        again = place_gang(session, job, picky_first, quota=quota)
        if again.complete:
            return again
        again.statement.discard()
    if len(tasks) != attempt.need:
        return attempt
    if all(session.cache.index.view(task.shape).best() is not None for task in attempt.short.values()):
        packed = _pack_gang(session, job, everybody, quota=quota)
        if packed.complete:
            return packed
        packed.statement.discard()
    return attempt


def _pack_gang(session: Session, job: JobInfo, tasks: list[TaskInfo], *, quota: bool) -> Attempt:
    """Place the largest first, each on the node that it fills best."""
    attempt = Attempt(session.statement(), max(1, job.min_member - job.ready))
    whole = session.cache.total
    for task in sorted(tasks, key=lambda each: (-dominant_share(each.request, whole), each.order)):
        node = session.cache.index.view(task.shape).tightest()
        if node is None or (quota and session.allocatable(job.queue, session.charge_of(task)) is not None):
            return attempt
        if not attempt.statement.allocate(task, node):
            return attempt
        attempt.placed += 1
        attempt.companions += job.is_companion(task)
    attempt.complete = session.job_ready(job)
    return attempt


def place_companions(session: Session, job: JobInfo, attempt: Attempt, *, quota: bool = True) -> bool:
    """Place the pods that the gang will need later; False when one of them has no place now."""
    for task in job.companions_pending():
        before = attempt.placed
        place_task(session, job, task, attempt, quota=quota)
        if attempt.placed == before:
            return False
    return True


def place_task(session: Session, job: JobInfo, task: TaskInfo, attempt: Attempt, *, quota: bool = True) -> None:
    """Give one task a place, or note why it has none."""
    shape = task.shape
    if shape.id in attempt.short or shape.id in attempt.denied:
        return
    hurdle = session.framework.judge.hurdle(shape)
    if hurdle is not None:
        attempt.denied[shape.id] = replace(hurdle, member=task.spec.name)
        return
    charge = session.charge_of(task)
    objection = session.allocatable(job.queue, charge) if quota else None
    if objection is not None and session.allocatable(job.queue, charge, later=True) is not None:
        attempt.denied[shape.id] = objection
        return
    kind = session.kind(shape)
    if kind in attempt.lacking or kind in session.lacking:
        attempt.short[shape.id] = task
        session.note_objections(shape)
        return
    view = session.cache.index.view(shape)
    node = view.best()
    now = node is not None and objection is None
    node = node or view.best_later()
    if node is None:
        attempt.short[shape.id] = attempt.lacking[kind] = task
        if shape.devices is not None and not (shape.sociable or attempt.placed or attempt.later):
            session.found_lacking(kind)
        session.note_objections(shape)
        return
    statement = attempt.statement
    if not (statement.allocate(task, node) if now else statement.pipeline(task, node)):
        attempt.note_refusal(task)
        return
    attempt.placed += now
    attempt.later += not now
    attempt.companions += job.is_companion(task)
    attempt.found[shape.id] = attempt.found.get(shape.id, 0) + 1
