"""Nodes to the scheduler's nodes."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from muster.engine.amounts import TranslationError, amounts, resources
from muster.engine.pod_validation import EFFECTS
from muster.kube.objects import Node
from muster.scheduler.constraints import Taint
from muster.scheduler.resources import Resources
from muster.scheduler.specs import NodeSpec


def node_spec(node: Node) -> NodeSpec:
    """Translate a node. Its allocatable amounts round down, so that no binding ever exceeds them.

    Raises TranslationError.
    """
    return NodeSpec(
        name=node.metadata.name,
        allocatable=resources(amounts(node.status.allocatable, "status.allocatable", round_down=True)),
        labels=node.metadata.labels,
        taints=tuple(_taints(node)),
        unschedulable=bool(node.spec.unschedulable),
        images=dict(_images(node)),
        ready=all(each.status == "True" for each in node.status.conditions if each.type == "Ready"),
    )


def unreadable_node_spec(name: str) -> NodeSpec:
    """A node that is there but can't be read: it takes nothing, and who runs on it has not lost it."""
    return NodeSpec(name, Resources(), unschedulable=True, ready=False)


def _taints(node: Node) -> Iterator[Taint]:
    for index, taint in enumerate(node.spec.taints):
        if taint.effect not in EFFECTS:
            raise TranslationError(f"spec.taints[{index}].effect", f"{taint.effect!r} is not an effect")
        yield Taint(taint.key, taint.value or "", taint.effect)


def _images(node: Node) -> Iterator[tuple[str, int]]:
    for image in node.status.images:
        for name in image.names or ():
            # The same few names stand in the status of every node.
            yield sys.intern(name), image.size_bytes
