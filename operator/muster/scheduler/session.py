"""One cycle's view of the model, and what it decides.

A Session works on the cache itself: nothing else changes it while a cycle runs. Promises (pipelined tasks, and gangs
that are held until leaving pods are gone) are kept until `close`, which takes back whatever was not committed (P3).
What a cycle learns about a gang that it can't place (`findings`) becomes the gang's reason.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

from muster.scheduler.devices import Shortage
from muster.scheduler.explain import most_of, survey_nodes, usable
from muster.scheduler.framework import Framework
from muster.scheduler.holds import Holds
from muster.scheduler.kept_room import KeptRoom
from muster.scheduler.nominations import nominate
from muster.scheduler.outcome import Binding, Eviction, Pipelined
from muster.scheduler.queue import capability_reason
from muster.scheduler.reasons import Reason
from muster.scheduler.resources import Resources
from muster.scheduler.specs import Phase, TaskStatus
from muster.scheduler.statement import Statement
from muster.scheduler.task import numbered_by_age

if TYPE_CHECKING:
    from muster.scheduler.cache import SchedulerCache
    from muster.scheduler.conf import SchedulerConfiguration
    from muster.scheduler.job import JobInfo
    from muster.scheduler.placing import Attempt
    from muster.scheduler.queue import QueueInfo
    from muster.scheduler.task import Shape, TaskInfo


@dataclass(frozen=True, slots=True)
class Objections:
    """Why nodes were no place for a pod, by node, and which devices they lacked, if that was it."""

    nodes: Mapping[str, str] = field(default_factory=dict)
    devices: Shortage | None = None


_NO_OBJECTIONS = Objections()


class Session:
    """What actions and plugins work with. `now` is Unix seconds; `candidates` are the jobs that are not parked."""

    def __init__(
        self, cache: SchedulerCache, framework: Framework, configuration: SchedulerConfiguration, now: float
    ) -> None:
        self.cache = cache
        self.framework = framework
        self.configuration = configuration
        self.now = now
        self.candidates: list[JobInfo] = []
        self.bindings: list[Binding] = []
        self.evictions: list[Eviction] = []
        self.findings: dict[str, list[Reason]] = {}
        self.attempts: dict[object, Attempt] = {}
        self.surveys: dict[object, Attempt] = {}
        self.reserving: dict[str, JobInfo] = {}
        self.kept = KeptRoom(self)
        self.nominations: dict[str, Statement] = {}
        self.hunted: set[str] = set()
        self.hunting_has_begun = False
        self.late: set[str] = set()
        """Jobs admitted, or asked again, after an action that hunts: it has yet to look at them."""
        self.look_again = False
        self.holds = Holds(self)
        self._promises: list[tuple[TaskInfo, TaskStatus, str | None]] = []
        self._passing: dict[str, list[TaskInfo]] = {}
        self._possible: dict[int, bool] = {}
        self._most: dict[int, int] = {}
        self._usable: dict[tuple[frozenset[int], str], int] = {}
        self.lacking: set[Hashable] = set()
        self._remembers = False
        self._surveyed: dict[Hashable, Reason] = {}
        self._noted: dict[int, Objections] = {}
        self._noted_kinds: dict[Hashable, Objections] = {}

    # --- what actions do ---

    def statement(self) -> Statement:
        """A new list of undoable operations."""
        return Statement(self)

    def move(self, task: TaskInfo, status: TaskStatus, node: str | None) -> Reason | None:
        """Change a task's status and node, and tell the plugins that follow it; their objection, if any."""
        had, charged = task.node, task.status.charged
        self.cache.move(task, status, node)
        if not self.framework.follows_tasks or task.companion or charged is status.charged:
            return None
        if status.charged:
            return self.framework.allocated(self, task)
        self.framework.deallocated(self, task, had or "")
        return None

    def keep(self, statement: Statement, job: JobInfo) -> None:
        """Hold the statement's room for the job until the cycle ends, but decide nothing."""
        self.reserving[job.key] = job
        self.kept.note(job, statement.tasks)
        self._passing.setdefault(job.key, []).extend(statement.tasks)
        self._promises += statement.give_up_journal()

    def find(self, job: JobInfo, *reasons: Reason) -> None:
        """Something keeps the job waiting."""
        self.findings.setdefault(job.key, []).extend(reasons)

    def settle(self) -> None:
        """Bring promises up to date with what this cycle did; nobody is woken by it."""
        relief = self.cache.relief
        queues, cluster = set(relief.queues), relief.cluster
        self.cache.settle()
        relief.queues, relief.cluster = queues, cluster

    def fits_an_empty_node(self, shape: Shape) -> bool:
        """Whether some node, if nothing ran on it, would have the resources."""
        known = self._possible.get(shape.id)
        if known is None:
            makes = self.cache.index.makes.values()
            known = any(shape.init_request.less_equal(make.sample.allocatable) for make in makes)
            self._possible[shape.id] = known
        return known

    def most_of(self, shape: Shape) -> int:
        """How many pods of the shape the nodes could hold if nothing else ran."""
        known = self._most.get(shape.id)
        if known is None:
            known = self._most[shape.id] = most_of(self, shape)
        return known

    def usable(self, shapes: Mapping[int, Shape], dimension: str) -> int:
        """What the nodes have of it that some of these shapes (by id) may use."""
        key = (frozenset(shapes), dimension)
        known = self._usable.get(key)
        if known is None:
            known = self._usable[key] = usable(self, shapes.values(), dimension)
        return known

    def kind(self, shape: Shape) -> Hashable:
        """Equal for shapes for which the same nodes will do, now and until something is placed or given up."""
        return shape.id if shape.devices is None else (shape.stem, self.cache.devices.content(shape.devices))

    @contextmanager
    def room_only_shrinks(self) -> Iterator[None]:
        """What finds no node before anything of its gang is placed is not looked for again meanwhile.

        Not where room is held, which is lifted for some.
        """
        self._remembers = not self.cache.holds
        try:
            yield
        finally:
            self._remembers = False
            self.lacking.clear()

    def found_lacking(self, kind: Hashable) -> None:
        """No node will do for shapes of this kind."""
        if self._remembers:
            self.lacking.add(kind)

    def note_objections(self, shape: Shape) -> None:
        """Keep why no node will do for the shape, as it is now: with the gang's other members in their places."""
        if shape.plain or shape.id in self._noted:
            return
        kind = self.kind(shape)
        noted = self._noted_kinds.get(kind)
        if noted is None:
            check = self.framework.judge.check(shape, later=False)
            nodes = list(self.cache.index.nodes_that_fit(shape))
            why_not = {node.name: why for node in nodes if (why := check(node)) is not None}
            lacking = None if shape.devices is None else self.cache.devices.shortage(shape.devices, nodes)
            noted = self._noted_kinds[kind] = Objections(why_not, lacking)
        self._noted[shape.id] = noted

    def objections(self, shape: Shape) -> Objections:
        """Why nodes that have the resources were no place for the shape."""
        return self._noted.get(shape.id, _NO_OBJECTIONS)

    def survey_nodes(self, shape: Shape) -> Reason:
        """What the nodes lack for a task of this shape, as it was when first asked in this cycle."""
        key = (self.kind(shape), id(self.objections(shape)))
        known = self._surveyed.get(key)
        if known is None:
            known = self._surveyed[key] = survey_nodes(self, shape)
        return known

    def next_like(self, job: JobInfo, phase: Phase) -> JobInfo | None:
        """The parked job that follows one which was woken in this phase and has got what it waited for."""
        follower = self.cache.lot.next_like(job, phase)
        if follower is not None:
            self.cache.touch(follower)
            self.join([follower])
        return follower

    def join(self, jobs: Iterable[JobInfo]) -> None:
        """These are looked at from now on, in this cycle."""
        for job in jobs:
            job.wanting_nodes = {}
            self.candidates.append(job)
            if self.hunting_has_begun:
                self.late.add(job.key)

    # --- what statements do ---

    def bind(self, task: TaskInfo) -> None:
        """The task's place is decided. A placeholder just stays there."""
        job = task.job
        if job is None or task.node is None:
            return
        job.shape_key = None
        self.cache.note_company(task)
        if task.nominated != task.node:
            task.spoils = {}
            self.cache.give_room_up(task)
        task.nominated = None
        if task.companion:
            self.cache.move(task, TaskStatus.BOUND, task.node)
            return
        self.cache.move(task, TaskStatus.BINDING, task.node)
        task.assumed = True
        spec, delegate = task.spec, task.spec.delegation is not None
        if delegate:
            self.cache.delegate(task, self.now)
        volumes = () if delegate else self.cache.storage.ask(spec.scheduling.claims, self.cache.nodes[task.node])
        self.bindings.append(Binding(spec.uid, spec.namespace, spec.name, task.node, job.key, volumes, delegate))

    def reserve(self, task: TaskInfo, before: TaskStatus, node: str | None, *, lasting: bool) -> None:
        """A committed promise: kept until the session closes, a `lasting` one until the task is bound.

        What a gang was promised earlier in the session lasts with it: pods are evicted for the gang, not for one task.
        """
        self._promises.append((task, before, node))
        if task.job is None:
            return
        self.reserving[task.job.key] = task.job
        if not lasting:
            self.kept.note(task.job, [task])
            self._passing.setdefault(task.job.key, []).append(task)
            return
        for each in (*self._passing.pop(task.job.key, ()), task):
            nominate(self.cache, each, self.now)

    def evict(self, task: TaskInfo, before: TaskStatus, reason: str, by: str) -> None:
        """The pod is asked to leave."""
        job = task.job
        task.evicted = before
        self.cache.leaving.note(task, self.now)
        self.cache.free(task)
        if job is not None:
            job.shape_key = None
        spec = task.spec
        self.evictions.append(
            Eviction(spec.uid, spec.namespace, spec.name, task.node or "", job.key if job else "", reason, by)
        )

    # --- what plugins answer ---

    def job_key(self, job: JobInfo) -> tuple[Any, ...]:
        """Sorts jobs: smaller goes first."""
        return self.framework.job_key(self, job)

    def order_queues(self, left: QueueInfo, right: QueueInfo) -> int:
        """Negative when `left` goes first: by the plugins, then by age and name."""
        verdict = self.framework.compare_queues(self, left, right)
        if verdict:
            return verdict
        ours, theirs = left.age_order, right.age_order
        return (ours > theirs) - (ours < theirs)

    def sort_tasks(self, tasks: Iterable[TaskInfo]) -> list[TaskInfo]:
        """Tasks of a job, the first to be placed first."""
        keyed = sorted([(self.framework.task_key(self, task), task) for task in tasks], key=lambda entry: entry[0])
        if len({task.order[0] for _, task in keyed}) < 2:
            return [task for _, task in keyed]
        ranks = groupby(keyed, key=lambda entry: entry[0][:-1])
        return [task for _, rank in ranks for task in numbered_by_age([task for _, task in rank])]

    def job_ready(self, job: JobInfo) -> bool:
        """Whether the gang has its nodes: P1 holds whatever plugins are configured."""
        return job.is_ready() and self.framework.job_ready(self, job)

    def capped_levels(self, queue: QueueInfo) -> tuple[QueueInfo, ...]:
        """The queues whose caps bind what is placed in this one: itself, in a hierarchy also those above."""
        return queue.levels if self.framework.hierarchical else (queue,)

    def over_capability(
        self, queue: QueueInfo, request: Resources, *, later: bool = False
    ) -> tuple[QueueInfo, str] | None:
        """The first queue whose cap has no room for `request`, and the dimension (P2).

        `later` is when the pods that are leaving are gone; overdue ones stay.
        """
        for each in self.capped_levels(queue):
            standing = self.cache.leaving.staying_in(each) if later else None
            dimension = each.over_capability(request, standing=standing)
            if dimension is not None:
                return each, dimension
        return None

    def charge_of(self, task: TaskInfo) -> Resources:
        """What placing the task would add to its queue's account: its request, and devices where those count."""
        devices = task.shape.devices
        if devices is None or task.job is None or not self.cache.devices.counted:
            return task.request
        return task.request.plus(task.job.queue.claims.of_new(devices.claims))

    def charge_of_all(self, tasks: Iterable[TaskInfo]) -> Resources:
        """What placing all of these would add; a claim that they share counts once."""
        seen: set[str] = set()
        charge = Resources()
        for task in tasks:
            charge.add(task.request)
            devices = task.shape.devices
            if devices is not None and task.job is not None and self.cache.devices.counted:
                charge.add(task.job.queue.claims.of_new(key for key in devices.claims if key not in seen))
                seen.update(devices.claims)
        return charge

    def allocatable(self, queue: QueueInfo, request: Resources, *, later: bool = False) -> Reason | None:
        """The objection to giving the queue another `request`: its cap (P2), then the plugins'."""
        capped = self.over_capability(queue, request, later=later)
        if capped is not None:
            return capability_reason(*capped, request)
        return self.framework.allocatable(self, queue, request)

    # --- the end ---

    def pipelined(self) -> tuple[Pipelined, ...]:
        """The tasks that wait for room which is being freed, for themselves or for others of their gang."""
        found = [task for statement in self.nominations.values() for task in statement.tasks]
        found += [
            task for task, _, _ in self._promises if task.status is TaskStatus.PIPELINED or task.nominated is not None
        ]
        return tuple(
            Pipelined(task.uid, task.spec.namespace, task.spec.name, task.node or "", task.job.key if task.job else "")
            for task in found
            if not task.companion
        )

    def close(self) -> None:
        """Take back every promise, newest first."""
        for task, status, node in reversed(self._promises):
            self.move(task, status, node)
        self._promises = []
        for statement in self.nominations.values():
            statement.discard()
