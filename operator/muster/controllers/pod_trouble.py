"""Why a pod that has its place does not get to run: its image can't be pulled, a container ends again and again.

Pure. kubelets try without end, each time with a longer pause and another wait reason; what is told here stays the same
over their tries. `hopeless_from` says from when on it counts as what does not heal by itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from muster.controllers.clock import seconds_of
from muster.kube.objects import Pod
from muster.kube.pod_objects import ContainerStatus
from muster.ray import labels
from muster.ray.pod_health import is_terminating
from muster.ray.submitter import CONTAINER

IMAGE_PULL: Final = "ImagePullBackOff"
CRASH_LOOP: Final = "CrashLoopBackOff"

_PULLING: Final = frozenset({"ErrImagePull", IMAGE_PULL, "RegistryUnavailable", "ImageInspectError"})
_AT_ONCE: Final = frozenset({"InvalidImageName", "ErrImageNeverPull"})
_NOT_MADE: Final = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})
SEEN_CRASHING: Final = 2
HOPELESS_CRASHES: Final = 3
_PATIENCE: Final = 30.0
"""Seconds in which a kubelet has tried three times to pull an image."""
_ROLES: Final = {labels.HEAD: "Head", labels.WORKER: "Worker"}


@dataclass(frozen=True, slots=True)
class Trouble:
    """`reason` is the kubelet's word, `detail` its message; `hopeless_from` is Unix seconds, infinite for not yet."""

    pod: str
    role: str
    container: str
    reason: str
    detail: str
    hopeless_from: float
    ended: bool = False
    """The kubelet does not start it again: another pod takes its place, and may do better."""

    @property
    def stem(self) -> str:
        """The part of the sentence that stays the same over the kubelet's tries."""
        verb = "keeps ending" if self.reason == CRASH_LOOP else "has ended" if self.ended else "can't start"
        return f"{self.role} pod {self.pod}: container {self.container} {verb}: {self.reason}"

    @property
    def sentence(self) -> str:
        """What to tell the user."""
        return f"{self.stem}: {self.detail}" if self.detail else self.stem


def trouble_of(pod: Pod) -> Trouble | None:
    """The pod's trouble, that of its first container which has any."""
    if is_terminating(pod):
        return None
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        reason = _reason(status)
        ended = _ended_for_good(pod, status) if reason is None else None
        if reason is not None or ended is not None:
            reason = reason or ended or ""
            role = _ROLES.get(pod.metadata.labels.get(labels.NODE_TYPE, ""), "Submitter")
            hopeless = _hopeless_from(pod, status, reason)
            detail = _detail(status, reason)
            return Trouble(pod.metadata.name, role, status.name, reason, detail, hopeless, ended is not None)
    return None


def mark(pod: Pod | None) -> tuple[str, str, bool] | None:
    """What of the pod's trouble is worth a look at its job when it changes."""
    found = trouble_of(pod) if pod is not None else None
    return None if found is None else (found.container, found.reason, found.hopeless_from < math.inf)


def _reason(status: ContainerStatus) -> str | None:
    waits = status.state.waiting.reason if status.state.waiting is not None else None
    if waits in _PULLING:
        return IMAGE_PULL
    if waits in _AT_ONCE or waits in _NOT_MADE:
        return waits
    ended = status.state.terminated or status.last_state.terminated
    crashed = ended is not None and ended.exit_code != 0 and status.restart_count >= SEEN_CRASHING
    return CRASH_LOOP if waits == CRASH_LOOP or (crashed and not status.ready) else None


def _ended_for_good(pod: Pod, status: ContainerStatus) -> str | None:
    """Why a container has ended that is not started again; how a submitter ended is told by the job itself."""
    ended = status.state.terminated
    if pod.spec.restart_policy != "Never" or ended is None or ended.exit_code == 0 or status.name == CONTAINER:
        return None
    return ended.reason or "Error"


def _detail(status: ContainerStatus, reason: str) -> str:
    ended = status.state.terminated or status.last_state.terminated
    if ended is not None and (reason == CRASH_LOOP or status.state.terminated is not None):
        return f"exit code {ended.exit_code}" + (f" ({ended.reason})" if ended.reason not in (None, reason) else "")
    return (status.state.waiting.message if status.state.waiting is not None else None) or ""


def _hopeless_from(pod: Pod, status: ContainerStatus, reason: str) -> float:
    if reason in _AT_ONCE:
        return 0.0
    if status.state.terminated is not None and reason != CRASH_LOOP:
        return math.inf
    if reason == CRASH_LOOP:
        return 0.0 if status.restart_count >= HOPELESS_CRASHES else math.inf
    began = seconds_of(pod.status.start_time) or seconds_of(pod.metadata.creation_timestamp) or 0.0
    return max(began, *_ends(pod)) + _PATIENCE


def _ends(pod: Pod) -> list[float]:
    """When containers of the pod ended (Unix seconds, 0 first). The next one's image was not needed before that."""
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    states = [state.terminated for status in statuses for state in (status.state, status.last_state)]
    return [0.0, *(seconds_of(ended.finished_at) or 0.0 for ended in states if ended is not None)]
