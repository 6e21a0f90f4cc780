"""Scores nodes resource by resource: some are to be filled up, others spread out.

A site that packs GPUs and spreads CPU says `nvidia.com/gpu: MostAllocated, cpu: LeastAllocated`. Two policies can be
added: `sra` keeps pods away from nodes with scarce resources that they do not ask for, `proportional` keeps CPU and
memory back for the scarce resources of a node that are still free.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from muster.scheduler.framework import ExtensionPoints, Plugin
from muster.scheduler.node import NodeInfo
from muster.scheduler.plugins.arguments import boolean, integer, mapping, names, number, record, shown
from muster.scheduler.resources import CPU, MEMORY
from muster.scheduler.task import Shape

LEAST, MOST = "LeastAllocated", "MostAllocated"
_DEFAULT_WEIGHT = 10
_GIGABYTE_PER_UNIT = 1_000_000  # bytes for each thousandth of a scarce resource


def _strategy(value: object) -> str:
    if value not in (LEAST, MOST):
        raise ValueError(f"must be {LEAST} or {MOST}, not {shown(value)}")
    return str(value)


@dataclass(frozen=True, slots=True)
class Strategy:
    """How one resource is scored, and how much it counts."""

    most: bool
    weight: int


_resources = mapping(record({"type": _strategy, "weight": integer}))
_sra = record({"enable": boolean, "resources": names, "weight": integer, "resourceWeight": mapping(integer)})
_proportional = record({"enable": boolean, "resources": names, "resourceProportion": mapping(number)})


@dataclass(frozen=True, slots=True)
class ScarceResourceAvoidance:
    """The `sra` policy: `weights` of the scarce resources, `weight` of the policy as a whole."""

    weight: int = 0
    weights: Mapping[str, int] = field(default_factory=dict)

    def score(self, shape: Shape, node: NodeInfo) -> float:
        """100 times the weight on a node without any of the scarce resources, 0 on one that has them all.

        A node that lacks something the pod asks for gets 0.
        """
        whole = sum(self.weights.values())
        if not whole or any(not node.allocatable.get(name) for name in shape.request.dimensions()):
            return 0.0
        present = sum(weight for name, weight in self.weights.items() if node.allocatable.get(name) > 0)
        return 100.0 * self.weight * (1 - present / whole)


class ResourceStrategyFit(Plugin):
    """Volcano's `resource-strategy-fit`."""

    name: ClassVar[str] = "resource-strategy-fit"
    arguments: ClassVar = {
        "resourceStrategyFitWeight": integer,
        "resources": _resources,
        "sra": _sra,
        "proportional": _proportional,
    }

    def __init__(self, arguments: dict[str, Any]) -> None:
        weight = arguments.get("resourceStrategyFitWeight", _DEFAULT_WEIGHT)
        self._weight = weight if weight >= 0 else _DEFAULT_WEIGHT
        self._strategies = _strategies(arguments.get("resources") or {CPU: {}, MEMORY: {}})
        self._avoidance = _avoidance(arguments.get("sra", {}))
        self._proportions = _proportions(arguments.get("proportional", {}))
        self._found: dict[str, Strategy | None] = {}

    def register(self, points: ExtensionPoints) -> None:
        """Scores nodes by their accounts, and holds back what belongs to scarce resources."""
        if self._weight:
            points.add("node_orders", self.score)
        if self._avoidance.weight > 0:
            points.add("node_orders", self._avoidance.score)
        if self._proportions:
            points.add("node_predicates", self._holds_back)

    def score(self, shape: Shape, node: NodeInfo) -> float:
        """The weighted mean over the resources of the pod (CPU and memory always); 0 where one would overflow."""
        request, used, allocatable = shape.request, node.used, node.allocatable
        points, weights = 0.0, 0
        for resource in request.dimensions():
            strategy = self._strategy_of(resource)
            if strategy is None:
                continue
            taken, capacity = request.get(resource) + used.get(resource), allocatable.get(resource)
            if taken > capacity > 0:
                return 0.0
            weights += strategy.weight
            if capacity > 0:
                points += strategy.weight * (taken if strategy.most else capacity - taken) / capacity
        return 100.0 * self._weight * points / weights if weights else 0.0

    def _strategy_of(self, resource: str) -> Strategy | None:
        """The strategy of that very name, else of the longest pattern (`nvidia.com/*`) that begins the name."""
        if resource not in self._found:
            patterns = [key for key in self._strategies if key.endswith("*") and resource.startswith(key[:-1])]
            longest = max(patterns, key=len, default="")
            self._found[resource] = self._strategies.get(resource) or self._strategies.get(longest)
        return self._found[resource]

    def _holds_back(self, shape: Shape, node: NodeInfo) -> str | None:
        if any(shape.request.get(name) > 0 for name in self._proportions):
            return None
        rest = node.idle.minus(shape.request)
        for name, (cpu, memory) in self._proportions.items():
            scarce = node.idle.scalars.get(name, 0)
            if rest.milli_cpu < scarce * cpu or rest.memory < scarce * memory * _GIGABYTE_PER_UNIT:
                return f"node(s) keep CPU and memory for their free {name}"
        return None


def _strategies(given: Mapping[str, Mapping[str, Any]]) -> dict[str, Strategy]:
    found = {}
    for pattern, values in given.items():
        if "*" in pattern[:-1] or pattern == "*":
            raise ValueError(f"resources.{pattern}: an asterisk may only end the name of a resource")
        weight = values.get("weight", 1)
        found[pattern] = Strategy(values.get("type", LEAST) == MOST, weight if weight > 0 else 1)
    return found


def _avoidance(given: Mapping[str, Any]) -> ScarceResourceAvoidance:
    if not given.get("enable"):
        return ScarceResourceAvoidance()
    weights = given.get("resourceWeight", {})
    each = {name: weights.get(name, 1) for name in given.get("resources", ())}
    return ScarceResourceAvoidance(
        given.get("weight", 0), {name: weight if weight >= 0 else 1 for name, weight in each.items()}
    )


def _proportions(given: Mapping[str, Any]) -> dict[str, tuple[Fraction, Fraction]]:
    """For each scarce resource the cores and the gigabytes kept back for each free unit of it."""
    if not given.get("enable"):
        return {}
    rates = given.get("resourceProportion", {})

    def rate(name: str) -> Fraction:
        found: Fraction = rates.get(name, Fraction(1))
        return found if found >= 0 else Fraction(1)

    return {name: (rate(f"{name}.cpu"), rate(f"{name}.memory")) for name in given.get("resources", ())}
