"""Pods to the scheduler's tasks."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from muster.engine import wire_keys
from muster.engine.amounts import resources
from muster.engine.delegation import delegation_of, unpinned
from muster.engine.gates import held_by_others
from muster.engine.notes import stated_duration, stated_time
from muster.engine.pod_constraints import device_use, pod_constraints
from muster.engine.pod_requests import pod_requests
from muster.engine.times import unix_seconds
from muster.kube.objects import Pod
from muster.scheduler.constraints import PodConstraints
from muster.scheduler.plugins.arguments import duration
from muster.scheduler.specs import Delegation, PodVerdict, TaskSpec, TaskStatus

TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
"""The words that Go's strconv.ParseBool takes for true."""
_REFUSALS = frozenset({"NodeAffinity", "UnexpectedAdmissionError", "TopologyAffinityError", "Evicted", "NodeShutdown"})
_PHASES = {
    "Running": TaskStatus.RUNNING,
    "Succeeded": TaskStatus.SUCCEEDED,
    "Failed": TaskStatus.FAILED,
    "Unknown": TaskStatus.UNKNOWN,
}


def task_spec(pod: Pod, *, scheduler_names: Collection[str], gate: str) -> TaskSpec | None:
    """Translate a pod; None for one that the scheduler has no need to know.

    Ours are those that name us, and those that we decide about for the default scheduler to bind. Of others' pods only
    those matter that take room on a node. Raises TranslationError.
    """
    return _task_spec(pod, None, scheduler_names, gate)


def task_spec_again(
    pod: Pod, before: Pod, known: TaskSpec, *, scheduler_names: Collection[str], gate: str
) -> TaskSpec | None:
    """Translate a pod where `known` is what came of `before`: of this pod as it was, or of another one.

    The same as `task_spec`, in a quarter of the time where both ask for the same, and what they ask for is held once:
    on its way from its gate to its end a pod is seen five times and more, the pods of a Deployment are alike, and what
    a pod asks for is most of what there is to translate.
    """
    return _task_spec(pod, known if _asks_for_the_same(pod, before) else None, scheduler_names, gate)


def _asks_for_the_same(pod: Pod, before: Pod) -> bool:
    """Whether requests and constraints come out as before: nothing that they are made of has changed."""
    meta, old = pod.metadata, before.metadata
    if (meta.namespace, meta.labels, meta.annotations) != (old.namespace, old.labels, old.annotations):
        return False
    spec = pod.spec
    if meta.name != old.name and any(each.ephemeral is not None for each in spec.volumes):
        return False  # claims of its own are named after the pod
    if spec.resource_claims or wire_keys.DELEGATED_AT in meta.annotations:
        return False  # their status and the pin count too
    placed = msgspec.structs.replace(before.spec, scheduling_gates=spec.scheduling_gates, node_name=spec.node_name)
    return placed == spec


def _task_spec(pod: Pod, known: TaskSpec | None, scheduler_names: Collection[str], gate: str) -> TaskSpec | None:
    """Translate a pod; `known` asks for the same."""
    delegation = None if pod.spec.scheduler_name in scheduler_names else delegation_of(pod, gate)
    ours = delegation is not None or pod.spec.scheduler_name in scheduler_names
    status = task_status(pod)
    if not ours and (pod.spec.node_name is None or status in (TaskStatus.SUCCEEDED, TaskStatus.FAILED)):
        return None
    request = resources(pod_requests(pod.spec)) if known is None else known.request
    namespace = pod.metadata.namespace or ""
    group = pod.metadata.annotations.get(wire_keys.GROUP_NAME) if ours else None
    return TaskSpec(
        uid=pod.metadata.uid,
        namespace=namespace,
        name=pod.metadata.name,
        job=f"{namespace}/{group}" if group else "",
        role=_note(pod, wire_keys.TASK_SPEC),
        request=request,
        init_request=request,
        priority=task_priority(pod),
        creation=unix_seconds(pod.metadata.creation_timestamp),
        status=status,
        node=pod.spec.node_name,
        scheduling=_constraints(pod, delegation, ours=ours) if known is None else known.scheduling,
        labels=pod.metadata.labels,
        gated=held_by_others(pod, gate),
        preemptable=is_preemptable(pod),
        preemption_policy_never=pod.spec.preemption_policy == "Never",
        ours=ours,
        queue=_named_queue(pod, grouped=bool(group)),
        priority_class=pod.spec.priority_class_name or "",
        cooldown_until=cooldown_end(pod, status),
        verdict=verdict_shown(pod),
        expected_runtime=stated_duration(pod, wire_keys.EXPECTED_RUNTIME),
        started=stated_time(pod.status.start_time),
        lost=is_lost(pod),
        delegation=delegation,
    )


