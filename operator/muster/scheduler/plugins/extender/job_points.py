"""What the extender is asked about jobs and queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.scheduler.plugins.extender import answers
from muster.scheduler.plugins.extender.calls import Calls, Silence
from muster.scheduler.plugins.extender.documents import job_document, queue_document
from muster.scheduler.plugins.extender.findings import Findings
from muster.scheduler.plugins.extender.options import Point
from muster.scheduler.plugins.extender.papers import written
from muster.scheduler.plugins.extender.refusals import refused

if TYPE_CHECKING:
    from muster.scheduler.extension_points import Vote
    from muster.scheduler.job import JobInfo
    from muster.scheduler.queue import QueueInfo
    from muster.scheduler.session import Session


class JobPoints:
    """The points that ask about one job, or queue, at a time."""

    def __init__(self, calls: Calls, findings: Findings) -> None:
        self._calls = calls
        self._findings = findings

    def enqueueable(self, _session: Session, job: JobInfo) -> Vote:
        """`jobEnqueueable`. Silence that may be ignored is a permit (Volcano's rule), not an abstention."""
        vote = self._calls.ask(Point.JOB_ENQUEUEABLE, lambda: _about(job), answers.vote, job.key)
        if isinstance(vote, Silence):
            reason = vote.reason
        elif vote < 0:
            reason = refused("it may not be admitted")
        else:
            return True if vote else None
        if reason is None:
            return True
        self._findings.plan(job, reason)
        return reason

    def ready(self, _session: Session, job: JobInfo) -> bool:
        """`jobReady`."""
        answer = self._calls.ask(Point.JOB_READY, lambda: _about(job), answers.ready, job.key)
        reason = answer.reason if isinstance(answer, Silence) else None
        if answer is False:
            reason = refused("it is not ready to run")
        self._findings.job(job, reason)
        return reason is None

    def overused(self, _session: Session, queue: QueueInfo) -> bool:
        """`queueOverused`."""
        answer = self._calls.ask(
            Point.QUEUE_OVERUSED, lambda: written({"queue": queue_document(queue)}), answers.overused, None
        )
        reason = answer.reason if isinstance(answer, Silence) else None
        if answer is True:
            reason = refused("it uses too much", queue=queue.name)
        if reason is not None:
            self._findings.queue(queue, reason)
        return reason is not None


def _about(job: JobInfo) -> bytes:
    return written({"job": job_document(job)})
