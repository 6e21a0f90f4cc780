"""Nodes that have the pod's images already: kube-scheduler's score."""

from __future__ import annotations

from collections.abc import Sequence

from muster.scheduler.images import ImageBook
from muster.scheduler.node import NodeInfo
from muster.scheduler.task import Shape

MAX_SCORE = 100
_LEAST = 23 * 1024**2
"""Images below this size (together) are pulled in no time."""
_MOST_PER_CONTAINER = 1000 * 1024**2


def image_locality(shape: Shape, nodes: Sequence[NodeInfo], images: ImageBook) -> list[int]:
    """How much of the pod's images each node has; an image on few nodes counts for less, so that no node is crowded."""
    wanted = [(image, images.nodes_with(image)) for image in shape.scheduling.images]
    wanted = [(image, count) for image, count in wanted if count]
    if not wanted:
        return [0] * len(nodes)
    most = _MOST_PER_CONTAINER * len(shape.scheduling.images)
    scores = []
    for node in nodes:
        held = node.spec.images if node.spec is not None else {}
        size = sum(held[image] * count // images.total for image, count in wanted if image in held)
        scores.append(MAX_SCORE * (min(max(size, _LEAST), most) - _LEAST) // (most - _LEAST))
    return scores
