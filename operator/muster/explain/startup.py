"""What keeps a gang that has its nodes from running: images, init containers, crashes, a head that is not ready.

And kube-scheduler, where that has yet to bind its pods.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from muster.engine.delegation import DEFAULT_SCHEDULER, pinned_node
from muster.kube.objects import Condition, ContainerStatus, Pod
from muster.ray import labels
from muster.ray.pod_health import READY_TO_START, not_set_up

_STARTING = frozenset({"ContainerCreating", "PodInitializing"})
NOT_SET_UP = (
    "its volumes or its network are not set up yet: if it stays so, a ConfigMap, Secret or volume claim that it names "
    "may be missing"
)


@dataclass(frozen=True, slots=True)
class PodState:
    """One pod that does not work yet: where it is, and what it waits for."""

    pod: str
    node: str
    waits_for: str


def not_working(pods: Iterable[Pod]) -> list[PodState]:
    """The placed pods that are not ready, the head first, with what each of them waits for."""
    found = []
    for pod in sorted(pods, key=lambda each: (not _is_head(each), each.metadata.name)):
        node, waits_for = pod.spec.node_name or pinned_node(pod), what_it_waits_for(pod)
        if node is not None and waits_for is not None:
            found.append(PodState(pod.key, node, waits_for))
    return found


def what_it_waits_for(pod: Pod) -> str | None:
    """Why a placed pod is not ready; None for one that is, or that has done its work."""
    status = pod.status
    if status.phase == "Succeeded":
        return None
    if pod.metadata.deletion_timestamp is not None:
        return "it is being deleted"
    if status.phase == "Failed":
        return f"it has failed: {_words(status.reason, status.message) or 'no reason is given'}"
    if pod.spec.node_name is None:
        scheduled = _condition(pod, "PodScheduled")
        return f"{DEFAULT_SCHEDULER} has not bound it yet{_because(scheduled.message if scheduled else None)}"
    ready = _condition(pod, "Ready")
    if ready is not None and ready.status == "True":
        return None
    if status.phase == "Pending" and not_set_up(pod):
        return NOT_SET_UP
    for one, kind in [
        *((each, "init container") for each in status.init_container_statuses),
        *((each, "container") for each in status.container_statuses),
    ]:
        problem = _problem(pod, one, kind)
        if problem is not None:
            return problem
    if status.phase != "Running":
        return "the kubelet has not started it yet"
    if ready is None:
        return None
    who = "the head is not ready, so the workers wait" if _is_head(pod) else "its readiness probe does not succeed"
    return f"{who}{_because(ready.message)}"


def _condition(pod: Pod, kind: str) -> Condition | None:
    return next((each for each in pod.status.conditions if each.type == kind), None)


def _problem(pod: Pod, container: ContainerStatus, kind: str) -> str | None:
    name, state = f"{kind} {container.name}", container.state
    if state.waiting is not None:
        reason = state.waiting.reason or ""
        if reason in _STARTING:
            return f"{name} is being created{_what_for(pod)}" if kind == "container" else None
        return (
            f"{name} waits: {_words(reason, state.waiting.message) or 'no reason is given'}{_ended_before(container)}"
        )
    if state.terminated is not None and (kind == "container" or state.terminated.exit_code):
        return f"{name} has ended with status {state.terminated.exit_code}{_because(state.terminated.reason)}"
    if kind == "init container" and state.running is not None and not container.ready:
        return f"{name} is still at work"
    return None


def _what_for(pod: Pod) -> str:
    """Volumes and network are told apart from an image by a condition, which not every kubelet reports."""
    set_up = _condition(pod, READY_TO_START)
    if set_up is None:
        return " (its volumes or its network may not be set up yet, or its image is being pulled)"
    return " (its volumes and its network are there: its image is being pulled)"


def _ended_before(container: ContainerStatus) -> str:
    last = container.last_state.terminated
    if last is None:
        return ""
    return f" (it ended {container.restart_count} times, last with status {last.exit_code}{_because(last.reason)})"


def _words(reason: str | None, message: str | None) -> str:
    return ": ".join(part for part in (reason, message) if part)


def _because(text: str | None) -> str:
    return f": {text}" if text else ""


def _is_head(pod: Pod) -> bool:
    return pod.metadata.labels.get(labels.NODE_TYPE) == labels.HEAD
