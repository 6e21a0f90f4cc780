"""Why a RayJob still initializes, in one sentence. Who may keep it waiting is asked in the order of the way it goes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from muster.kube.objects import PodGroup
from muster.ray.cluster_conditions import HEAD_POD_READY, REPLICA_FAILURE, SUSPENDED, SUSPENDING
from muster.ray.pod_health import condition

REASON_ANNOTATION = "muster.dev/reason"
_IS_SUSPENDED = (
    "The RayCluster is suspended: set spec.rayClusterSpec.suspend of the RayJob, or spec.suspend of its RayCluster, to "
    "false"
)
_NOT_MADE = "The RayCluster can't be brought about"
_WHAT_FAILS = {
    "FailedCreateHeadPod": "The RayCluster's head pod can't be made",
    "FailedCreateWorkerPod": "A worker pod of the RayCluster can't be made",
    "FailedDeleteHeadPod": "The RayCluster's head pod can't be deleted",
    "FailedDeleteWorkerPod": "A worker pod of the RayCluster can't be deleted",
    "FailedDeleteAllPods": "The RayCluster's pods can't be deleted",
}
_COUNT = re.compile(r"^\d+/\d+ tasks in gang unschedulable: ")
"""What Volcano's words in the condition begin with: it says once more that the gang waits."""
_WAITS = "The gang waits: "


def why_waiting(cluster_status: Mapping[str, Any], pod_group: PodGroup | None) -> str:
    """The sentence for `status.message`. It changes only when the cause does."""
    if any(_condition(cluster_status, kind).get("status") == "True" for kind in (SUSPENDING, SUSPENDED)):
        return _IS_SUSPENDED
    failure = _condition(cluster_status, REPLICA_FAILURE)
    if failure.get("status") == "True":
        what = _WHAT_FAILS.get(str(failure.get("reason")), _NOT_MADE)
        return f"{what}: {failure.get('message') or failure.get('reason')}"
    if pod_group is not None and (refusal := _unschedulable(pod_group)):
        return refusal
    if (
        pod_group is not None
        and pod_group.status.phase in (None, "", "Pending", "Inqueue")
        and _no_pod_runs(cluster_status)
    ):
        return "The gang waits for its place"
    return _pods(cluster_status)


def begins_to_wait(before: str | None, now: str | None) -> bool:
    """Whether of these sentences the second is the first that says why the scheduler has no place for the gang."""
    return (now or "").startswith(_WAITS) and not (before or "").startswith(_WAITS)


def _unschedulable(pod_group: PodGroup) -> str | None:
    found = condition(pod_group.status.conditions, "Unschedulable")
    if found is not None and found.status == "True" and found.message:
        return f"{_WAITS}{_COUNT.sub('', found.message)}"
    text = pod_group.metadata.annotations.get(REASON_ANNOTATION)
    return f"{_WAITS}{_message_in(text)}" if text else None


def _message_in(text: str) -> str:
    """The annotation's message: it is JSON with one, or plain text."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):  # anybody may have written it
        return text
    return str(document["message"]) if isinstance(document, dict) and document.get("message") else text


def _no_pod_runs(cluster_status: Mapping[str, Any]) -> bool:
    return not cluster_status.get("availableWorkerReplicas") and not (cluster_status.get("head") or {}).get("podIP")


def _pods(cluster_status: Mapping[str, Any]) -> str:
    head = _condition(cluster_status, HEAD_POD_READY)
    if head.get("status") != "True":
        details = ": ".join(part for part in (head.get("reason"), head.get("message")) if part)
        return f"The head pod is not ready ({details})" if details else "The head pod is not ready"
    ready, desired = cluster_status.get("readyWorkerReplicas") or 0, cluster_status.get("desiredWorkerReplicas") or 0
    return f"{ready} of {desired} workers are ready"


def _condition(cluster_status: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    conditions = cluster_status.get("conditions") or []
    return next((entry for entry in conditions if entry.get("type") == kind), {})
