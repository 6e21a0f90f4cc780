"""Preemption that looks for the node where it hurts least (`enableTopologyAwarePreemption`).

On each of a limited number of candidate nodes it is tried whom the task would evict: victims go in order until it fits,
then the most important ones are spared that need not go. The node is chosen whose most important victim is the least
important, then by the sum of the victims' priorities, their number, and how young the most important ones are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from muster.scheduler.hunt import Hunt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from muster.scheduler.node import NodeInfo
    from muster.scheduler.statement import Statement
    from muster.scheduler.task import TaskInfo

_OFFSET = 1 << 31
"""Added to each priority in a sum, so that a pod of negative priority counts too (kube-scheduler's rule)."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How many candidate nodes are tried: a percentage of all, between two bounds, of which the upper one prevails."""

    percentage: int = 10
    least: int = 1
    most: int = 100

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Sampling:
        """By the action's arguments."""
        return cls(
            arguments.get("minCandidateNodesPercentage", 10),
            arguments.get("minCandidateNodesAbsolute", 1),
            arguments.get("maxCandidateNodesAbsolute", 100),
        )

    def count(self, nodes: int) -> int:
        """Of that many nodes."""
        return min(nodes, self.most, max(self.least, nodes * self.percentage // 100))


class CarefulHunt(Hunt):
    """A Hunt that compares nodes before it chooses one."""

    sampling = Sampling()

    def _evict_for(self, task: TaskInfo, statement: Statement) -> bool:
        found: list[tuple[Any, NodeInfo, list[TaskInfo]]] = []
        enough = self.sampling.count(len(self.session.cache.nodes))
        for node in self.nodes_for(task.shape):
            victims = self.victims_on(node, task)
            chosen = self.rehearse(task, node, victims) if victims else None
            if chosen is not None:
                found.append((_harm(chosen), node, chosen))
            if len(found) == enough:
                break
        if not found:
            return False
        _, node, victims = min(found, key=lambda entry: (entry[0], entry[1].name))
        trial = self.session.statement()
        for victim in victims:
            trial.evict(victim, self.reason)
        if not trial.pipeline(task, node):
            trial.discard()
            return False
        statement.take_over(trial)
        return True


def _harm(victims: Sequence[TaskInfo]) -> tuple[int, int, int, float]:
    """What is compared, smaller is better; nobody evicted at all is best."""
    if not victims:
        return (-_OFFSET, 0, 0, 0.0)
    highest = max(victim.spec.priority for victim in victims)
    began = min(_start(victim) for victim in victims if victim.spec.priority == highest)
    return (highest, sum(victim.spec.priority + _OFFSET for victim in victims), len(victims), -began)


def _start(task: TaskInfo) -> float:
    return task.spec.started if task.spec.started is not None else task.spec.creation
