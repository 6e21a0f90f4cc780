"""Which nodes a pod may run on, apart from resources: those are compared by the actions themselves.

What a node is (cordon, labels, taints) is judged here; what depends on the pods that are there in modules of its own.

The words are kube-scheduler's, so that what users know how to read stays what they read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from muster.scheduler.constraints import HARD_EFFECTS, Taint
from muster.scheduler.device_book import Devices
from muster.scheduler.framework import ExtensionPoints, Plugin
from muster.scheduler.judge import NO_MATCH, tainted
from muster.scheduler.node import NodeInfo
from muster.scheduler.plugins.arguments import boolean
from muster.scheduler.plugins.devices import claim_hurdle, claimed_devices
from muster.scheduler.plugins.host_ports import host_ports
from muster.scheduler.plugins.pod_affinity import pod_affinity
from muster.scheduler.plugins.topology_spread import topology_spread
from muster.scheduler.plugins.volumes import volume_binding, volume_hurdle, volume_limits, volume_zone
from muster.scheduler.storage import Storage
from muster.scheduler.task import Shape

if TYPE_CHECKING:
    from muster.scheduler.cache import SchedulerCache

_RULES = (
    "NodeAffinity",
    "NodePorts",
    "TaintToleration",
    "PodAffinity",
    "NodeVolumeLimits",
    "VolumeZone",
    "PodTopologySpread",
    "VolumeBinding",
    "DynamicResourceAllocation",
)
_CORDON = Taint("node.kubernetes.io/unschedulable")


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
    return NO_MATCH


def taint_toleration(shape: Shape, node: NodeInfo) -> str | None:
    """Taints that the pod does not tolerate."""
    spec = node.spec
    if spec is None or not spec.taints:
        return None
    taint = next(shape.scheduling.untolerated(spec.taints, HARD_EFFECTS), None)
    return tainted(taint) if taint else None


class Predicates(Plugin):
    """Volcano's `predicates`. The number of pods is a resource of the node."""

    name: ClassVar[str] = "predicates"
    arguments: ClassVar = {
        **{f"predicate.{name}Enable": boolean for name in _RULES},
        "predicate.CacheEnable": boolean,
    }

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._arguments = arguments
        self._storage = Storage()
        self._devices = Devices({})

    def attach(self, cache: SchedulerCache) -> None:
        """Learn what storage and devices there are."""
        self._storage = cache.storage
        self._devices = cache.devices

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
        if self._enabled("NodeVolumeLimits"):
            points.add("checks", volume_limits(self._get_storage))
        if self._enabled("VolumeZone"):
            points.add("checks", volume_zone(self._get_storage))
        if self._enabled("PodTopologySpread"):
            points.add("checks", topology_spread)
        if self._enabled("VolumeBinding"):
            points.add("hurdles", volume_hurdle(self._get_storage))
            points.add("checks", volume_binding(self._get_storage))
        if self._enabled("DynamicResourceAllocation"):
            points.add("hurdles", claim_hurdle(self._get_devices))
            points.add("checks", claimed_devices(self._get_devices))

    def _get_storage(self) -> Storage:
        return self._storage

    def _get_devices(self) -> Devices:
        return self._devices

    def _enabled(self, rule: str) -> bool:
        return bool(self._arguments.get(f"predicate.{rule}Enable", True))
