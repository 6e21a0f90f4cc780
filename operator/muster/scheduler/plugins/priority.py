"""Higher priority first: jobs by their PriorityClass, tasks by their own priority."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from muster.scheduler.framework import ExtensionPoints, Plugin

if TYPE_CHECKING:
    from muster.scheduler.session import Session
    from muster.scheduler.task import TaskInfo


class Priority(Plugin):
    """Volcano's `priority`."""

    name: ClassVar[str] = "priority"

    def register(self, points: ExtensionPoints) -> None:
        """Orders jobs and tasks; a job that has members to place is starving; the lower makes room for the higher."""
        points.add("job_order", lambda _session, job: -job.priority)
        points.add("task_order", lambda _session, task: -task.spec.priority)
        points.add("job_starving", lambda _session, job: job.ready + job.waiting < job.members)
        points.add("preemptable", _lower)


def _lower(_session: Session, preemptor: TaskInfo, candidates: Sequence[TaskInfo]) -> list[TaskInfo]:
    """Of another job by the jobs' priorities, of the same job by the tasks'."""
    job = preemptor.job
    mine = job.priority if job is not None else 0
    return [
        task
        for task in candidates
        if task.job is not None
        and (task.spec.priority < preemptor.spec.priority if task.job is job else task.job.priority < mine)
    ]
