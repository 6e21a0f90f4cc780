"""Nobody is evicted against a PodDisruptionBudget.

A budget's status says how many of its pods may be disrupted now. Its controller learns of an eviction only afterwards,
so those that were decided and that the API server does not show yet are taken off here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from muster.scheduler.framework import ExtensionPoints, Plugin
from muster.scheduler.specs import PodDisruptionBudgetSpec, TaskStatus

if TYPE_CHECKING:
    from muster.scheduler.session import Session
    from muster.scheduler.task import TaskInfo


class PodDisruptionBudgets(Plugin):
    """Volcano's `pdb`."""

    name: ClassVar[str] = "pdb"
    protects: ClassVar[bool] = True

    def __init__(self, arguments: dict[str, Any]) -> None:
        super().__init__(arguments)
        self._relaxed = 0
        self._leaving: list[TaskInfo] | None = None

    def register(self, points: ExtensionPoints) -> None:
        """Takes pods out of the candidates of every action that evicts."""
        for point in ("preemptable", "reclaimable", "unified_evictable"):
            points.add(point, self._within_budgets)
        points.add("victim_filters", lambda session, victims: self._within_budgets(session, None, victims))

    def on_session_open(self, session: Session) -> None:
        """A budget that allows more than before could help anybody."""
        self._leaving = None
        if session.cache.budgets_relaxed != self._relaxed:
            self._relaxed = session.cache.budgets_relaxed
            session.cache.relief.everything = True

    def _within_budgets(self, session: Session, _for_whom: object, candidates: Sequence[TaskInfo]) -> list[TaskInfo]:
        """As many of the candidates as their budgets allow, the first given first."""
        budgets = session.cache.disruption_budgets
        if not budgets:
            return list(candidates)
        left: dict[str, int] = {}
        allowed = []
        for task in candidates:
            concerned = [each for each in budgets.get(task.spec.namespace, {}).values() if each.counts(task.spec)]
            for budget in concerned:
                if budget.key not in left:
                    left[budget.key] = budget.allowed - self._decided(session, budget)
            if all(left[each.key] > 0 for each in concerned):
                allowed.append(task)
                for budget in concerned:
                    left[budget.key] -= 1
        return allowed

    def _decided(self, session: Session, budget: PodDisruptionBudgetSpec) -> int:
        """How many of the budget's pods are to leave without the API server showing it yet."""
        if self._leaving is None:
            self._leaving = [task for task in session.cache.tasks.values() if task.evicted is not None]
        leaving = {task.uid: task for task in self._leaving}
        for job in session.cache.changed.values():
            if job.count(TaskStatus.RELEASING):
                leaving.update(job.tasks)
        return sum(1 for task in _unseen(leaving.values()) if budget.counts(task.spec))


def _unseen(tasks: Iterable[TaskInfo]) -> Iterable[TaskInfo]:
    return (
        task for task in tasks if task.status is TaskStatus.RELEASING and task.spec.status is not TaskStatus.RELEASING
    )
