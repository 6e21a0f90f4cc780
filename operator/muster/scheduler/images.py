"""Which nodes have the images that pods name.

Only images that some pod which looks for a node names are told apart: they are part of what makes a make of node.
"""

from __future__ import annotations

from collections.abc import Iterable

from muster.scheduler.specs import NodeSpec


class ImageBook:
    """The named images, and how many of the `total` nodes have each."""

    def __init__(self) -> None:
        self.total = 0
        self._named: set[str] = set()
        self._nodes: dict[str, int] = {}

    def name(self, images: Iterable[str]) -> bool:
        """A pod names these images; True when one of them is new."""
        before = len(self._named)
        self._named.update(images)
        return len(self._named) > before

    def named_on(self, spec: NodeSpec) -> tuple[str, ...]:
        """The named images that the node has."""
        if not self._named or not spec.images:
            return ()
        return tuple(sorted(self._named.intersection(spec.images)))

    def add(self, held: Iterable[str], sign: int) -> None:
        """A node with these named images is there (1), or is not any more (-1)."""
        self.total += sign
        for image in held:
            self._nodes[image] = self._nodes.get(image, 0) + sign

    def nodes_with(self, image: str) -> int:
        """How many nodes have the image."""
        return self._nodes.get(image, 0)

    @property
    def matter(self) -> bool:
        """Whether any node has a named image."""
        return any(self._nodes.values())
