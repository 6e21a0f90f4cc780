"""One `Shape` object for each distinct combination of requests and constraints in the cluster."""

from __future__ import annotations

from dataclasses import replace

from muster.scheduler.constraints import PodConstraints
from muster.scheduler.neighbours import Identity, Neighbours
from muster.scheduler.placement import NodeIndex
from muster.scheduler.resources import Resources
from muster.scheduler.task import Shape, ShapeKey

IDLE_SHAPES = 256


class ShapeBook:
    """Hands out shapes and forgets those that nobody uses, but for a few that may come back."""

    def __init__(self, index: NodeIndex, neighbours: Neighbours) -> None:
        self._index = index
        self._neighbours = neighbours
        self._shapes: dict[ShapeKey, Shape] = {}
        self._unused = 0
        self._next_id = 0

    def take(
        self,
        request: Resources,
        init_request: Resources,
        scheduling: PodConstraints,
        identity: Identity | None = None,
    ) -> Shape:
        """The shape of a task that is about to use it."""
        # First, for what this one asks may select the task itself.
        ties = self._neighbours.tie(scheduling) if scheduling.company is not None else None
        matched = identity.selections if identity is not None else ()
        key = (request.key(), init_request.key(), scheduling, tuple(sorted(each.id for each in matched)))
        shape = self._shapes.get(key)
        if shape is None:
            self._next_id += 1
            shape = self._shapes[key] = Shape(self._next_id, request, init_request, scheduling, matched, ties)
            if scheduling.devices is not None:
                shape.stem = (*key[:2], replace(scheduling, devices=None), key[3])
            if ties is not None:
                ties.users += 1
        elif shape.users == 0:
            self._unused -= 1
        shape.users += 1
        return shape

    def give_back(self, shape: Shape) -> None:
        """One task fewer uses the shape."""
        shape.users -= 1
        if shape.users == 0:
            self._unused += 1
            if self._unused > IDLE_SHAPES:
                self._forget_unused()

    def _forget_unused(self) -> None:
        unused = [shape for shape in self._shapes.values() if shape.users == 0]
        self._shapes = {key: shape for key, shape in self._shapes.items() if shape.users}
        self._unused = 0
        for shape in unused:
            self._index.forget(shape)
        for shape in unused:
            # Tasks that only this one's selections told apart change their shape, and may leave others unused.
            self._neighbours.untie(shape.scheduling)
