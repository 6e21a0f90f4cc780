"""Taking evictions back that turn out to be needless once a gang has all its places.

A search evicts as it goes, and what it evicts for one task can give room to another, or turn out to be on the wrong
node. So each victim is put back for a moment: when all that was promised could be had beside it, it stays. What it may
be needed for is looked up, not guessed: room on its node, quota of the gang's queue, a port, the distance that a pod
keeps from others (volcano#5994, volcano#5984).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.scheduler.nominations import can_promise, has_quota
from muster.scheduler.resources import Resources
from muster.scheduler.specs import TaskStatus

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from muster.scheduler.session import Session
    from muster.scheduler.statement import Statement
    from muster.scheduler.task import TaskInfo

_NOTHING = Resources()


def take_back_needless(session: Session, statement: Statement, groups: Iterable[Sequence[TaskInfo]]) -> None:
    """Spare those of the statement's victims that its promises don't need.

    A group, tasks of one gang, is spared whole or not at all, as long as the gang is broken without it.
    """
    promises = Promises(session, statement)
    before = statement.before_eviction()
    tried = list(groups)
    while True:
        needed = [group for group in tried if not _spare(session, statement, promises, group, before)]
        rest = [part for group in needed for part in _parts(group)]
        # Who stays can make it possible that another stays too only if somebody asks for a spread over a topology.
        if rest == (needed if promises.plain else tried):
            return
        tried = rest


def _spare(
    session: Session,
    statement: Statement,
    promises: Promises,
    group: Sequence[TaskInfo],
    before: Mapping[str, TaskStatus],
) -> bool:
    trial = session.statement()
    for task in group:
        trial.reprieve(task, before[task.uid])
    needless = promises.stand_beside(group)
    trial.discard()
    if needless:
        for task in group:
            statement.spare(task)
    return needless


def _parts(group: Sequence[TaskInfo]) -> list[Sequence[TaskInfo]]:
    """Others of the gang were spared, so that it is not broken after all: now each can stay for himself."""
    job = group[0].job
    return [[task] for task in reversed(group)] if job is not None and job.is_ready() else [group]


class Promises:
    """What a statement promises to one job's tasks, in order."""

    def __init__(self, session: Session, statement: Statement) -> None:
        self._session = session
        self._tasks = [task for task in statement.tasks if task.status is TaskStatus.PIPELINED]
        self._on_node: dict[str | None, list[int]] = {}
        self._of_shape: dict[int, list[int]] = {}
        for position, task in enumerate(self._tasks):
            self._on_node.setdefault(task.node, []).append(position)
            self._of_shape.setdefault(task.shape.id, []).append(position)
        self._shapes = {task.shape.id: task.shape for task in self._tasks}

    @property
    def plain(self) -> bool:
        """Whether nobody who is promised something asks who is there."""
        return all(shape.plain for shape in self._shapes.values())

    def stand(self) -> bool:
        """Whether all of it could be promised again. Evictions take nothing away but company that a task asks for."""
        if self.plain:
            return True
        return self._could_be_made_again(range(len(self._tasks)), ())

    def stand_beside(self, spared: Sequence[TaskInfo]) -> bool:
        """Whether all of it could be promised again though these pods, just put back, stay where they are.

        Only tasks are tried anew that the pods can stand in the way of; quota is whole when the last task of each shape
        has it.
        """
        if any(self._overfills(task) for task in spared):
            return False
        places: set[int] = set()
        for task in spared:
            places.update(self._on_node.get(task.node, ()))
            for shape in self._shapes.values():
                if not shape.concerns.isdisjoint(task.shape.concerns):
                    places.update(self._of_shape[shape.id])
        return self._could_be_made_again(places, [positions[-1] for positions in self._of_shape.values()])

    def _overfills(self, spared: TaskInfo) -> bool:
        """The usual case, seen at once: its node has no room for it beside those who are promised the node."""
        there = self._on_node.get(spared.node, ())
        if spared.node is None or all(self._tasks[position].best_effort for position in there):
            return False
        return not _NOTHING.less_equal(self._session.cache.nodes[spared.node].future_idle)

    def _could_be_made_again(self, places: Collection[int], quotas: Collection[int]) -> bool:
        again = self._session.statement()
        tasks = [(self._tasks[position], position in places) for position in sorted({*places, *quotas})]
        nodes = [self._session.cache.nodes[task.node or ""] for task, _ in tasks]
        for task, _ in tasks:
            again.withdraw(task)
        stands = True
        for (task, with_place), node in zip(tasks, nodes, strict=True):
            stands = can_promise(self._session, task, node) if with_place else has_quota(self._session, task)
            stands = stands and again.pipeline(task, node)
            if not stands:
                break
        again.discard()
        return stands
