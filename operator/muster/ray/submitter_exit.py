"""What the exit status of `muster submit` says.

The Kubernetes Job acts on it: a verdict of Ray's ends the Job, anything else is tried again. Standard library only,
because the submitter's small pod uses it too.
"""

from __future__ import annotations

from enum import IntEnum


class SubmitterExit(IntEnum):
    """Why the submitter ended; 128 and more are signals, as in a shell."""

    SUCCEEDED = 0
    JOB_FAILED = 1
    """Ray's verdict is in and it is not SUCCEEDED, or Ray has lost the job: trying again can't change that."""
    BAD_USAGE = 2
    NOT_SUBMITTED = 3
    LOST_CONTACT = 4
    """The job was running when it was last heard of."""
    DEFECT = 5
    """Something unforeseen went wrong in the submitter itself. Python would say 1, which is kept for verdicts."""
