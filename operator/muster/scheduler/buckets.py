"""Nodes that share every verdict: of one make, and of one make with equal accounts."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from muster.scheduler.node import NodeInfo
from muster.scheduler.resources import PODS, Resources
from muster.scheduler.task import Shape

_SPARE = 8
"""So many names may be out of date in a small bucket, too."""


class Make:
    """Nodes that differ only in their accounts."""

    __slots__ = ("id", "images", "key", "nodes")

    def __init__(self, make_id: int, key: object, images: tuple[str, ...] = ()) -> None:
        self.id = make_id
        self.key = key
        self.images = images
        self.nodes: dict[str, NodeInfo] = {}

    @property
    def sample(self) -> NodeInfo:
        """Any of the nodes; they all look alike here."""
        return next(iter(self.nodes.values()))


class Bucket:
    """Nodes of one make with equal accounts.

    The name of a node that leaves stays until it comes to the top, or more than half of the names are such: a node may
    come and go without ever being the first.
    """

    __slots__ = ("_names", "future_idle", "id", "idle", "key", "make", "members")

    def __init__(self, bucket_id: int, key: object, make: Make, node: NodeInfo) -> None:
        self.id = bucket_id
        self.key = key
        self.make = make
        self.idle = node.idle
        self.future_idle = node.future_idle
        self.members: dict[str, NodeInfo] = {}
        self._names: list[str] = []

    def first(self) -> str | None:
        """The lowest name, None when the bucket is empty."""
        names = self._names
        while names and names[0] not in self.members:
            heappop(names)
        return names[0] if names else None

    def in_order(self) -> Iterator[NodeInfo]:
        """The nodes by name, looked for only as far as they are asked for."""
        names, last = self._names.copy(), ""
        while names:
            name = heappop(names)
            if name != last and name in self.members:
                yield self.members[name]
            last = name

    def join(self, node: NodeInfo) -> bool:
        """Add a node; True when it became the first."""
        before = self.first()
        self.members[node.name] = node
        if len(self._names) > 2 * len(self.members) + _SPARE:
            self._names = list(self.members)
            heapify(self._names)
        else:
            heappush(self._names, node.name)
        return before is None or node.name < before

    def leave(self, node: NodeInfo) -> None:
        """Take a node out."""
        del self.members[node.name]


def fits(shape: Shape, idle: Resources) -> bool:
    """Whether what the shape needs to start is there. A pod that asks for nothing needs only a free pod slot."""
    if shape.best_effort:
        return idle.scalars.get(PODS, 0) >= shape.init_request.scalars[PODS]
    return shape.init_request.less_equal(idle)
