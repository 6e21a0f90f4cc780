"""The submitter's Job can't make its pod: then the job does not come to Ray, and its gang waits for nothing.

Room in a quota may come. What else the API server refuses a pod for stays so until somebody changes something.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from muster.api.rayjob import JobStatus, SubmissionMode
from muster.controllers.clock import seconds_of
from muster.controllers.rayjob.look import Look
from muster.controllers.rayjob.submitter import find_submitter

SUBMITTER_POD_REFUSED: Final = "SubmitterPodRefused"
"""Event and `status.reason`."""

_QUOTA: Final = "exceeded quota"
_PATIENCE: Final = 30.0
"""Seconds in which a webhook that is being restarted is back."""


@dataclass(frozen=True, slots=True)
class RefusedSubmitter:
    """`pod` is the name of the Job, `why` what the API server says."""

    pod: str
    why: str
    made: float
    """When the Job was made, in Unix seconds."""
    role: str = "Submitter"
    reason: str = SUBMITTER_POD_REFUSED

    @property
    def stem(self) -> str:
        """The whole sentence: another cause is another sentence."""
        return self.sentence

    @property
    def sentence(self) -> str:
        """What to tell the user."""
        advice = (
            "make room in the quota, and it is made"
            if self._may_heal
            else "let the namespace take it, or correct spec.submitterPodTemplate, then suspend and resume the RayJob"
        )
        return f"The API server refuses the pod of the submitter's Job {self.pod}: {self.why}; {advice}"

    @property
    def hopeless_from(self) -> float:
        """Unix seconds."""
        return math.inf if self._may_heal else self.made + _PATIENCE

    @property
    def _may_heal(self) -> bool:
        return _QUOTA in self.why


async def refused_submitter(look: Look) -> RefusedSubmitter | None:
    """The trouble of a submitter whose job Ray does not have yet."""
    job = find_submitter(look) if look.job.spec.mode == SubmissionMode.K8S_JOB else None
    if job is None or look.ray_status is not JobStatus.NEW:
        return None
    why = await look.context.refused_pods.of(job)
    if why is None:
        return None
    return RefusedSubmitter(job.metadata.name, why, seconds_of(job.metadata.creation_timestamp) or 0.0)
