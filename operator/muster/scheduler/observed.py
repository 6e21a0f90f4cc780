"""What a pod that the API server shows is for the scheduler, given what the scheduler has decided about it."""

from __future__ import annotations

from muster.scheduler.queue import DEFAULT
from muster.scheduler.specs import PodGroupSpec, TaskSpec, TaskStatus
from muster.scheduler.task import TaskInfo


def placement_in(spec: TaskSpec) -> tuple[TaskStatus, str | None]:
    """The spec's status and node, made to agree: who has a node is not Pending, who has none is not Bound."""
    if spec.status.finished:
        return spec.status, None
    if spec.node is None:
        return (TaskStatus.RELEASING if spec.status is TaskStatus.RELEASING else TaskStatus.PENDING), None
    return (TaskStatus.BOUND if spec.status is TaskStatus.PENDING else spec.status), spec.node


def what_stands(old: TaskInfo, new: TaskInfo, status: TaskStatus, node: str | None) -> tuple[TaskStatus, str | None]:
    """What the pod is, given what we have decided and the API server may not show yet."""
    new.verdict = old.verdict
    astray = status is TaskStatus.PENDING and new.pinned
    new.assumed = old.assumed and node is None and not status.finished and not astray
    place = old.node if new.assumed else node
    alive = (TaskStatus.PENDING, TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING)
    if old.evicted is not None and status in alive:
        new.evicted = old.evicted if status is TaskStatus.PENDING else status
        return TaskStatus.RELEASING, place
    if new.assumed and status is TaskStatus.PENDING:
        return TaskStatus.BINDING, place
    return status, place


def group_of_one(spec: TaskSpec, key: str) -> PodGroupSpec:
    """The PodGroup that a pod without one would get (nothing is written)."""
    return PodGroupSpec(
        namespace=spec.namespace,
        name=key.partition("/")[2],
        uid=spec.uid,
        min_member=1,
        min_resources=spec.request.without_pods(),
        queue=spec.queue or DEFAULT,
        priority_class=spec.priority_class,
        creation=spec.creation,
    )
