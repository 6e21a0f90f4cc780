"""The plugin: where the extender has a say, and the cycle around it.

A task that it is asked about is a shape of its own (`PodConstraints.individual`), for its opinion may depend on which
pod it is: no verdict is shared between pods, nor a refusal between gangs. Without a client (a simulation) the plugin
takes no part at all.

When the extender does not answer, each point does without it if it is `ignorable`, else says no. Volcano's does so too,
but at two points does the opposite of what it documents (docs/extender.md): `jobReady`, and a cycle whose
`onSessionOpen` failed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from muster.scheduler.extender_client import ExtenderClient
from muster.scheduler.framework import ExtensionPoints, Plugin
from muster.scheduler.plugins.extender.calls import Calls, Silence
from muster.scheduler.plugins.extender.documents import cluster_document
from muster.scheduler.plugins.extender.findings import Findings
from muster.scheduler.plugins.extender.job_points import JobPoints
from muster.scheduler.plugins.extender.options import ARGUMENTS, ExtenderOptions, Point
from muster.scheduler.plugins.extender.papers import written
from muster.scheduler.plugins.extender.task_points import TaskPoints

if TYPE_CHECKING:
    from muster.scheduler.cache import SchedulerCache
    from muster.scheduler.job import JobInfo
    from muster.scheduler.session import Session

_NODES = (Point.PREDICATE, Point.PRIORITIZE)
_TASKS = (*_NODES, Point.PREEMPTABLE, Point.RECLAIMABLE, Point.ALLOCATE, Point.DEALLOCATE)
_JOBS = (Point.JOB_ENQUEUEABLE, Point.JOB_READY)


class Extender(Plugin):
    """Volcano's `extender`."""

    name: ClassVar[str] = "extender"
    arguments: ClassVar = ARGUMENTS
    asks_outside: ClassVar[bool] = True

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._options = ExtenderOptions.of(arguments)
        self._findings = Findings()
        self._calls: Calls | None = None
        self._tasks: TaskPoints | None = None

    def connect(self, extenders: ExtenderClient) -> None:
        """There is somebody to ask."""
        self._calls = Calls(self._options, extenders)
        self._tasks = TaskPoints(self._options, self._calls, self._findings)

    def attach(self, cache: SchedulerCache) -> None:
        """Learn where tasks are found."""
        if self._tasks is not None:
            self._tasks.attach(cache)

    def register(self, points: ExtensionPoints) -> None:
        """Take part where the configuration names a verb."""
        calls, tasks = self._calls, self._tasks
        if calls is None or tasks is None:
            return
        jobs = JobPoints(calls, self._findings)
        for wanted, point, function in (
            ((*_TASKS, Point.JOB_READY), "outlooks", tasks.outlook),
            (_NODES, "hurdles", tasks.hurdle),
            ((Point.PREDICATE,), "checks", tasks.check),
            ((Point.PRIORITIZE,), "wishes", tasks.wish),
            ((Point.PREEMPTABLE,), "preemptable", tasks.evictable(Point.PREEMPTABLE)),
            ((Point.RECLAIMABLE,), "reclaimable", tasks.evictable(Point.RECLAIMABLE)),
            ((Point.ALLOCATE,), "allocated", tasks.allocated),
            ((Point.DEALLOCATE,), "deallocated", tasks.deallocated),
            ((Point.QUEUE_OVERUSED,), "overused", jobs.overused),
            ((Point.JOB_ENQUEUEABLE,), "job_enqueueable", jobs.enqueueable),
            ((Point.JOB_READY,), "job_ready", jobs.ready),
            (_JOBS, "kinds", _itself),
        ):
            if any(each in self._options.verbs for each in wanted):
                points.add(point, function)

    def on_cycle_start(self, session: Session) -> None:
        """Say that a cycle begins, and what the cluster is like."""
        if self._calls is None:
            return
        self._calls.begin(session.now)
        self._findings.begin()
        if Point.SESSION_OPEN in self._options.verbs:
            told = self._calls.tell(Point.SESSION_OPEN, lambda: written(cluster_document(session.cache)), _nothing)
            if isinstance(told, Silence):
                self._calls.shut(told)

    def on_session_close(self, session: Session) -> None:
        """Say why gangs wait."""
        self._findings.give_reasons(session)

    def on_cycle_end(self, session: Session) -> None:
        """Say that the cycle is over."""
        if self._calls is None or self._tasks is None:
            return
        if Point.SESSION_CLOSE in self._options.verbs:
            self._calls.tell(Point.SESSION_CLOSE, lambda: b"{}", _nothing)
        self._calls.end()
        self._tasks.end()
        self._findings.end(session, self._calls.next_chance)

    def job_deadline(self, session: Session, job: JobInfo) -> float | None:
        """When the extender is asked again about a gang that it refused, or could not be asked about."""
        if self._calls is None:
            return None
        return self._findings.deadline(job, session.now, self._calls.next_chance)


def _itself(job: JobInfo) -> str:
    """No two jobs are alike to the extender."""
    return job.key


def _nothing(_body: bytes) -> None:
    """What is answered is not looked at, nor does Volcano."""
