"""Which nodes a pod may run on, apart from resources: those are compared by the actions themselves.

The words are kube-scheduler's, so that what users know how to read stays what they read.
"""

from __future__ import annotations

from typing import Any, ClassVar

from muster.scheduler.constraints import Taint
from muster.scheduler.framework import ExtensionPoints, Plugin
from muster.scheduler.node import NodeInfo
from muster.scheduler.plugins.arguments import boolean, only
from muster.scheduler.task import Shape

_HARD = ("NoSchedule", "NoExecute")
_CORDON = Taint("node.kubernetes.io/unschedulable")
_LATER = (
    "NodePorts",
    "PodAffinity",
    "NodeVolumeLimits",
    "VolumeZone",
    "PodTopologySpread",
    "VolumeBinding",
    "DynamicResourceAllocation",
)


def unschedulable(shape: Shape, node: NodeInfo) -> str | None:
    """A cordoned node takes only pods that tolerate the cordon."""
    spec = node.spec
    if spec is not None and spec.unschedulable:
        if any(each.tolerates(_CORDON) for each in shape.scheduling.tolerations):
            return None
        return "node(s) were unschedulable"
    return None


def node_affinity(shape: Shape, node: NodeInfo) -> str | None:
    """Node selector and required node affinity."""
    if shape.scheduling.selects(node.name, node.labels):
        return None
    return "node(s) didn't match Pod's node affinity/selector"


def taint_toleration(shape: Shape, node: NodeInfo) -> str | None:
    """Taints that the pod does not tolerate."""
    spec = node.spec
    if spec is None or not spec.taints:
        return None
    taint = next(shape.scheduling.untolerated(spec.taints, _HARD), None)
    return f"node(s) had untolerated taint {taint}" if taint else None


class Predicates(Plugin):
    """Volcano's `predicates`: cordon, node affinity, taints. The number of pods is a resource of the node."""

    name: ClassVar[str] = "predicates"
    arguments: ClassVar = {
        "predicate.NodeAffinityEnable": boolean,
        "predicate.TaintTolerationEnable": boolean,
        "predicate.CacheEnable": boolean,
        **{f"predicate.{name}Enable": only(boolean, False) for name in _LATER},
    }

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._affinity = arguments.get("predicate.NodeAffinityEnable", True)
        self._taints = arguments.get("predicate.TaintTolerationEnable", True)

    def register(self, points: ExtensionPoints) -> None:
        """Filters nodes."""
        points.add("predicates", unschedulable)
        if self._affinity:
            points.add("predicates", node_affinity)
        if self._taints:
            points.add("predicates", taint_toleration)
