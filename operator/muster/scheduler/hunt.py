"""Making room for one task by eviction: the search that preempt and reclaim share.

Free room comes first, nobody is evicted for what is there already. Then the nodes on which there are candidates are
tried, the best first: victims go in order until the task fits, and those that turn out to be needless are spared. The
Statement that is handed in holds the evictions and the promise of the room; the caller commits it only if the whole
gang gets what it needs, so nothing is evicted in vain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from muster.scheduler.nominations import can_promise, promise_free_room
from muster.scheduler.specs import TaskStatus
from muster.scheduler.statement import Statement
from muster.scheduler.victims import Pool, are_enough, in_order

if TYPE_CHECKING:
    from muster.scheduler.node import NodeInfo
    from muster.scheduler.session import Session
    from muster.scheduler.task import Shape, TaskInfo

Suits = Callable[["TaskInfo", "TaskInfo"], bool]
"""(preemptor, candidate): whether the pair is the action's business at all."""
Verdict = Callable[["TaskInfo", Sequence["TaskInfo"]], "list[TaskInfo]"]
"""(preemptor, candidates in order): those that the plugins let go."""


class Hunt:
    """One action's search for room, over one pool of candidates.

    `reason` is what the evictions are called. Within one gang room only shrinks, so a node that did not help a task is
    not tried again for another of the same shape.
    """

    def __init__(self, session: Session, reason: str, pool: Pool, suits: Suits, verdict: Verdict) -> None:
        self.session = session
        self.reason = reason
        self.pool = pool
        self.suits = suits
        self.verdict = verdict
        self._grounds: dict[int, list[NodeInfo]] = {}
        self._start: dict[int, int] = {}

    def begin(self) -> None:
        """The tasks that follow are another job's."""
        self._start.clear()

    def make_room(self, task: TaskInfo, statement: Statement) -> bool:
        """Promise the task room, with evictions if need be; False when there is none to be had."""
        if self.session.framework.judge.hurdle(task.shape) is not None:
            return False
        return promise_free_room(self.session, task, statement) or self._evict_for(task, statement)

    def _evict_for(self, task: TaskInfo, statement: Statement) -> bool:
        grounds = self.nodes_for(task.shape)
        for position in range(self._start.get(task.shape.id, 0), len(grounds)):
            node = grounds[position]
            victims = self.victims_on(node, task)
            if victims and self._try(task, node, victims, statement):
                self._start[task.shape.id] = position
                return True
        self._start[task.shape.id] = len(grounds)
        return False

    def nodes_for(self, shape: Shape) -> list[NodeInfo]:
        """The nodes with candidates that could take the shape, the best first."""
        found = self._grounds.get(shape.id)
        if found is None:
            nodes = [self.session.cache.nodes[name] for name in self.pool]
            found = self._grounds[shape.id] = self.session.cache.index.rank(shape, nodes)
        return found

    def victims_on(self, node: NodeInfo, task: TaskInfo) -> list[TaskInfo]:
        """Whom the plugins let go on the node for the task, in order; nobody when that is not enough."""
        if task.job is None or self.session.holds.bars(task.job, node.name):
            return []
        may_take = self.session.cache.rivals.may_take
        candidates = [
            each
            for each in self.pool[node.name]
            if each.status is not TaskStatus.RELEASING and self.suits(task, each) and may_take(task.job, each)
        ]
        if not candidates or not are_enough(task, node, candidates):
            return []
        victims = self.verdict(task, in_order(self.session, task.job, candidates))
        return victims if are_enough(task, node, victims) else []

    def _try(self, task: TaskInfo, node: NodeInfo, victims: list[TaskInfo], statement: Statement) -> bool:
        trial = self.session.statement()
        if self._clear(task, node, victims, trial) is None or not trial.pipeline(task, node):
            trial.discard()
            return False
        statement.take_over(trial)
        return True

    def rehearse(self, task: TaskInfo, node: NodeInfo, victims: list[TaskInfo]) -> list[TaskInfo] | None:
        """Whom it would take to have room for the task on the node, in order; None when all are not enough."""
        trial = self.session.statement()
        evicted = self._clear(task, node, victims, trial)
        trial.discard()
        return evicted

    def _clear(
        self, task: TaskInfo, node: NodeInfo, victims: list[TaskInfo], trial: Statement
    ) -> list[TaskInfo] | None:
        def enough() -> bool:
            return can_promise(self.session, task, node)

        evicted = evict_until(enough, victims, trial, self.reason)
        return spare_the_needless(enough, evicted, trial, self.reason) if evicted is not None else None


def evict_until(
    enough: Callable[[], bool], victims: Sequence[TaskInfo], statement: Statement, reason: str
) -> list[TaskInfo] | None:
    """Evict victims in order until it is enough; those evicted, or None when it never is."""
    evicted: list[TaskInfo] = []
    for victim in victims:
        if enough():
            return evicted
        statement.evict(victim, reason)
        evicted.append(victim)
    return evicted if enough() else None


def spare_the_needless(
    enough: Callable[[], bool], evicted: Sequence[TaskInfo], statement: Statement, reason: str
) -> list[TaskInfo]:
    """Take evictions back that it is enough without, the last in order (the most important pods) first; the rest."""
    needed = list(evicted)
    for victim in reversed(evicted[:-1]):  # without the last it was not enough
        statement.spare(victim)
        if enough():
            needed.remove(victim)
        else:
            statement.evict(victim, reason)
    return needed
