"""Undoable changes to the scheduler's model.

A Statement applies each operation at once, so that later choices in the same cycle see it, and remembers how to take
it back. `commit` hands the operations to the session as decisions; `discard` undoes them, newest first, and leaves
the model exactly as it was (P3). It never talks to the API server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.scheduler.specs import TaskStatus
from muster.scheduler.task import TaskInfo

if TYPE_CHECKING:
    from muster.scheduler.node import NodeInfo
    from muster.scheduler.reasons import Reason
    from muster.scheduler.session import Session


class Statement:
    """A gang's worth of operations, all of which happen or none."""

    __slots__ = ("_journal", "_session", "evictions", "refusal")

    def __init__(self, session: Session) -> None:
        self._session = session
        self._journal: list[tuple[TaskInfo, TaskStatus, str | None]] = []
        self.evictions: dict[str, str] = {}
        self.refusal: Reason | None = None
        """Why the last place was refused."""

    def __len__(self) -> int:
        return len(self._journal)

    @property
    def tasks(self) -> list[TaskInfo]:
        """The tasks operated on, in order."""
        return [task for task, _, _ in self._journal]

    def allocate(self, task: TaskInfo, node: NodeInfo) -> bool:
        """Give the task a place that is idle now; False, and nothing is done, when a plugin refuses it there."""
        return self._place(task, TaskStatus.ALLOCATED, node)

    def pipeline(self, task: TaskInfo, node: NodeInfo) -> bool:
        """Promise the task room that is being freed; False, and nothing is done, when a plugin refuses it there."""
        return self._place(task, TaskStatus.PIPELINED, node)

    def _place(self, task: TaskInfo, status: TaskStatus, node: NodeInfo) -> bool:
        self.refusal = self._move(task, status, node.name)
        if self.refusal is not None:
            self.spare(task)
        return self.refusal is None

    def evict(self, task: TaskInfo, reason: str) -> None:
        """Ask the pod to leave; it holds its place until it has left. A placeholder simply goes."""
        if task.companion:
            self._move(task, TaskStatus.PENDING, None)
        else:
            self.evictions[task.uid] = reason
            self._move(task, TaskStatus.RELEASING, task.node)

    def withdraw(self, task: TaskInfo) -> None:
        """Take the task's promise away."""
        self._move(task, TaskStatus.PENDING, None)

    def before_eviction(self) -> dict[str, TaskStatus]:
        """What those who are evicted were before, by uid."""
        return {task.uid: before for task, before, _ in self._journal if task.uid in self.evictions}

    def reprieve(self, task: TaskInfo, before: TaskStatus) -> None:
        """Let a pod that another statement evicts be what it was before."""
        self._move(task, before, task.node)

    def spare(self, task: TaskInfo) -> None:
        """Take back what was done last to this one task."""
        position = max(index for index, (each, _, _) in enumerate(self._journal) if each is task)
        _, status, node = self._journal.pop(position)
        self.evictions.pop(task.uid, None)
        self._session.move(task, status, node)

    def _move(self, task: TaskInfo, status: TaskStatus, node: str | None) -> Reason | None:
        self._journal.append((task, task.status, task.node))
        return self._session.move(task, status, node)

    def take_over(self, other: Statement) -> None:
        """Make the other statement's operations this one's."""
        self._journal += other._journal
        self.evictions.update(other.evictions)
        other._journal = []
        other.evictions = {}

    def give_up_journal(self) -> list[tuple[TaskInfo, TaskStatus, str | None]]:
        """Leave it to the session to undo the operations when it closes."""
        journal, self._journal = self._journal, []
        return journal

    def commit(self, *, by: str = "") -> None:
        """Decide it. Promises (pipelined tasks) end with the session, unless pods are evicted for them."""
        lasting = bool(self.evictions)
        if lasting:
            victims = [task for task in self.tasks if task.uid in self.evictions]
            winners = [task for task in self.tasks if task.status is TaskStatus.PIPELINED]
            self._session.cache.rivals.take(winners, victims)
        for task, before, node in self._journal:
            if task.status is TaskStatus.ALLOCATED:
                self._session.bind(task)
            elif task.status is TaskStatus.PIPELINED:
                self._session.reserve(task, before, node, lasting=lasting)
            elif task.uid in self.evictions:
                self._session.evict(task, before, self.evictions[task.uid], by)
        self._journal = []
        self.evictions = {}

    def discard(self) -> None:
        """Take everything back, newest first."""
        for task, status, node in reversed(self._journal):
            self._session.move(task, status, node)
        self._journal = []
        self.evictions = {}
