"""Higher priority first: jobs by their PriorityClass, tasks by their own priority."""

from __future__ import annotations

from typing import ClassVar

from muster.scheduler.framework import ExtensionPoints, Plugin


class Priority(Plugin):
    """Volcano's `priority`."""

    name: ClassVar[str] = "priority"

    def register(self, points: ExtensionPoints) -> None:
        """Orders jobs and tasks; a job that has members to place is starving."""
        points.add("job_order", lambda _session, job: -job.priority)
        points.add("task_order", lambda _session, task: -task.spec.priority)
        points.add("job_starving", lambda _session, job: job.ready + job.waiting < job.members)
