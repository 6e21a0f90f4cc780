"""Fills nodes up: of the nodes that fit, the one that is fullest with the pod on it (reference: binpack).

The opposite of spreading: small pods leave whole nodes free for large ones.
"""

from __future__ import annotations

from typing import Any, ClassVar

from muster.scheduler.framework import ExtensionPoints, Plugin
from muster.scheduler.node import NodeInfo
from muster.scheduler.plugins.arguments import integer, names
from muster.scheduler.resources import CPU, MEMORY
from muster.scheduler.task import Shape

_EXTRA = "binpack.resources"


class Binpack(Plugin):
    """Volcano's `binpack`: 100 points times the weight for a node that would be full."""

    name: ClassVar[str] = "binpack"
    arguments: ClassVar = {
        "binpack.weight": integer,
        "binpack.cpu": integer,
        "binpack.memory": integer,
        _EXTRA: names,
    }
    argument_prefixes: ClassVar = {f"{_EXTRA}.": integer}

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._weight: int = arguments.get("binpack.weight", 1)
        self._resources = {
            CPU: _positive(arguments.get("binpack.cpu", 1)),
            MEMORY: _positive(arguments.get("binpack.memory", 1)),
        }
        for resource in arguments.get(_EXTRA, ()):
            self._resources.setdefault(resource, _positive(arguments.get(f"{_EXTRA}.{resource}", 1)))

    def register(self, points: ExtensionPoints) -> None:
        """Scores nodes; a weight of 0 switches it off."""
        if self._weight:
            points.add("node_orders", self.score)

    def score(self, shape: Shape, node: NodeInfo) -> float:
        """The weighted mean of how full each resource would be that the pod asks for; 0 where it would overflow."""
        request, used, allocatable = shape.request, node.used, node.allocatable
        filled, weights = 0.0, 0
        for resource, weight in self._resources.items():
            asked = request.get(resource)
            if asked == 0:
                continue
            taken, capacity = asked + used.get(resource), allocatable.get(resource)
            if taken > capacity > 0:
                return 0.0
            weights += weight
            if capacity > 0:
                filled += weight * taken / capacity
        return 100.0 * self._weight * filled / weights if weights else 0.0


def _positive(weight: int) -> int:
    """A negative weight means the default (Volcano's rule)."""
    return weight if weight >= 0 else 1
