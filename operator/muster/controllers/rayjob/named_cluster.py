"""The name of the cluster in the status: users may write the status, so it is looked at before it leads anywhere.

A job whose status names no possible cluster stays as it is, and what it holds too: nothing shows which cluster it runs
on, and another attempt might run the job a second time. Whoever puts the name back sees the job go on.
"""

from __future__ import annotations

import json
from typing import Final

from muster.api.errors import FieldProblem
from muster.api.rayjob import JobDeploymentStatus as State
from muster.controllers.rayjob.look import Look
from muster.ray.validation.metadata import is_subdomain

_WITHOUT_CLUSTER: Final = (State.NEW, State.SUSPENDED)
"""States that need no name: the next attempt chooses one."""
_WITH_MESSAGE_OF_THE_END: Final = (State.COMPLETE, State.FAILED)
_SHOWN: Final = 100


async def names_no_cluster(look: Look) -> bool:
    """Whether the status has a name that no RayCluster can have; that is told, and what to do."""
    problem = _problem(look)
    if problem is None:
        return False
    message = str(problem)
    look.say("Warning", "InvalidRayJobStatus", message, "Validate", subject=str(look.status.ray_cluster_name))
    if look.state not in _WITH_MESSAGE_OF_THE_END:
        await look.write(message=message)
    return True


def _problem(look: Look) -> FieldProblem | None:
    name = look.status.ray_cluster_name
    if look.state in _WITHOUT_CLUSTER or not name or is_subdomain(name):
        return None
    shown = json.dumps(name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…")
    return FieldProblem("status.rayClusterName", f"{shown} can't be the name of a RayCluster; {_advice(look)}")


def _advice(look: Look) -> str:
    """How to put the name back."""
    meta = look.job.metadata
    own = sorted(one.metadata.name for one in look.context.ray_clusters.owned_by(str(meta.namespace), str(meta.uid)))
    if not own:
        return "put back the name that was there, or delete the RayJob"
    patch = json.dumps({"status": {"rayClusterName": own[0]}}, separators=(",", ":"))
    which = own[0] if len(own) == 1 else f"one of {', '.join(own)}"
    command = f"kubectl patch rayjob {meta.name} --subresource=status --type=merge -p '{patch}'"
    return f"put back {which}, the RayJob's own: {command}"
