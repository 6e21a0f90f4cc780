"""The states of a Ray job.

Apart from the models, and on the standard library alone, because the submitter's small pod has no room for pydantic.
"""

from __future__ import annotations

from enum import StrEnum


class JobStatus(StrEnum):
    """The Ray job as the Jobs API spells its states; NEW while Ray has not said anything yet."""

    NEW = ""
    PENDING = "PENDING"
    RUNNING = "RUNNING"
    STOPPED = "STOPPED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"

    @property
    def terminal(self) -> bool:
        """Whether the job has ended: this is the verdict, and it never changes again."""
        return self in (JobStatus.STOPPED, JobStatus.SUCCEEDED, JobStatus.FAILED)
