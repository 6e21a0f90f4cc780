"""Which nodes a pod may run on, apart from resources: those are compared by the actions themselves.

What a node is (cordon, labels, taints) is judged here; what depends on the pods that are there in modules of its own.

The words are kube-scheduler's, so that what users know how to read stays what they read.
"""

from __future__ import annotations

from typing import Any, ClassVar

from muster.scheduler.constraints import HARD_EFFECTS, Taint
from muster.scheduler.framework import ExtensionPoints, Plugin
from muster.scheduler.node import NodeInfo
from muster.scheduler.plugins.arguments import boolean, only
from muster.scheduler.plugins.host_ports import host_ports
from muster.scheduler.plugins.pod_affinity import pod_affinity
from muster.scheduler.plugins.topology_spread import topology_spread
from muster.scheduler.task import Shape

_CORDON = Taint("node.kubernetes.io/unschedulable")
_LATER = (
    "NodeVolumeLimits",
    "VolumeZone",
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
    taint = next(shape.scheduling.untolerated(spec.taints, HARD_EFFECTS), None)
    return f"node(s) had untolerated taint {taint}" if taint else None


class Predicates(Plugin):
    """Volcano's `predicates`. The number of pods is a resource of the node."""

    name: ClassVar[str] = "predicates"
    arguments: ClassVar = {
        "predicate.NodeAffinityEnable": boolean,
        "predicate.NodePortsEnable": boolean,
        "predicate.TaintTolerationEnable": boolean,
        "predicate.PodAffinityEnable": boolean,
        "predicate.PodTopologySpreadEnable": boolean,
        "predicate.CacheEnable": boolean,
        **{f"predicate.{name}Enable": only(boolean, False) for name in _LATER},
    }

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._arguments = arguments

    def register(self, points: ExtensionPoints) -> None:
        """Filters nodes. What is asked first says why a node will not do."""
        points.add("predicates", unschedulable)
        if self._enabled("NodeAffinity"):
            points.add("predicates", node_affinity)
        if self._enabled("TaintToleration"):
            points.add("predicates", taint_toleration)
        if self._enabled("NodePorts"):
            points.add("checks", host_ports)
        if self._enabled("PodAffinity"):
            points.add("checks", pod_affinity)
        if self._enabled("PodTopologySpread"):
            points.add("checks", topology_spread)

    def _enabled(self, rule: str) -> bool:
        return bool(self._arguments.get(f"predicate.{rule}Enable", True))
