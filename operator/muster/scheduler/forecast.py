"""What nodes will have free, as far as running pods say when they end.

For a gang that is to get room, every node has a price: nothing where it has room now, a time where it will have it once
pods with a stated run time have ended, and else the part of the node that has to become free without anybody saying
when. Pods that are not ours stay: another scheduler may put the next one there at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heapreplace
from typing import TYPE_CHECKING

from muster.scheduler.node import NodeInfo
from muster.scheduler.placement import fits
from muster.scheduler.resources import Resources, dominant_share
from muster.scheduler.specs import TaskStatus

if TYPE_CHECKING:
    from muster.scheduler.session import Session
    from muster.scheduler.task import Shape, TaskInfo

Price = tuple[int, float]
"""What a place costs: (FREE, now), (TIMED, the Unix seconds when it is free), or (UNTIMED, the part of the node)."""

FREE, TIMED, UNTIMED = 0, 1, 2


class Place:
    """Where one task would go, and at which price."""

    __slots__ = ("node", "price", "task")

    def __init__(self, task: TaskInfo, node: str, price: Price) -> None:
        self.task = task
        self.node = node
        self.price = price


class _NodeForecast:
    """One node: its room now, and how it grows."""

    __slots__ = ("_ends", "_node", "_room", "_untimed")

    def __init__(self, node: NodeInfo, taken: Resources | None) -> None:
        self._node = node
        self._room = node.idle.minus(node.pipelined)
        if taken is not None:
            self._room.sub(taken)
        self._ends: list[tuple[float, Resources]] | None = None
        self._untimed = Resources()

    def price(self, shape: Shape, now: float) -> Price | None:
        """What a place for a task of this shape costs; None when there will never be one."""
        if fits(shape, self._room):
            return FREE, now
        room = self._room.clone()
        for end, request in self._known_ends(now):
            room.add(request)
            if fits(shape, room):
                return TIMED, end
        lacking = shape.init_request.exceeded(room)
        if not fits(shape, room.plus(self._untimed)):
            return None
        return UNTIMED, dominant_share(lacking, self._node.allocatable)

    def take(self, request: Resources) -> None:
        """A task of the gang goes here."""
        self._room.sub(request)

    def _known_ends(self, now: float) -> list[tuple[float, Resources]]:
        if self._ends is None:
            self._ends = []
            for task in self._node.tasks.values():
                if task.status.holds and task.job is not None and task.spec.ours and not task.overdue:
                    end = expected_end(task, now)
                    if end is None:
                        self._untimed.add(task.request)
                    else:
                        self._ends.append((end, task.request))
            self._ends.sort(key=lambda each: each[0])
        return self._ends


def expected_end(task: TaskInfo, now: float) -> float | None:
    """When a pod that holds a node is said to end; None when nobody says, or it should have ended already."""
    if task.status is TaskStatus.RELEASING:
        return now
    runtime = task.job.runtime_of(task) if task.job is not None else None
    if runtime is None:
        return None
    started = task.spec.started if task.spec.started is not None and task.status is TaskStatus.RUNNING else now
    end = min(started, now) + runtime
    return end if end > now else None


class Forecast:
    """The nodes as a gang sees them that is to get room. `taken` is what others are to get on them."""

    def __init__(self, session: Session, taken: Mapping[str, Resources]) -> None:
        self._session = session
        self._taken = taken
        self._nodes: dict[str, _NodeForecast] = {}
        self._offers: dict[int, list[tuple[Price, str]]] = {}

    def places(self, tasks: Iterable[TaskInfo]) -> list[Place] | None:
        """A place for every task, each the cheapest that is left; None when one has none."""
        found = []
        for task in tasks:
            place = self._cheapest(task)
            if place is None:
                return None
            self._node(place.node).take(task.request)
            found.append(place)
        return found

    def prices(self, tasks: Iterable[tuple[TaskInfo, str]]) -> list[Place] | None:
        """The same for places that are chosen already; None when one of them is no place any more."""
        found = []
        for task, name in tasks:
            price = self._price(task.shape, name)
            if price is None:
                return None
            self._node(name).take(task.request)
            found.append(Place(task, name, price))
        return found

    def _cheapest(self, task: TaskInfo) -> Place | None:
        shape, now = task.shape, self._session.now
        offers = self._offers.get(shape.id)
        if offers is None:
            offers = self._offers[shape.id] = self._all_offers(shape)
        while offers:
            price, name = offers[0]
            today = self._node(name).price(shape, now)
            if today is None:
                heappop(offers)
            elif today != price:
                heapreplace(offers, (today, name))
            else:
                return Place(task, name, price)
        return None

    def _all_offers(self, shape: Shape) -> list[tuple[Price, str]]:
        offers = []
        for name, node in self._session.cache.nodes.items():
            price = self._price(shape, name) if node.spec is not None else None
            if price is not None:
                offers.append((price, name))
        heapify(offers)
        return offers

    def _price(self, shape: Shape, name: str) -> Price | None:
        node = self._session.cache.nodes.get(name)
        if node is None or node.spec is None or self._session.framework.judge.refusal(shape, node) is not None:
            return None
        return self._node(name).price(shape, self._session.now)

    def _node(self, name: str) -> _NodeForecast:
        forecast = self._nodes.get(name)
        if forecast is None:
            node = self._session.cache.nodes[name]
            forecast = self._nodes[name] = _NodeForecast(node, self._taken.get(name))
        return forecast


def total_price(places: Iterable[Place]) -> tuple[float, float]:
    """What a whole set of places costs: first what nobody knows the end of, then the time."""
    untimed, latest = 0.0, 0.0
    for place in places:
        kind, value = place.price
        if kind == UNTIMED:
            untimed += value
        else:
            latest = max(latest, value)
    return untimed, latest
