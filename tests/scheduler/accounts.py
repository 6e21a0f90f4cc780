"""A node with accounts and a shape of pod, for plugins that are asked directly."""

from __future__ import annotations

from collections.abc import Mapping

from muster.scheduler.constraints import PodConstraints
from muster.scheduler.node import NodeInfo
from muster.scheduler.resources import Resources
from muster.scheduler.task import Shape
from muster.testing import node, resources


def node_info(
    allocatable: Resources, used: Resources | None = None, labels: Mapping[str, str] | None = None, name: str = "n"
) -> NodeInfo:
    """A node of which this much is in use."""
    made = NodeInfo(name)
    spec = node(name, labels=labels)
    made.spec = type(spec)(name, allocatable, spec.labels)
    made.used = used or Resources()
    return made


def shape(cpu: float = 0, memory: float = 0, scheduling: PodConstraints | None = None, **scalars: int) -> Shape:
    """A pod that asks for this much (`pods: 1` included)."""
    return Shape(
        1, resources(cpu, memory, 1, **scalars), resources(cpu, memory, **scalars), scheduling or PodConstraints()
    )
