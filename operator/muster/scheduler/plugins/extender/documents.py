"""What an extender is shown: tasks, nodes, jobs and queues as Volcano writes its own.

Volcano sends its Go structs as they are, so the names here are those of their fields, and numbers are in its units:
milli-CPU, bytes, thousandths of scalars, whole pods, statuses as bits. A field that the scheduler knows nothing of is
left out (Go reads it as its zero), and of the Kubernetes objects behind them (`Pod`, `Node`, `PodGroup`, `Queue`) there
is only what a decision reads. docs/extender.md lists both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from muster.scheduler.resources import PODS, Resources, format_amount
from muster.scheduler.specs import DisruptionBudget, NodeUsage, Portion, TaskStatus

if TYPE_CHECKING:
    from muster.scheduler.cache import SchedulerCache
    from muster.scheduler.job import JobInfo
    from muster.scheduler.node import NodeInfo
    from muster.scheduler.queue import QueueInfo
    from muster.scheduler.task import TaskInfo

Document = dict[str, Any]
Shown = Callable[["TaskInfo"], Document]

ZONE_LABEL = "volcano.sh/revocable-zone"
_READY, _NOT_READY = 1, 2
_NANOSECONDS = 10**9
_PHASES = {
    TaskStatus.RUNNING: "Running",
    TaskStatus.RELEASING: "Running",
    TaskStatus.SUCCEEDED: "Succeeded",
    TaskStatus.FAILED: "Failed",
    TaskStatus.UNKNOWN: "Unknown",
}


def task_document(task: TaskInfo, node: str | None = None) -> Document:
    """A TaskInfo; `node` stands in for that of a task which has just lost it."""
    spec = task.spec
    return {
        "UID": spec.uid,
        "Job": task.job.key if task.job is not None else spec.job,
        "Name": spec.name,
        "Namespace": spec.namespace,
        "TaskRole": spec.role,
        "Resreq": resource(spec.request),
        "InitResreq": resource(task.shape.init_request),
        "NodeName": node or task.node or "",
        "Status": status_bit(task.status),
        "Priority": spec.priority,
        "Preemptable": spec.preemptable,
        "BestEffort": task.best_effort,
        "SchGated": spec.gated,
        "RevocableZone": "*" if task.shape.scheduling.revocable else "",
        "Pod": _pod(task),
    }


def _pod(task: TaskInfo) -> Document:
    spec = task.spec
    return {
        "metadata": {
            "name": spec.name,
            "namespace": spec.namespace,
            "uid": spec.uid,
            "labels": dict(spec.labels),
            "creationTimestamp": rfc3339(spec.creation),
        },
        "spec": {
            "nodeName": spec.node or "",
            "nodeSelector": dict(spec.scheduling.node_selector),
            "priority": spec.priority,
            "priorityClassName": spec.priority_class,
        },
        "status": {"phase": _PHASES.get(spec.status, "Pending")},
    }


def node_document(node: NodeInfo, shown: Shown = task_document) -> Document:
    """A NodeInfo with the tasks on it, as they are `shown`."""
    spec = node.spec
    return {
        "Name": node.name,
        "Node": _node(node),
        "State": {"Phase": _READY if spec is not None and spec.ready else _NOT_READY, "Reason": ""},
        "Releasing": resource(node.releasing),
        "Pipelined": resource(node.pipelined),
        "Idle": resource(node.idle),
        "Used": resource(node.used),
        "Allocatable": resource(node.allocatable),
        "ResourceUsage": _usage(node.usage),
        "Tasks": {task.key: shown(task) for task in node.tasks.values() if _is_a_pod(task)},
        "RevocableZone": node.labels.get(ZONE_LABEL, ""),
    }


def _is_a_pod(task: TaskInfo) -> bool:
    """Not what merely keeps room: for a pod to come, or for a gang that has waited long. `Used` counts that too."""
    return not task.companion and bool(task.spec.name)


def _node(node: NodeInfo) -> Document:
    spec = node.spec
    taints = [{"key": each.key, "value": each.value, "effect": each.effect} for each in spec.taints] if spec else []
    return {
        "metadata": {"name": node.name, "labels": dict(node.labels)},
        "spec": {"unschedulable": spec is not None and spec.unschedulable, "taints": taints},
        "status": {
            "allocatable": quantities(node.allocatable),
            "conditions": [{"type": "Ready", "status": "True" if spec is not None and spec.ready else "False"}],
        },
    }


def _usage(usage: NodeUsage | None) -> Document:
    """Averages over ten minutes, which is how Volcano names them."""
    if usage is None:
        return {"CPUUsageAvg": {}, "MEMUsageAvg": {}}
    return {"CPUUsageAvg": {"10m": usage.cpu}, "MEMUsageAvg": {"10m": usage.memory}}


def job_document(job: JobInfo, shown: Shown = task_document) -> Document:
    """A JobInfo with its tasks as they are `shown`, twice as in Volcano: by uid, and by status and uid."""
    spec = job.spec
    namespace, _, name = job.key.partition("/")
    tasks = {task.uid: shown(task) for task in job.tasks.values()}
    by_status: dict[str, Document] = {}
    for uid, task in tasks.items():
        by_status.setdefault(str(task["Status"]), {})[uid] = task
    roles = dict(spec.min_task_member) if spec is not None else {}
    waiting = spec.sla_waiting_time if spec is not None else None
    return {
        "UID": job.key,
        "PgUID": spec.uid if spec is not None else "",
        "Name": name,
        "Namespace": namespace,
        "Queue": job.queue.name,
        "Priority": job.priority,
        "MinAvailable": job.min_member,
        "WaitingTime": None if waiting is None else round(waiting * _NANOSECONDS),
        "TaskStatusIndex": by_status,
        "Tasks": tasks,
        "TaskMinAvailable": roles,
        "TaskMinAvailableTotal": sum(roles.values()),
        "Allocated": resource(job.allocated),
        "TotalRequest": resource(job.requested),
        "CreationTimestamp": rfc3339(spec.creation) if spec is not None else None,
        "PodGroup": _pod_group(job),
        "Preemptable": spec is not None and bool(spec.preemptable),
        "Budget": _budget(spec.budget) if spec is not None else None,
    }


def _pod_group(job: JobInfo) -> Document | None:
    """Volcano's internal PodGroup: its metadata stands at the top, and only that has lower-case names."""
    spec = job.spec
    if spec is None:
        return None
    minimum = spec.min_resources
    return {
        "name": spec.name,
        "namespace": spec.namespace,
        "uid": spec.uid,
        "creationTimestamp": rfc3339(spec.creation),
        "Spec": {
            "MinMember": spec.min_member,
            "MinTaskMember": dict(spec.min_task_member),
            "Queue": spec.queue,
            "PriorityClassName": spec.priority_class,
            "MinResources": quantities(minimum) if minimum is not None else None,
        },
        "Status": {"Phase": job.phase.value},
        "Version": "v1beta1",
    }


