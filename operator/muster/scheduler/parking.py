"""Waiting gangs that nothing has changed for are parked; what could help one wakes it.

A parked job is not looked at by the actions, so a cycle costs what has changed. `Relief` collects what got better
since the last cycle; `ParkingLot.wake` finds the jobs that it could help. Waking too many costs time, waking too few
would leave a gang waiting for ever: every rule here errs on the first side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from muster.scheduler.reasons import Wake

if TYPE_CHECKING:
    from muster.scheduler.job import JobInfo
    from muster.scheduler.node import NodeInfo
    from muster.scheduler.task import Shape

MANY_NODES = 64


@dataclass(frozen=True, slots=True)
class Parking:
    """What would wake a job: events of these kinds; for NODES only a node that one of the shapes fits on."""

    wakes: frozenset[Wake]
    queue: str
    shapes: tuple[Shape, ...] = ()


@dataclass(slots=True)
class Relief:
    """What got better since the last cycle."""

    nodes: dict[str, NodeInfo] = field(default_factory=dict)
    queues: set[str] = field(default_factory=set)
    cluster: bool = False
    everything: bool = False

    def __bool__(self) -> bool:
        return bool(self.everything or self.cluster or self.queues or self.nodes)


class ParkingLot:
    """The parked jobs, by what wakes them."""

    def __init__(self) -> None:
        self.jobs: dict[str, JobInfo] = {}
        self._by_queue: dict[str, dict[str, JobInfo]] = {}
        self._by_cluster: dict[str, JobInfo] = {}
        self._by_shapes: dict[tuple[int, ...], tuple[tuple[Shape, ...], dict[str, JobInfo]]] = {}

    def park(self, job: JobInfo, parking: Parking) -> None:
        """Leave the job alone until one of its wakes happens."""
        job.parked = parking
        self.jobs[job.key] = job
        if Wake.QUEUE in parking.wakes:
            self._by_queue.setdefault(parking.queue, {})[job.key] = job
        if Wake.CLUSTER in parking.wakes:
            self._by_cluster[job.key] = job
        if Wake.NODES in parking.wakes:
            self._by_shapes.setdefault(_shape_key(parking), (parking.shapes, {}))[1][job.key] = job

    def unpark(self, job: JobInfo) -> None:
        """Look at the job again; nothing happens when it is not parked."""
        parking = job.parked
        if parking is None:
            return
        job.parked = None
        self.jobs.pop(job.key, None)
        self._by_cluster.pop(job.key, None)
        if Wake.QUEUE in parking.wakes:
            _discard(self._by_queue, parking.queue, job.key)
        if Wake.NODES in parking.wakes:
            key = _shape_key(parking)
            shelf = self._by_shapes[key][1]
            shelf.pop(job.key, None)
            if not shelf:
                del self._by_shapes[key]

    def wake(self, relief: Relief, helps: Callable[[Shape, Iterable[NodeInfo]], bool]) -> list[JobInfo]:
        """Unpark and return the jobs that the relief could help. `helps` tells whether a shape fits on a node."""
        woken = {job.key: job for job in self._woken(relief, helps)}
        for job in woken.values():
            self.unpark(job)
        return list(woken.values())

    def _woken(self, relief: Relief, helps: Callable[[Shape, Iterable[NodeInfo]], bool]) -> Iterator[JobInfo]:
        if relief.everything:
            yield from self.jobs.values()
            return
        if relief.cluster:
            yield from self._by_cluster.values()
        for queue in relief.queues:
            yield from self._by_queue.get(queue, {}).values()
        if relief.nodes:
            every = len(relief.nodes) > MANY_NODES
            for shapes, shelf in self._by_shapes.values():
                if every or not shapes or any(helps(shape, relief.nodes.values()) for shape in shapes):
                    yield from shelf.values()


def _shape_key(parking: Parking) -> tuple[int, ...]:
    return tuple(shape.id for shape in parking.shapes)


def _discard(shelves: dict[str, dict[str, JobInfo]], shelf: str, key: str) -> None:
    jobs = shelves.get(shelf)
    if jobs is not None:
        jobs.pop(key, None)
        if not jobs:
            del shelves[shelf]