def _constraints(pod: Pod, delegation: Delegation | None, *, ours: bool) -> PodConstraints:
    return pod_constraints(
        unpinned(pod.spec, delegation.node) if delegation is not None and delegation.node else pod.spec,
        name=pod.metadata.name,
        namespace=pod.metadata.namespace or "",
        labels=pod.metadata.labels,
        revocable=is_revocable(pod),
        devices=device_use(pod, delegated=delegation is not None or not ours),
    )


def _named_queue(pod: Pod, *, grouped: bool) -> str:
    """The queue that the pod names: by the annotation, as a member of a gang also by the label of Volcano's jobs."""
    named = pod.metadata.annotations.get(wire_keys.QUEUE_NAME, "")
    return named or (pod.metadata.labels.get(wire_keys.QUEUE_LABEL, "") if grouped else "")


def task_status(pod: Pod) -> TaskStatus:
    """The status of a task by its pod's phase, node and deletion (Volcano's table)."""
    phase = _PHASES.get(pod.status.phase or "", TaskStatus.PENDING)
    if phase in (TaskStatus.RUNNING, TaskStatus.PENDING) and pod.metadata.deletion_timestamp is not None:
        return TaskStatus.RELEASING
    if phase is TaskStatus.PENDING and pod.spec.node_name is not None:
        return TaskStatus.BOUND
    return phase


def is_lost(pod: Pod) -> bool:
    """Whether the pod failed by no doing of its own: refused by the kubelet (OutOfcpu, …), or thrown off its node."""
    if pod.status.phase != "Failed":
        return False
    reason = pod.status.reason or ""
    disrupted = any(each.type == "DisruptionTarget" and each.status == "True" for each in pod.status.conditions)
    return disrupted or reason.startswith("OutOf") or reason in _REFUSALS


def task_priority(pod: Pod) -> int:
    """The priority among the tasks of a gang: annotation (a bad one is passed over), else the pod, else 1."""
    try:
        return int(pod.metadata.annotations[wire_keys.TASK_PRIORITY])
    except (KeyError, ValueError):
        return pod.spec.priority if pod.spec.priority is not None else 1


def is_preemptable(pod: Pod) -> bool:
    """Whether the pod may be evicted for others: annotation, else label, else yes. What is no truth value means no."""
    word = _note(pod, wire_keys.PREEMPTABLE)
    return word in TRUE if word else True


def is_revocable(pod: Pod) -> bool:
    """Whether the pod bears nodes of a revocable zone: it says so (`*`), or else that it may be preempted."""
    zone = pod.metadata.annotations.get(wire_keys.REVOCABLE_ZONE)
    return zone == "*" if zone is not None else pod.metadata.annotations.get(wire_keys.PREEMPTABLE) in TRUE


def cooldown_end(pod: Pod, status: TaskStatus) -> float | None:
    """Until when a running pod is not to be evicted for others: its start and the cooldown time that it states.

    The start is when it was bound; where nothing tells that, it is not before the pod was made.
    """
    text = pod.metadata.labels.get(wire_keys.COOLDOWN_TIME) or pod.metadata.annotations.get(wire_keys.COOLDOWN_TIME)
    if not text or status is not TaskStatus.RUNNING:
        return None
    try:
        cooldown = duration(text)
    except ValueError:
        return None
    bound = [each for each in pod.status.conditions if each.type == "PodScheduled" and each.status == "True"]
    start = bound[0].last_transition_time if bound else None
    return unix_seconds(start or pod.status.start_time or pod.metadata.creation_timestamp) + cooldown


def verdict_shown(pod: Pod) -> PodVerdict | None:
    """The `Unschedulable` and the nominated node that the pod carries, None when it carries neither."""
    nominated = pod.status.nominated_node_name or ""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False" and condition.reason == "Unschedulable":
            return PodVerdict("Pending", "Unschedulable", condition.message or "", nominated)
    return PodVerdict("Pending", "", "", nominated) if nominated else None


def _note(pod: Pod, key: str) -> str:
    """An annotation, or else the label of the same key."""
    return pod.metadata.annotations.get(key) or pod.metadata.labels.get(key) or ""
