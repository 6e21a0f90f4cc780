"""The conditions of a RayCluster, and the steps of its suspension that they remember."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final

from muster.api.raycluster import RayCluster
from muster.ray.observed import Pod
from muster.ray.pod_health import condition, first_unready_container, is_head, is_terminating, not_set_up

HEAD_POD_READY: Final = "HeadPodReady"
PROVISIONED: Final = "RayClusterProvisioned"
REPLICA_FAILURE: Final = "ReplicaFailure"
SUSPENDING: Final = "RayClusterSuspending"
SUSPENDED: Final = "RayClusterSuspended"

NOT_SET_UP: Final = "volumes (of ConfigMaps, Secrets, claims) or network are not set up yet"
_BEFORE_START: Final = frozenset({"ContainerCreating", "PodInitializing"})

Condition = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ReplicaFailure:
    """Pods could not be created or deleted.

    `reason` is FailedDeleteAllPods, FailedDeleteHeadPod, FailedCreateHeadPod, FailedDeleteWorkerPod or
    FailedCreateWorkerPod; `message` is the error's text.
    """

    reason: str
    message: str


class Suspension(Enum):
    """Where a cluster stands between running and suspended."""

    NONE = "none"
    SUSPENDING = "suspending"
    """Pods are to be deleted, until none is left."""
    SUSPENDED = "suspended"


def suspension(cluster: RayCluster, pods: Sequence[Pod]) -> Suspension:
    """Where the cluster stands, from its spec, its stored conditions and the pods that are left.

    A suspended cluster resumes as soon as the spec no longer asks for suspension, by `false` or by leaving it out.
    """
    if cluster.spec.suspend or _holds(cluster, SUSPENDING):
        # Also for a pod that shows up late, made by a pass that did not know of the suspension yet.
        return Suspension.SUSPENDING if pods else Suspension.SUSPENDED
    return Suspension.NONE


def conditions_of(
    cluster: RayCluster,
    pods: Sequence[Pod],
    *,
    now: datetime,
    complete: bool,
    failure: ReplicaFailure | None,
) -> list[Condition]:
    """All conditions, stored ones updated in place and unknown ones kept.

    `complete` says that every wanted pod, and no other, runs and is ready.
    """
    where = suspension(cluster, pods)
    wanted = [_head_pod_ready(pods), _provisioned(cluster, where, complete), *_suspension_conditions(where)]
    if failure is not None:
        wanted.append(_condition(REPLICA_FAILURE, True, failure.reason, failure.message))
    stored = [entry.dump() for entry in (cluster.status.conditions or [] if cluster.status else [])]
    gone = {REPLICA_FAILURE} - {entry["type"] for entry in wanted}
    kept = {entry["type"]: entry for entry in stored if entry["type"] not in gone}
    merged = kept | {entry["type"]: _dated(entry, kept.get(entry["type"]), now) for entry in wanted}
    return list(merged.values())


def _head_pod_ready(pods: Sequence[Pod]) -> Condition:
    heads = sorted((pod for pod in pods if is_head(pod)), key=is_terminating)
    if not heads:
        return _condition(HEAD_POD_READY, False, "HeadPodNotFound", "Head Pod not found")
    ready = condition(heads[0].status.conditions, "Ready")
    if ready is None:
        return _condition(HEAD_POD_READY, False, "Unknown")
    if ready.status == "True":
        return _condition(HEAD_POD_READY, True, ready.reason or "HeadPodRunningAndReady", ready.message or "")
    reason, message = ready.reason or "Unknown", ready.message or ""
    cause = _why_not_ready(heads[0]) if reason == "ContainersNotReady" else None
    if cause is not None:
        reason, message = cause[0], "; ".join(part for part in (message, cause[1]) if part)
    return _condition(HEAD_POD_READY, False, reason, message)


def _why_not_ready(pod: Pod) -> tuple[str, str] | None:
    container = first_unready_container(pod)
    state = container and (container.state.waiting or container.state.terminated)
    if container is None or not state or not state.reason:
        return None
    if not state.message and state.reason in _BEFORE_START and not_set_up(pod):
        return state.reason, NOT_SET_UP
    return state.reason, f"{container.name}: {state.message}" if state.message else ""


def _provisioned(cluster: RayCluster, where: Suspension, complete: bool) -> Condition:
    latched = _holds(cluster, PROVISIONED) and where is not Suspension.SUSPENDED
    if latched or (complete and where is Suspension.NONE):
        return _condition(
            PROVISIONED, True, "AllPodRunningAndReadyFirstTime", "All Ray Pods are ready for the first time"
        )
    return _condition(PROVISIONED, False, "RayClusterPodsProvisioning", "RayCluster Pods are being provisioned")


def _suspension_conditions(where: Suspension) -> list[Condition]:
    """Both conditions, of a cluster that was never suspended too: one can wait for either."""
    return [
        _condition(SUSPENDING, where is Suspension.SUSPENDING, SUSPENDING),
        _condition(SUSPENDED, where is Suspension.SUSPENDED, SUSPENDED),
    ]


def _stored(cluster: RayCluster) -> list[Any]:
    return list(cluster.status.conditions or []) if cluster.status else []


def _holds(cluster: RayCluster, kind: str) -> bool:
    found = condition(_stored(cluster), kind)
    return found is not None and found.status == "True"


def _condition(kind: str, status: bool, reason: str, message: str = "") -> Condition:
    return {"type": kind, "status": str(status), "reason": reason, "message": message}


def _dated(new: Condition, old: Condition | None, now: datetime) -> Condition:
    """The condition with the time since when its status is what it is."""
    same = old is not None and old.get("status") == new["status"]
    since = old.get("lastTransitionTime") if old is not None and same else None
    return {**new, "lastTransitionTime": since or now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
