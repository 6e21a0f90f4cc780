"""Whose pods `capacity` lets go when another queue takes back what it deserves.

Candidates are counted along: each victim lowers what its queue, and the ancestors that are looked at, still use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from muster.scheduler.plugins.entitlement import Entitlement
from muster.scheduler.queue import ROOT, QueueInfo
from muster.scheduler.resources import PODS, Resources

if TYPE_CHECKING:
    from muster.scheduler.task import TaskInfo


class Victims:
    """One choice. `level` is how many levels of ancestors have to agree (ancestorReclaimLevel), 0 none."""

    def __init__(self, entitled: Mapping[str, Entitlement], level: int) -> None:
        self._entitled = entitled
        self._level = level
        self._left: dict[str, Resources] = {}

    def choose(self, reclaimer: TaskInfo | None, candidates: Sequence[TaskInfo]) -> list[TaskInfo]:
        """Those of the candidates that may go, in the order given; without a reclaimer every resource is wanted."""
        return [task for task in candidates if self._goes(reclaimer, task)]

    def _goes(self, reclaimer: TaskInfo | None, task: TaskInfo) -> bool:
        queue = task.job.queue if task.job is not None else None
        entitled = self._entitled.get(queue.name) if queue is not None else None
        if queue is None or entitled is None or (reclaimer is not None and not _share_a_resource(reclaimer, task)):
            return False
        left = self._left_of(queue)
        if not entitled.guarantee.less_equal(left.minus(task.request)):
            return False
        if _common(task.request, entitled.deserved):
            if not _exceeds(left, entitled.deserved, task.request):
                return False
        elif self._kin_without_claim(reclaimer, queue):
            return False
        above = self._ancestors_to_ask(reclaimer, queue)
        if not all(self._ancestor_agrees(each, task) for each in above):
            return False
        for each in (queue, *above):
            self._left_of(each).sub(task.request)
        return True

    def _left_of(self, queue: QueueInfo) -> Resources:
        left = self._left.get(queue.name)
        if left is None:
            left = self._left[queue.name] = queue.subtree.allocated.clone()
        return left

    def _ancestor_agrees(self, queue: QueueInfo, task: TaskInfo) -> bool:
        entitled = self._entitled.get(queue.name)
        if entitled is None:
            return False
        if not _common(task.request, entitled.deserved):
            return True
        return _exceeds(self._left_of(queue), entitled.deserved, task.request)

    def _kin_without_claim(self, reclaimer: TaskInfo | None, queue: QueueInfo) -> bool:
        """Whether both are below one near ancestor and the reclaimer's queue deserves nothing of what it asks for."""
        if self._level == 0 or reclaimer is None or reclaimer.job is None:
            return False
        mine = reclaimer.job.queue
        near = {each.name for each in self.near(mine, self._level)}
        if not any(each.name in near for each in self.near(queue, self._level)):
            return False
        entitled = self._entitled.get(mine.name)
        return entitled is None or not _common(reclaimer.request, entitled.deserved)

    def _ancestors_to_ask(self, reclaimer: TaskInfo | None, queue: QueueInfo) -> list[QueueInfo]:
        """The victim's ancestors up to the level, but the root and those that the reclaimer has at the same level."""
        theirs = reclaimer.job.queue.above if reclaimer is not None and reclaimer.job is not None else ()
        return [
            each
            for position, each in enumerate(queue.above[: self._level])
            if each.name != ROOT and not (position < len(theirs) and theirs[position] is each)
        ]

    @staticmethod
    def near(queue: QueueInfo, level: int) -> tuple[QueueInfo, ...]:
        """The ancestors up to that many levels above, without the root."""
        return tuple(each for each in queue.above[:level] if each.name != ROOT)


def _share_a_resource(reclaimer: TaskInfo, victim: TaskInfo) -> bool:
    """Whether the victim holds anything that the reclaimer needs (every pod takes one of `pods`: that is nothing)."""
    return any(name != PODS for name in _common(victim.request, reclaimer.spec.init_request))


def _common(left: Resources, right: Resources) -> list[str]:
    """The resources that both have some of."""
    return [name for name in left.dimensions() if left.get(name) > 0 and right.get(name) > 0]


def _exceeds(used: Resources, deserved: Resources, request: Resources) -> bool:
    """Whether more is used than deserved of a resource that the victim would give back.

    Scalars that victim and deserved amount both name go before CPU and memory: who is within its GPUs keeps its pods,
    whatever else they use.
    """
    names = [name for name in request.scalars if name != PODS and request.get(name) > 0 and name in deserved.scalars]
    for name in names or _common(Resources(request.milli_cpu, request.memory), deserved):
        if used.get(name) > deserved.get(name):
            return True
    return False
