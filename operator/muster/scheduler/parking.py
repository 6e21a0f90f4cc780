"""Waiting gangs that nothing has changed for are parked; what could help one wakes it.

A parked job is not looked at by the actions, so a cycle costs what has changed. `Relief` collects what got better
since the last cycle; `ParkingLot.wake` finds the jobs that it could help. Waking too many costs time, waking too few
would leave a gang waiting for ever: every rule here errs on the first side.

Jobs that would be refused alike are parked as one group, in order. Only the first of a group is woken: when it is
refused again the others would be too; when it gets what it waits for the next one follows in the same cycle
(`next_like`), so the order among all jobs is what it would be without parking.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any

from muster.scheduler.reasons import Wake
from muster.scheduler.specs import Phase

if TYPE_CHECKING:
    from muster.scheduler.job import JobInfo
    from muster.scheduler.neighbours import Selection
    from muster.scheduler.node import NodeInfo
    from muster.scheduler.task import Shape, TaskInfo

MANY_NODES = 64
BY_SHAPE = frozenset({Wake.NODES, Wake.VOLUMES, Wake.DEVICES})
"""What helps only those who could use it."""
_SPARE = 8
"""So many entries may be out of date in a small heap, too."""

Helps = Callable[["Shape", Iterable["NodeInfo"]], bool]


@dataclass(frozen=True, slots=True)
class Parking:
    """What would wake a job: events of these kinds.

    For QUEUE only in one of the queues, for NODES only a node that one of the shapes fits on. VICTIMS is room on any
    node, too: it may be enough together with that of pods which alone were not worth evicting.
    """

    wakes: frozenset[Wake]
    queues: frozenset[str]
    shapes: tuple[Shape, ...] = ()


@dataclass(slots=True)
class Relief:
    """What got better since the last cycle.

    `company` are the selections whose pods came or went, `storage` says that claims or volumes changed, `claims` are
    the claims to devices that did, `devices` says that some are free, or others than before. `victims`: pods may be
    evicted now that could not be before. A plugin whose verdict on victims changes by itself (with the time) sets it in
    `on_session_open`. Without `newcomers` it is none for gangs that are not admitted yet.
    """

    nodes: dict[str, NodeInfo] = field(default_factory=dict)
    company: set[Selection] = field(default_factory=set)
    claims: set[str] = field(default_factory=set)
    queues: set[str] = field(default_factory=set)
    cluster: bool = False
    victims: bool = False
    storage: bool = False
    devices: bool = False
    everything: bool = False
    newcomers: bool = True

    def add_place(self, task: TaskInfo, node: NodeInfo | None) -> None:
        """What the task has on the node, or was promised there, is free for others, or is about to be."""
        if node is not None and node.spec is not None:
            self.nodes[node.name] = node
        if task.shape.counted:
            self.company |= task.shape.concerns
        if task.job is not None:
            self.queues.update(task.job.queue.lineage)
        self.devices = self.devices or task.shape.devices is not None
        self.storage = self.storage or bool(task.spec.scheduling.claims)
        # A node may need fewer victims now, and a queue that uses less may take more.
        self.cluster = self.victims = True

    def __bool__(self) -> bool:
        better = self.everything or self.cluster or self.victims or self.storage or self.devices
        return bool(better or self.queues or self.nodes or self.company or self.claims)


def _is_admitted(job: JobInfo) -> bool:
    return job.phase is not Phase.PENDING or job.broken_since is not None


class Group:
    """Parked jobs of one phase that would be refused alike.

    Who leaves stays in the heap until its entry comes to the top, or half of the entries are such: a job costs the
    same whether one or thousands are parked with it, and what is kept does not grow with what happens. The number in
    an entry tells a job from one of the same name and order that was there before it.
    """

    __slots__ = ("_entered", "_heap", "_members", "key", "parking", "phase")

    def __init__(self, key: object, phase: Phase, parking: Parking) -> None:
        self.key = key
        self.phase = phase
        self.parking = parking
        self._heap: list[tuple[tuple[Any, ...], int, str]] = []
        self._members: dict[str, tuple[int, tuple[Any, ...], JobInfo]] = {}
        self._entered = 0

    def __bool__(self) -> bool:
        return bool(self._members)

    def add(self, job: JobInfo, order: tuple[Any, ...]) -> None:
        """Park a job; the lowest `order` goes first."""
        self._entered += 1
        self._members[job.key] = (self._entered, order, job)
        heappush(self._heap, (order, self._entered, job.key))

    def remove(self, job: JobInfo) -> None:
        """The job is parked no more."""
        del self._members[job.key]
        if len(self._heap) > 2 * len(self._members) + _SPARE:
            self._heap = [(order, number, key) for key, (number, order, _) in self._members.items()]
            heapify(self._heap)

    def first(self) -> JobInfo | None:
        """The job that goes first."""
        while self._heap:
            _, number, key = self._heap[0]
            member = self._members.get(key)
            if member is not None and member[0] == number:
                return member[2]
            heappop(self._heap)
        return None


class ParkingLot:
    """The parked jobs, by what wakes them."""

    def __init__(self) -> None:
        self.jobs: dict[str, JobInfo] = {}
        self._groups: dict[object, Group] = {}
        self._by_queue: dict[str, dict[object, Group]] = {}
        self._by_cluster: dict[object, Group] = {}
        self._by_victims: dict[object, Group] = {}
        self._by_shapes: dict[tuple[Shape, ...], dict[object, Group]] = {}

    def park(self, job: JobInfo, parking: Parking, like: object, order: tuple[Any, ...]) -> None:
        """Leave the job alone until one of its wakes happens. Jobs with equal `like` share their fate."""
        key = (like, job.phase, parking)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(key, job.phase, parking)
            for shelf in self._shelves(parking):
                shelf[key] = group
        group.add(job, order)
        job.parked, job.group = parking, group
        self.jobs[job.key] = job

    def unpark(self, job: JobInfo) -> None:
        """Look at the job again; nothing happens when it is not parked."""
        group = job.group
        if job.parked is None or group is None:
            return
        job.parked = None
        self.jobs.pop(job.key, None)
        group.remove(job)
        if not group:
            del self._groups[group.key]
            for shelf in self._shelves(group.parking):
                del shelf[group.key]
            self._drop_empty_shelves(group.parking)

    def wake(self, relief: Relief, helps: Helps) -> list[JobInfo]:
        """Unpark and return the first of each group that the relief could help.

        `helps` tells whether a shape fits on one of the nodes.
        """
        if relief.everything:
            woken = list(self.jobs.values())
        else:
            groups = {id(group): group for group in self._woken(relief, helps)}
            firsts = [job for group in groups.values() if (job := group.first()) is not None]
            woken = [job for job in firsts if relief.newcomers or _is_admitted(job)]
        for job in woken:
            self.unpark(job)
        return woken

    def next_like(self, job: JobInfo, phase: Phase) -> JobInfo | None:
        """Unpark and return the job that follows one which was woken in this phase and got what it waited for."""
        group, job.group = job.group, None
        if group is None or group.phase is not phase:
            return None
        follower = group.first()
        if follower is not None:
            self.unpark(follower)
        return follower

    def _woken(self, relief: Relief, helps: Helps) -> Iterator[Group]:
        if relief.cluster:
            yield from self._by_cluster.values()
        if relief.victims or relief.nodes:
            yield from self._by_victims.values()
        for queue in relief.queues:
            yield from self._by_queue.get(queue, {}).values()
        if relief.nodes or relief.company or relief.storage or relief.devices or relief.claims:
            every = len(relief.nodes) > MANY_NODES
            for shapes, shelf in self._by_shapes.items():
                if every or not shapes or any(self._helped(shape, relief, helps) for shape in shapes):
                    yield from shelf.values()

    @staticmethod
    def _helped(shape: Shape, relief: Relief, helps: Helps) -> bool:
        if not shape.concerns.isdisjoint(relief.company) or (relief.storage and shape.scheduling.claims):
            return True
        if shape.devices is not None and (relief.devices or not relief.claims.isdisjoint(shape.devices.claims)):
            return True
        return bool(relief.nodes) and helps(shape, relief.nodes.values())

    def _shelves(self, parking: Parking) -> Iterator[dict[object, Group]]:
        if Wake.QUEUE in parking.wakes:
            for queue in parking.queues:
                yield self._by_queue.setdefault(queue, {})
        if Wake.CLUSTER in parking.wakes:
            yield self._by_cluster
        if Wake.VICTIMS in parking.wakes:
            yield self._by_victims
        if parking.wakes & BY_SHAPE:
            yield self._by_shapes.setdefault(parking.shapes, {})

    def _drop_empty_shelves(self, parking: Parking) -> None:
        for queue in parking.queues:
            if not self._by_queue.get(queue, True):
                del self._by_queue[queue]
        if not self._by_shapes.get(parking.shapes, True):
            del self._by_shapes[parking.shapes]
