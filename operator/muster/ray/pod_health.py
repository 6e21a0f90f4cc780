"""What state a Ray pod is in, for the status of its cluster and for the decision to replace it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from muster.ray import labels
from muster.ray.observed import Condition, ContainerStatus, Pod

C = TypeVar("C", bound=Condition)
READY_TO_START = "PodReadyToStartContainers"
"""The kubelet's condition for volumes that are mounted and a network that is set up."""


def is_head(pod: Pod) -> bool:
    """Whether the pod's label says head."""
    return pod.metadata.labels.get(labels.NODE_TYPE) == labels.HEAD


def is_worker(pod: Pod) -> bool:
    """Whether the pod's label says worker."""
    return pod.metadata.labels.get(labels.NODE_TYPE) == labels.WORKER


def is_terminating(pod: Pod) -> bool:
    """Whether the pod is on its way out."""
    return pod.metadata.deletion_timestamp is not None


def is_running(pod: Pod) -> bool:
    """Whether the pod's phase is Running."""
    return pod.status.phase == "Running"


def is_running_and_ready(pod: Pod) -> bool:
    """Whether the pod runs and its readiness probes succeed."""
    ready = condition(pod.status.conditions, "Ready")
    return is_running(pod) and ready is not None and ready.status == "True"


def condition(conditions: Iterable[C], kind: str) -> C | None:
    """The condition of this type, if there."""
    return next((candidate for candidate in conditions if candidate.type == kind), None)


def not_set_up(pod: Pod) -> bool:
    """Whether its kubelet says that volumes or network are still missing, so that no image has been asked for yet."""
    found = condition(pod.status.conditions, READY_TO_START)
    return found is not None and found.status == "False"


def why_replace(pod: Pod) -> str | None:
    """Why this pod can't come back by itself and must be deleted so that another takes its place; None if it can.

    A pod that has ended is replaced whatever its restart policy; one whose Ray container has ended only when the
    kubelet will not start it again. Pending, unknown and crash-looping pods are left to the kubelet.
    """
    if pod.status.phase in ("Failed", "Succeeded"):
        return f"the pod has ended: {pod.status.phase}"
    ray = ray_container(pod)
    if not is_running(pod) or ray is None or ray.state.terminated is None or pod.spec.restart_policy != "Never":
        return None
    return f"container {ray.name} has ended and is not restarted: {ray.state.terminated.reason or 'no reason given'}"


def ray_container(pod: Pod) -> ContainerStatus | None:
    """The status of the pod's Ray container, found by name: statuses are in no fixed order."""
    containers = pod.spec.containers
    return _named(pod.status.container_statuses, containers[0].name) if containers else None


def first_unready_container(pod: Pod) -> ContainerStatus | None:
    """The first container, in the kubelet's order, that waits or has ended without being ready."""
    return next(
        (
            status
            for status in pod.status.container_statuses
            if not status.ready and (status.state.waiting or status.state.terminated)
        ),
        None,
    )


def _named(statuses: Sequence[ContainerStatus], name: str) -> ContainerStatus | None:
    return next((status for status in statuses if status.name == name), None)
