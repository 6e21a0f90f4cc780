"""Who waits on the extender's account in a cycle, for what reason, and when it is to be asked again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.scheduler.plugins.extender.retries import Retries
from muster.scheduler.reasons import Code
from muster.scheduler.specs import Phase, TaskStatus

if TYPE_CHECKING:
    from muster.scheduler.job import JobInfo
    from muster.scheduler.queue import QueueInfo
    from muster.scheduler.reasons import Reason
    from muster.scheduler.session import Session
    from muster.scheduler.task import TaskInfo


class Findings:
    """What the points found. Refused gangs are asked about later and later, those put off as soon as may be."""

    def __init__(self) -> None:
        self._retries = Retries()
        self._refused: set[str] = set()
        self._put_off: set[str] = set()
        self._tasks: dict[str, Reason] = {}
        self._jobs: dict[str, Reason] = {}
        self._queues: dict[str, Reason] = {}

    def begin(self) -> None:
        """A cycle begins."""
        for shelf in (self._refused, self._put_off, self._tasks, self._jobs, self._queues):
            shelf.clear()

    def refused(self, job: JobInfo | None) -> None:
        """Something was refused to the gang; its reason is given elsewhere."""
        if job is not None:
            self._refused.add(job.key)

    def task(self, task: TaskInfo, reason: Reason) -> None:
        """The task can't have a place."""
        self._tasks[task.uid] = reason
        self.plan(task.job, reason)

    def job(self, job: JobInfo, reason: Reason | None) -> None:
        """What the gang's readiness lacks now; None: nothing."""
        self._jobs.pop(job.key, None)
        if reason is not None:
            self._jobs[job.key] = reason
            self.plan(job, reason)

    def queue(self, queue: QueueInfo, reason: Reason) -> None:
        """The queue's gangs have to wait."""
        self._queues[queue.name] = reason

    def plan(self, job: JobInfo | None, reason: Reason) -> None:
        """Ask about the gang again when that makes sense for the reason."""
        if job is None:
            return
        if reason.code is not Code.EXTENDER_REFUSED:
            self._put_off.add(job.key)
        if reason.code is not Code.WAITING_FOR_TURN:
            self._refused.add(job.key)

    def give_reasons(self, session: Session) -> None:
        """Tell the session why gangs wait that still do."""
        for uid, reason in self._tasks.items():
            task = session.cache.tasks.get(uid)
            if task is None or task.job is None or task.status is not TaskStatus.PENDING:
                continue
            if reason.code is Code.WAITING_FOR_TURN:
                _drop_survey(session, task.job, task)
            session.find(task.job, reason)
        for key, reason in self._jobs.items():
            job = session.cache.jobs.get(key)
            if job is not None:
                session.find(job, reason)
        for job in session.candidates:
            of_queue = self._queues.get(job.queue.name)
            if of_queue is not None and job.pending and job.phase is not Phase.PENDING:
                session.find(job, of_queue)
                self.plan(job, of_queue)

    def end(self, session: Session, chance: float) -> None:
        """The cycle is over: who was refused has a time at which he is looked at again.

        That is later than `chance`, when something may be asked again at all: first it is the others' turn.
        """
        for key in self._refused:
            self._retries.refused(key, max(session.now, chance))
        for job in session.candidates:
            if job.key not in self._refused and job.key not in self._put_off:
                self._retries.forget(job.key)
        self._retries.keep(session.cache.jobs)

    def deadline(self, job: JobInfo, now: float, chance: float) -> float | None:
        """When to ask about the gang again, in the future."""
        put_off = job.key in self._put_off and chance > now
        at = chance if put_off else self._retries.at(job.key)
        if at is None or at <= now or (job.is_ready() and not job.pending):
            return None
        return at


def _drop_survey(session: Session, job: JobInfo, task: TaskInfo) -> None:
    """That no node was found says nothing of a task that could not be asked about on all of them."""
    found = session.findings.get(job.key, [])
    mistaken = (Code.NOT_ENOUGH_NODES, task.spec.name)
    session.findings[job.key] = [each for each in found if (each.code, each.member) != mistaken]
