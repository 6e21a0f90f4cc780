"""How a job comes to Ray: what its submitter does, a Job's pod or a container of the head."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class SubmitterState(Enum):
    """How far the submitter has come. Its end is never the verdict on the Ray job."""

    ABSENT = "absent"
    ACTIVE = "active"
    COMPLETE = "complete"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Submitter:
    """The submitter as it is; `why` says why it failed."""

    state: SubmitterState
    why: str = ""

    @property
    def ended(self) -> bool:
        """Whether it has finished one way or the other."""
        return self.state in (SubmitterState.COMPLETE, SubmitterState.FAILED)
