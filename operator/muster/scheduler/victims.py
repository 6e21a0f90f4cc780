"""Candidates for eviction: where they are, in which order they go, and whether they are enough.

The order is Volcano's. Within a queue the job that comes last in the order of jobs loses its pods first, of jobs that
no plugin tells apart, and within a job, the task that comes last. Between queues the plugins say which one loses first
to the queue that takes; else it is the one that comes last in the order of queues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any

from muster.scheduler.placement import fits
from muster.scheduler.specs import TaskStatus

if TYPE_CHECKING:
    from muster.scheduler.job import JobInfo
    from muster.scheduler.node import NodeInfo
    from muster.scheduler.queue import QueueInfo
    from muster.scheduler.session import Session
    from muster.scheduler.task import TaskInfo

PREEMPTABLE = (TaskStatus.BOUND, TaskStatus.RUNNING)
RECLAIMABLE = (TaskStatus.RUNNING,)
Pool = dict[str, list["TaskInfo"]]
"""Pods that might be evicted, by the node that they are on."""


def pool_of(queues: Iterable[QueueInfo], statuses: tuple[TaskStatus, ...]) -> Pool:
    """Our pods of these queues that have such a status and may be evicted at all."""
    pool: Pool = {}
    for queue in queues:
        for job in queue.jobs.values():
            for task in job.tasks.values():
                spec = task.spec
                if task.status in statuses and task.node is not None and spec.ours and spec.preemptable:
                    pool.setdefault(task.node, []).append(task)
    return pool


def in_order(session: Session, preemptor: JobInfo, candidates: Sequence[TaskInfo]) -> list[TaskInfo]:
    """The candidates, the first to go first."""
    if len(candidates) < 2:
        return list(candidates)
    framework = session.framework
    ranks: dict[str, tuple[Any, ...]] = {}
    by_queue: dict[str, list[tuple[Any, TaskInfo]]] = {}
    queues: dict[str, QueueInfo] = {}
    for task in candidates:
        job = task.job
        if job is None:
            continue
        if job.key not in ranks:
            ranks[job.key] = framework.job_rank(session, job)
        queues[job.queue.name] = job.queue
        key = (ranks[job.key], framework.task_key(session, task))
        by_queue.setdefault(job.queue.name, []).append((key, task))
    ordered: list[TaskInfo] = []
    for queue in sorted(queues.values(), key=victim_queue_key(session, preemptor.queue)):
        ordered += [task for _, task in sorted(by_queue[queue.name], key=lambda entry: entry[0], reverse=True)]
    return ordered


def victim_queue_key(session: Session, taker: QueueInfo) -> Callable[[QueueInfo], Any]:
    """Sorts queues: the first is to lose its pods first."""

    def compare(left: QueueInfo, right: QueueInfo) -> int:
        verdict = session.framework.compare_victim_queues(session, left, right, taker)
        return verdict or session.order_queues(right, left)

    return cmp_to_key(compare)


def are_enough(preemptor: TaskInfo, node: NodeInfo, victims: Iterable[TaskInfo]) -> bool:
    """Whether the preemptor fits on the node once leaving pods and the victims are gone (Volcano's ValidateVictims).

    No victims at all may be enough.
    """
    room = node.future_idle
    for victim in victims:
        room.add(victim.request)
    return fits(preemptor.shape, room)