def _budget(budget: DisruptionBudget | None) -> Document | None:
    if budget is None:
        return None
    return {"MinAvailable": _portion(budget.min_available), "MaxUnavailable": _portion(budget.max_unavailable)}


def _portion(portion: Portion | None) -> str:
    if portion is None:
        return ""
    return f"{portion.amount}%" if portion.percent else str(portion.amount)


def queue_document(queue: QueueInfo) -> Document:
    """A QueueInfo. `Allocated` is what the queue and those below it use at this moment, not what its status says."""
    spec = queue.spec
    if spec is None:
        return {"UID": queue.name, "Name": queue.name, "Scope": "cluster"}
    allocated = quantities(queue.subtree.allocated)
    guarantee = {"resource": quantities(spec.guarantee)}
    common = {"Weight": spec.weight, "Capability": quantities(spec.capability)}
    rest = {"parent": spec.parent, "deserved": quantities(spec.deserved), "priority": spec.priority}
    return {
        "UID": queue.name,
        "Name": queue.name,
        "Scope": "cluster",
        "CreationTimestamp": rfc3339(spec.creation),
        "Parent": spec.parent,
        "Weights": "/".join(f"{weight:g}" for weight in spec.hierarchy_weights),
        "Hierarchy": "/".join(spec.hierarchy),
        **common,
        "Guarantee": guarantee,
        "Deserved": rest["deserved"],
        "ReclaimableFlag": spec.reclaimable,
        "Priority": spec.priority,
        "State": spec.state.value,
        "Allocated": allocated,
        "Queue": {
            "name": queue.name,
            "creationTimestamp": rfc3339(spec.creation),
            "Spec": {**common, "Reclaimable": spec.reclaimable, "guarantee": guarantee, **rest},
            "Status": {"State": spec.state.value, "Allocated": allocated},
        },
    }


def cluster_document(cache: SchedulerCache) -> Document:
    """What is told when a cycle begins: all of it."""
    tasks = {uid: task_document(task) for uid, task in cache.tasks.items()}

    def shown(task: TaskInfo) -> Document:
        return tasks[task.uid]

    nodes = {name: node_document(node, shown) for name, node in cache.nodes.items() if node.spec is not None}
    return {
        "Jobs": {key: job_document(job, shown) for key, job in cache.jobs.items()},
        "Nodes": nodes,
        "Queues": {name: queue_document(queue) for name, queue in cache.queues.items() if queue.spec is not None},
        "NamespaceInfo": {},
        "RevocableNodes": {name: node for name, node in nodes.items() if node["RevocableZone"]},
        "NodeList": None,
    }


def resource(amounts: Resources) -> Document:
    """A Resource; `pods` is both a scalar and MaxTaskNum."""
    return {
        "MilliCPU": amounts.milli_cpu,
        "Memory": amounts.memory,
        "ScalarResources": dict(amounts.scalars),
        "MaxTaskNum": amounts.get(PODS),
    }


def quantities(amounts: Resources) -> Mapping[str, str]:
    """A ResourceList as Kubernetes writes it, without what is zero."""
    return {name: format_amount(name, amounts.get(name)) for name in amounts.dimensions() if amounts.get(name)}


def status_bit(status: TaskStatus) -> int:
    """Volcano numbers the statuses by bits, in the order that they have here."""
    return 1 << status.index


def rfc3339(seconds: float) -> str | None:
    """A time as Kubernetes writes it; null where none is known."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if seconds else None
