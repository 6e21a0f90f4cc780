"""Queues in turn, and in each the jobs in order: the loop that enqueue and allocate share."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any

from muster.scheduler.job import JobInfo
from muster.scheduler.queue import QueueInfo

if TYPE_CHECKING:
    from muster.scheduler.session import Session


class TurnOrder:
    """Pops the next queue, and from a queue its next job. What was popped comes back only by `push`.

    An order is looked up when a queue or job is pushed: meanwhile only what was popped can have changed. Where queues
    stand for branches of a tree, what one gets changes the place of its neighbours, too: then all are compared anew.
    """

    def __init__(self, session: Session, jobs: Iterable[JobInfo]) -> None:
        self._session = session
        self._jobs: dict[str, list[tuple[Any, JobInfo]]] = {}
        queues: dict[str, QueueInfo] = {}
        for job in jobs:
            queues[job.queue.name] = job.queue
            self._jobs.setdefault(job.queue.name, []).append((session.job_key(job), job))
        for waiting in self._jobs.values():
            heapify(waiting)
        self._queues = [_Turn(session, queue) for queue in queues.values()]
        heapify(self._queues)

    def next_queue(self) -> QueueInfo | None:
        """The queue whose turn it is."""
        if not self._queues:
            return None
        if self._session.framework.queues_share_branches:
            first = min(self._queues)
            self._queues.remove(first)
            return first.queue
        return heappop(self._queues).queue

    def next_job(self, queue: QueueInfo) -> JobInfo | None:
        """The queue's next job."""
        waiting = self._jobs[queue.name]
        return heappop(waiting)[1] if waiting else None

    def rest(self, queue: QueueInfo) -> list[JobInfo]:
        """All jobs of the queue that are left, in order."""
        return [job for _, job in sorted(self._jobs.pop(queue.name), key=lambda entry: entry[0])]

    def push_queue(self, queue: QueueInfo) -> None:
        """Let the queue have another turn."""
        heappush(self._queues, _Turn(self._session, queue))

    def push_job(self, job: JobInfo) -> None:
        """Let the job have another turn."""
        heappush(self._jobs[job.queue.name], (self._session.job_key(job), job))

    def join(self, job: JobInfo, at_turn: QueueInfo | None) -> None:
        """Let a job have turns that was not among the first ones. The queue `at_turn` is pushed again anyway."""
        self._jobs.setdefault(job.queue.name, [])
        self.push_job(job)
        if job.queue is not at_turn and all(turn.queue is not job.queue for turn in self._queues):
            self.push_queue(job.queue)


class _Turn:
    """A queue in the heap of queues."""

    __slots__ = ("_session", "queue")

    def __init__(self, session: Session, queue: QueueInfo) -> None:
        self._session = session
        self.queue = queue

    def __lt__(self, other: _Turn) -> bool:
        return self._session.order_queues(self.queue, other.queue) < 0
