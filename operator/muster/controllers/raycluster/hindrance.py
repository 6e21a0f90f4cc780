"""What keeps a cluster from new pods: something that they need can't be made, or is not there.

All is tried in the order in which it is needed. A hindrance holds up new pods and nothing else: those that have to go
(fewer workers are wanted, a node is dead) go meanwhile. Where it is the gang that could not be sized the members that
run stay, or the gang would be short of its minimum and be rolled back; only pods on dead nodes go then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from muster.api.raycluster import RayCluster
from muster.controllers.children import NotOurs
from muster.controllers.context import Context
from muster.controllers.gang import QUEUE_CLOSED, closed_queue
from muster.controllers.raycluster.authentication import ensure_token
from muster.controllers.raycluster.autoscaler_access import AccountMissing, RoleOfAnother, ensure_autoscaler_access
from muster.controllers.raycluster.gang import ensure_gang, has_own_pod_group
from muster.controllers.raycluster.services import ensure_services
from muster.kube.errors import ApiError, Forbidden, Invalid
from muster.kube.objects import Pod
from muster.kube.resource import QUEUES
from muster.ray.cluster_conditions import ReplicaFailure
from muster.ray.gang import queue_name

_LOOK_AGAIN_SECONDS: Final = 10.0
"""How often to see whether a name that somebody else has got is free, or a Secret that was missing is there; what is
not watched is tried less often.
"""

_STATES_OF_AFFAIRS = (NotOurs, AccountMissing, RoleOfAnother, Invalid, Forbidden)


@dataclass(frozen=True, slots=True)
class Hindrance:
    """`reason` and `message` are for an event, `failure` is the reason of the condition ReplicaFailure.

    Looked at again after so many seconds (None: when something changes), or, with an `error`, as after any error.
    """

    reason: str
    message: str
    action: str = "Create"
    failure: str = "FailedCreateHeadPod"
    subject: str = ""
    look_again: float | None = _LOOK_AGAIN_SECONDS
    error: ApiError | None = None
    gang_is_sized: bool = True

    @property
    def replica_failure(self) -> ReplicaFailure:
        """For the status."""
        return ReplicaFailure(self.failure, self.message)


async def find_hindrance(context: Context, cluster: RayCluster, present: Sequence[Pod]) -> Hindrance | None:
    """Make all that pods need; what is in the way of that, if anything is. Raises ApiError for what may pass."""
    try:
        await ensure_gang(context, cluster)
    except _STATES_OF_AFFAIRS as found:
        return replace(_of(found), gang_is_sized=False)
    closed = _closed_queue(context, cluster)
    if closed is not None:
        return Hindrance(QUEUE_CLOSED, closed, "Validate", QUEUE_CLOSED, look_again=None)
    try:
        without_token = await ensure_token(context, cluster, present)
        if without_token is not None:
            return Hindrance("AuthTokenMissing", without_token, "Reconcile")
        await ensure_services(context, cluster)
        await ensure_autoscaler_access(context, cluster)
    except _STATES_OF_AFFAIRS as found:
        return _of(found)
    return None


def api_server_fails(error: ApiError) -> Hindrance:
    """What is told when it does so for longer than a moment. Where it failed is not known: the gang may be unsized."""
    message = f"The API server fails to give the RayCluster what it needs: {error}"
    return Hindrance("FailedToReconcile", message, "Reconcile", error=error, gang_is_sized=False)


def _of(found: NotOurs | AccountMissing | RoleOfAnother | Invalid | Forbidden) -> Hindrance:
    match found:
        case NotOurs():
            return Hindrance("NameTaken", str(found), subject=found.name)
        case AccountMissing():
            return Hindrance("AutoscalerServiceAccountNotFound", str(found))
        case RoleOfAnother():
            return Hindrance("RoleOfAnother", str(found))
        case Invalid() | Forbidden():
            message = f"The API server refuses what the RayCluster needs: {found.message}"
            return Hindrance("FailedToReconcile", message, "Reconcile", error=found)


def _closed_queue(context: Context, cluster: RayCluster) -> str | None:
    """Why no pod of a cluster that stands alone is made yet, its queue being closed; pods that exist stay."""
    if not has_own_pod_group(context, cluster) or context.pods_of(cluster):
        return None
    complaint = closed_queue(context, cluster)
    if complaint is not None:
        meta = cluster.metadata
        context.cluster_interests.add(f"{meta.namespace}/{meta.name}", QUEUES, str(queue_name(cluster)))
    return complaint
