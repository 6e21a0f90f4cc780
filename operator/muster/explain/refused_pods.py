"""A gang that lacks pods because they are refused: by what, in the API server's words.

The scheduler sees only that there are too few. What is in the way stands on the RayCluster, where whoever makes its
pods says so, and in the words of the RayJob.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from muster.explain.target import Kind, RayState, Target, group_of
from muster.kube.objects import Pod
from muster.ray.cluster_conditions import REPLICA_FAILURE
from muster.scheduler.reasons import Advice, Code

_WHOSE: Final = {"FailedCreateHeadPod": "its head pod", "FailedCreateWorkerPod": "a worker pod"}
_LACKS_PODS: Final = (Code.NOT_ENOUGH_PODS.value, Code.NOT_ENOUGH_PODS_OF_ROLE.value)
_IN_WORDS: Final = "pod can't be made: "
_BY_QUOTA: Final = "exceeded quota"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Which pod is refused, and in what words."""

    pod: str
    message: str


def find_refusal(key: str, clusters: Iterable[RayState], pods: Collection[Pod], ray: RayState | None) -> Refusal | None:
    """Why pods of the gang can't be made. `ray` is what is asked about, which may be all that there is to read."""
    for cluster in clusters:
        target = Target(Kind.RAY_CLUSTER, cluster.metadata.namespace or "", cluster.metadata.name)
        if group_of(target, pods, cluster) == key:
            found = _of_cluster(cluster.status)
            if found is not None:
                return found
    said = str(ray.status.get("message") or "") if ray is not None else ""
    _, refused, message = said.partition(_IN_WORDS)
    return Refusal("a pod", message) if refused else None


def _of_cluster(status: Mapping[str, Any]) -> Refusal | None:
    conditions = status.get("conditions")
    for each in conditions if isinstance(conditions, list) else ():
        if not isinstance(each, Mapping) or (each.get("type"), each.get("status")) != (REPLICA_FAILURE, "True"):
            continue
        whose = _WHOSE.get(str(each.get("reason")))
        return Refusal(whose, str(each.get("message") or each.get("reason"))) if whose else None
    return None


def with_refusal(reason: dict[str, Any], refusal: Refusal | None) -> dict[str, Any]:
    """The reason of a gang that lacks pods with what refuses them as its cause; another reason as it is."""
    if refusal is None or reason.get("code") not in _LACKS_PODS:
        return reason
    message = f"{reason.get('message')}: {refusal.pod} can't be made: {refusal.message}"
    caused = {**reason, "message": message, "refused": refusal.message}
    if _BY_QUOTA not in refusal.message:
        return {**caused, "advice": Advice.CHANGE.value}
    return {**caused, "code": Code.NAMESPACE_QUOTA.value, "class": Code.NAMESPACE_QUOTA.reason_class.value}
