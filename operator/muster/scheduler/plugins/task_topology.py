"""Brings roles of a job together on nodes, or keeps them apart.

The PodGroup says which roles belong together (`ps,worker`), which do not (`ps` alone: no two of it) and in what order
they are placed. From that the job's pods are sorted into buckets (`muster.scheduler.topology`), one bucket after the
other is placed, and a node is better the more of a pod's bucket is there already or still fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from muster.scheduler.constraints import PodConstraints, Seat
from muster.scheduler.framework import ExtensionPoints, Plugin
from muster.scheduler.judge import NodeWish
from muster.scheduler.node import NodeInfo
from muster.scheduler.plugins.arguments import integer
from muster.scheduler.task import Shape, TaskInfo
from muster.scheduler.topology import TaskBuckets

if TYPE_CHECKING:
    from muster.scheduler.job import JobInfo
    from muster.scheduler.queue import QueueInfo
    from muster.scheduler.session import Session

_MAX_SCORE = 100
_UNSORTED = (1, 0, 0, 0, 0)


class TaskTopologies(Plugin):
    """Volcano's `task-topology`."""

    name: ClassVar[str] = "task-topology"
    arguments: ClassVar = {"task-topology.weight": integer}

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._weight: int = arguments.get("task-topology.weight", 1)
        self._jobs: Mapping[str, JobInfo] = {}
        self._buckets: dict[str, TaskBuckets | None] = {}

    def register(self, points: ExtensionPoints) -> None:
        """Orders tasks bucket by bucket, and scores nodes for those whose job minds."""
        points.add("task_order", lambda _session, task: self._order(task))
        points.add("outlooks", _outlook)
        points.add("wishes", self._wish)

    def on_session_open(self, session: Session) -> None:
        """Buckets are filled anew in each cycle, for jobs that are asked about."""
        self._jobs = session.cache.jobs
        self._buckets.clear()

    def _buckets_of(self, job: JobInfo | None) -> TaskBuckets | None:
        """The job's buckets; None when it minds nothing, or names a role that it has no pod of (Volcano's rule)."""
        topology = job.spec.topology if job is not None and job.spec is not None else None
        if job is None or topology is None:
            return None
        if job.key not in self._buckets:
            missing = topology.roles() - {task.role for task in job.tasks.values()}
            self._buckets[job.key] = None if missing else TaskBuckets(topology, job.tasks.values())
        return self._buckets[job.key]

    def _order(self, task: TaskInfo) -> tuple[int, int, int, int, int]:
        buckets = self._buckets_of(task.job)
        return _UNSORTED if buckets is None else buckets.order(task)

    def _wish(self, shape: Shape, _later: bool) -> NodeWish | None:
        seat = shape.scheduling.seat
        job = self._jobs.get(seat.job) if seat is not None else None
        buckets = self._buckets_of(job)
        if job is None or buckets is None or not buckets.largest:
            return None
        waiting = [task for task in job.pending.values() if task.shape is shape and task.node is None]
        task = min(waiting, key=lambda each: (buckets.order(each), each.order), default=None)
        if task is None:
            return None
        return lambda nodes: self._scores(buckets, task, nodes)

    def _scores(self, buckets: TaskBuckets, task: TaskInfo, nodes: Sequence[NodeInfo]) -> list[int]:
        most = buckets.largest
        return [self._weight * _MAX_SCORE * points // most for points in buckets.scores(task, nodes)]


def _outlook(task: TaskInfo, _queues: Mapping[str, QueueInfo], constraints: PodConstraints) -> PodConstraints:
    """Pods of one role of a job that minds are a shape of their own: their place depends on the job's others."""
    job = task.job
    topology = job.spec.topology if job is not None and job.spec is not None else None
    if job is None or topology is None or task.role not in topology.roles():
        return constraints
    return replace(constraints, seat=Seat(job.key, task.role))
