"""Pods that the cluster lives on are nobody's victims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from muster.scheduler.framework import ExtensionPoints, Plugin

if TYPE_CHECKING:
    from muster.scheduler.session import Session
    from muster.scheduler.task import TaskInfo

_CRITICAL = frozenset({"system-cluster-critical", "system-node-critical"})


def is_critical(task: TaskInfo) -> bool:
    """Whether the pod is critical by its class or lives in kube-system."""
    return task.spec.priority_class in _CRITICAL or task.spec.namespace == "kube-system"


class Conformance(Plugin):
    """Volcano's `conformance`."""

    name: ClassVar[str] = "conformance"
    protects: ClassVar[bool] = True

    def register(self, points: ExtensionPoints) -> None:
        """Takes critical pods out of the candidates of every action that evicts for somebody."""
        for point in ("preemptable", "reclaimable", "unified_evictable"):
            points.add(point, _not_critical)


def _not_critical(_session: Session, _for_whom: object, candidates: Sequence[TaskInfo]) -> list[TaskInfo]:
    return [task for task in candidates if not is_critical(task)]
