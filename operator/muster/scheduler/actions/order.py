"""Queues in turn, and in each the jobs in order: the loop that enqueue and allocate share."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cmp_to_key
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any

from muster.scheduler.job import JobInfo
from muster.scheduler.queue import QueueInfo

if TYPE_CHECKING:
    from muster.scheduler.session import Session


class TurnOrder:
    """Pops the next queue, and from a queue its next job. What was popped comes back only by `push`.

    An order is looked up when a queue or job is pushed: meanwhile only what was popped can have changed.
    """

    def __init__(self, session: Session, jobs: Iterable[JobInfo]) -> None:
        self._session = session
        self._key = cmp_to_key(self._compare)
        self._jobs: dict[str, list[tuple[Any, JobInfo]]] = {}
        queues: dict[str, QueueInfo] = {}
        for job in jobs:
            queues[job.queue.name] = job.queue
            self._jobs.setdefault(job.queue.name, []).append((session.job_key(job), job))
        for waiting in self._jobs.values():
            heapify(waiting)
        self._queues = [self._key(queue) for queue in queues.values()]
        heapify(self._queues)

    def next_queue(self) -> QueueInfo | None:
        """The queue whose turn it is."""
        if not self._queues:
            return None
        queue: QueueInfo = heappop(self._queues).obj
        return queue

    def next_job(self, queue: QueueInfo) -> JobInfo | None:
        """The queue's next job."""
        waiting = self._jobs[queue.name]
        return heappop(waiting)[1] if waiting else None

    def rest(self, queue: QueueInfo) -> list[JobInfo]:
        """All jobs of the queue that are left, in order."""
        return [job for _, job in sorted(self._jobs.pop(queue.name), key=lambda entry: entry[0])]

    def push_queue(self, queue: QueueInfo) -> None:
        """Let the queue have another turn."""
        heappush(self._queues, self._key(queue))

    def push_job(self, job: JobInfo) -> None:
        """Let the job have another turn."""
        heappush(self._jobs[job.queue.name], (self._session.job_key(job), job))

    def _compare(self, left: QueueInfo, right: QueueInfo) -> int:
        verdict = self._session.framework.compare_queues(self._session, left, right)
        if verdict:
            return verdict
        ours, theirs = _age(left), _age(right)
        return (ours > theirs) - (ours < theirs)


def _age(queue: QueueInfo) -> tuple[float, str]:
    return (queue.spec.creation if queue.spec else 0.0, queue.name)
