"""Pods that the cluster lives on are nobody's victims."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from muster.scheduler.framework import ExtensionPoints, Plugin

if TYPE_CHECKING:
    from muster.scheduler.task import TaskInfo

_CRITICAL = frozenset({"system-cluster-critical", "system-node-critical"})


def is_critical(task: TaskInfo) -> bool:
    """Whether the pod is critical by its class or lives in kube-system."""
    return task.spec.priority_class in _CRITICAL or task.spec.namespace == "kube-system"


class Conformance(Plugin):
    """Volcano's `conformance`."""

    name: ClassVar[str] = "conformance"

    def register(self, points: ExtensionPoints) -> None:
        """Shields critical pods from every action that evicts."""
        points.add("shielded", is_critical)
