"""A state that is none of ours: somebody wrote it, or a newer Muster. What it means nobody here knows, so nothing is
begun or ended for it; its user is told, and may delete the RayJob or suspend it.
"""

from __future__ import annotations

from typing import Final

from muster.api.rayjob import JobDeploymentStatus
from muster.controllers.rayjob.look import Look
from muster.controllers.runner import Requeue

UNKNOWN_STATE: Final = "UnknownJobDeploymentStatus"
"""Event."""
_STATES: Final = ", ".join(state.value for state in JobDeploymentStatus if state.value)


async def stand_still(look: Look) -> Requeue | None:
    """Say so, and do nothing until the job is suspended: that takes down what it has, whatever it was doing."""
    if look.job.spec.suspend and not look.problems_with("suspend"):
        await look.write(job_deployment_status=JobDeploymentStatus.SUSPENDING.value)
        return None
    message = (
        f'status.jobDeploymentStatus: "{look.state}" is none of the states that Muster knows ({_STATES}), so nothing '
        "is done for the RayJob; set spec.suspend to true, which takes down what it has, and then to false to begin "
        "anew, or delete it"
    )
    look.say("Warning", UNKNOWN_STATE, message, "Reconcile")
    return None
