"""The status of a RayCluster: what its pods and service amount to.

Pure, and quiet: as long as nothing has changed the result equals the status that is already stored, time stamps
included, so that comparing the two tells whether to write. Fields mean what they mean in KubeRay:

- `state` is `ready` while all pods that are wanted run and are ready, and no longer: then it is empty. With Ray's
  autoscaler, which adds and takes workers all the time, head and least workers are enough. It becomes `suspended` when
  a suspended cluster has no pod left, and is empty again once the cluster resumes.
- RayClusterProvisioned becomes True likewise, and stays so until the cluster has been suspended.
- Suspending is atomic: once begun it goes on until no pod is left, whatever the spec says meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from muster.api.raycluster import RayCluster
from muster.ray import labels, names
from muster.ray.cluster_conditions import ReplicaFailure, Suspension, conditions_of, suspension
from muster.ray.observed import Pod, Service
from muster.ray.pod_health import is_head, is_running, is_running_and_ready, is_terminating, is_worker
from muster.ray.resources import desired_resources

__all__ = ["ReplicaFailure", "Suspension", "cluster_status", "suspension"]

INT32_MAX = 2_147_483_647

Status = dict[str, Any]


def cluster_status(
    cluster: RayCluster,
    pods: Sequence[Pod],
    head_service: Service | None,
    *,
    now: datetime,
    failure: ReplicaFailure | None = None,
) -> Status:
    """The whole status, ready to be stored.

    `pods` are those that belong to the cluster, terminating ones included. `failure` is what went wrong with creating
    or deleting pods in this pass. Raises QuantityError when a template's resources can't be read.
    """
    old: Status = cluster.status.dump() if cluster.status else {}
    census = _Census.of(cluster, pods)
    # With the autoscaler it may be a worker beyond the least that can't be made.
    complete = census.serves and (failure is None or cluster.spec.autoscaling)
    new: Status = {
        **{key: value for key, value in old.items() if key not in ("reason", "lastUpdateTime")},
        **census.counts(cluster),
        **desired_resources(cluster),
        "head": _head(pods, head_service),
        "endpoints": _endpoints(head_service),
        "conditions": conditions_of(cluster, pods, now=now, complete=complete, failure=failure),
        "observedGeneration": cluster.metadata.generation,
    }
    if failure is not None:
        new["reason"] = failure.message
    state = _state(cluster, pods, complete, census)
    if state != old.get("state", ""):
        new["state"] = state
    if state and state != old.get("state"):
        new["stateTransitionTimes"] = {**(old.get("stateTransitionTimes") or {}), state: timestamp(now)}
    unchanged = new == {key: value for key, value in old.items() if key != "lastUpdateTime"}
    stored = old.get("lastUpdateTime")
    return {**new, "lastUpdateTime": stored if unchanged and stored else timestamp(now)}


def timestamp(moment: datetime) -> str:
    """A moment as the API server writes it: UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _state(cluster: RayCluster, pods: Sequence[Pod], complete: bool, census: _Census) -> str:
    """What has been `ready` stays so over a failure that costs it no pod, such as a surplus that can't be deleted."""
    where = suspension(cluster, pods)
    before = (cluster.status.state if cluster.status else None) or ""
    if where is Suspension.SUSPENDED:
        return "suspended"
    if where is Suspension.SUSPENDING:
        return before
    if complete:
        return "ready"
    # KubeRay has a cluster that resumes called suspended until it is ready.
    return "" if before == "suspended" or (before == "ready" and not census.serves) else before


@dataclass(frozen=True, slots=True)
class _Census:
    """How many pods there are and should be."""

    desired_workers: int
    available_workers: int
    ready_workers: int
    serves: bool

    @classmethod
    def of(cls, cluster: RayCluster, pods: Sequence[Pod]) -> _Census:
        desired = sum(group.desired_pods for group in cluster.spec.worker_groups)
        staying = [pod for pod in pods if not is_terminating(pod)]
        return cls(
            desired_workers=desired,
            available_workers=sum(is_worker(pod) and is_running(pod) for pod in pods),
            ready_workers=sum(is_worker(pod) and is_running_and_ready(pod) for pod in pods),
            serves=_least_serve(cluster, staying) if cluster.spec.autoscaling else _all_serve(staying, desired),
        )

    def counts(self, cluster: RayCluster) -> Status:
        groups = [group for group in cluster.spec.worker_groups if not group.suspend]
        return {
            "readyWorkerReplicas": self.ready_workers,
            "availableWorkerReplicas": self.available_workers,
            "desiredWorkerReplicas": self.desired_workers,
            "minWorkerReplicas": sum(group.minimum * group.hosts for group in groups),
            "maxWorkerReplicas": min(INT32_MAX, sum(group.maximum * group.hosts for group in groups)),
        }


def _all_serve(staying: Sequence[Pod], desired_workers: int) -> bool:
    """Whether there are one head and all workers, nobody else, and each is ready."""
    heads, workers = sum(map(is_head, staying)), sum(map(is_worker, staying))
    return heads == 1 and workers == desired_workers and all(map(is_running_and_ready, staying))


def _least_serve(cluster: RayCluster, staying: Sequence[Pod]) -> bool:
    """Whether the head and the least workers of each group are ready, whoever else is on the way."""
    heads = [pod for pod in staying if is_head(pod)]
    ready = Counter(pod.metadata.labels.get(labels.GROUP) for pod in staying if is_running_and_ready(pod))
    groups = [group for group in cluster.spec.worker_groups if not group.suspend]
    return (
        len(heads) == 1
        and is_running_and_ready(heads[0])
        and all(ready[names.label_value(group.group_name)] >= group.minimum * group.hosts for group in groups)
    )


def _head(pods: Sequence[Pod], service: Service | None) -> Status:
    heads = sorted((pod for pod in pods if is_head(pod)), key=is_terminating)
    pod_ip = (heads[0].status.pod_ip or "") if heads else ""
    known = {"podName": heads[0].metadata.name, "podIP": pod_ip} if heads else {}
    if service is not None:
        own = service.spec.cluster_ip
        known |= {"serviceName": service.metadata.name, "serviceIP": pod_ip if own in (None, "", "None") else own}
    return {key: value for key, value in known.items() if value}


def _endpoints(service: Service | None) -> dict[str, str]:
    """Named ports of the head service, and where each is found: on the nodes if there, else in the pod."""
    ports = service.spec.ports if service is not None else []
    return {port.name: str(port.node_port or port.target_port or port.port) for port in ports if port.name}
