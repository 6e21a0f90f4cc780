# ruff: noqa: RUF012 - msgspec copies an empty default for each object; ruff knows its structs only by a base in the file
"""Kubernetes objects as they are read: typed, and holding only the fields that Muster looks at.

msgspec decodes straight from the wire into these, fast, and a wrong type is refused with its path. They are for
reading: a write sends a dict. Absent lists and maps read as empty ones, other absent fields as None; quantities stay as
they were written (see `muster.quantities`), times stay RFC 3339 text.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from muster.kube.object_base import (
    ApiObject,
    Condition,
    ObjectMeta,
    OwnerReference,
    Part,
    PartialObject,
    Quantities,
    controller_of,
)
from muster.kube.pod_objects import (
    Affinity,
    ClaimSource,
    Container,
    ContainerPort,
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    LabelSelector,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    PodStatus,
    PodVolume,
    PreferredTerm,
    ResourceRequirements,
    SchedulingGate,
    SelectorRequirement,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)

__all__ = [
    "Affinity",
    "ApiObject",
    "ClaimSource",
    "Condition",
    "Container",
    "ContainerPort",
    "ContainerState",
    "ContainerStateRunning",
    "ContainerStateTerminated",
    "ContainerStateWaiting",
    "ContainerStatus",
    "Guarantee",
    "Ingress",
    "Job",
    "JobSpec",
    "JobStatus",
    "LabelSelector",
    "LoadBalancerIngress",
    "LoadBalancerStatus",
    "Node",
    "NodeAffinity",
    "NodeGroupTerms",
    "NodeImage",
    "NodeSelector",
    "NodeSelectorTerm",
    "NodeSpec",
    "NodeStatus",
    "ObjectMeta",
    "OwnerReference",
    "PartialObject",
    "Pod",
    "PodAffinity",
    "PodAffinityTerm",
    "PodGroup",
    "PodGroupCondition",
    "PodGroupSpec",
    "PodGroupStatus",
    "PodSpec",
    "PodStatus",
    "PodVolume",
    "PreferredTerm",
    "PriorityClass",
    "Quantities",
    "Queue",
    "QueueAffinity",
    "QueueSpec",
    "QueueStatus",
    "ResourceRequirements",
    "SchedulingGate",
    "SelectorRequirement",
    "Service",
    "ServicePort",
    "ServiceSpec",
    "ServiceStatus",
    "Taint",
    "Toleration",
    "TopologySpreadConstraint",
    "WeightedPodAffinityTerm",
    "controller_of",
]

# --- nodes ----------------------------------------------------------------------------------------------------------


class Taint(Part, frozen=True):
    """A taint; `effect` is NoSchedule, PreferNoSchedule or NoExecute."""

    key: str
    effect: str
    value: str | None = None


class NodeSpec(Part, frozen=True):
    """What an administrator says about a node."""

    unschedulable: bool | None = None
    taints: list[Taint] = []


class NodeImage(Part, frozen=True):
    """An image that a node has, under all its names (with tag or digest)."""

    names: list[str] | None = None
    size_bytes: int = 0


class NodeStatus(Part, frozen=True):
    """What a node has."""

    allocatable: Quantities = {}
    capacity: Quantities = {}
    conditions: list[Condition] = []
    images: list[NodeImage] = []


class Node(ApiObject, frozen=True):
    """A node."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


# --- services, jobs, priority classes -------------------------------------------------------------------------------


class ServicePort(Part, frozen=True):
    """A port of a service."""

    port: int
    name: str | None = None
    target_port: int | str | None = None
    node_port: int | None = None
    protocol: str | None = None
    app_protocol: str | None = None


class ServiceSpec(Part, frozen=True):
    """Where a service leads."""

    type: str | None = None
    cluster_ip: str | None = msgspec.field(name="clusterIP", default=None)
    ports: list[ServicePort] = []
    selector: dict[str, str] = {}
    publish_not_ready_addresses: bool | None = None


class LoadBalancerIngress(Part, frozen=True):
    """An address that a load balancer gave."""

    ip: str | None = None
    hostname: str | None = None


class LoadBalancerStatus(Part, frozen=True):
    """The addresses of a load balancer."""

    ingress: list[LoadBalancerIngress] = []


class ServiceStatus(Part, frozen=True):
    """What became of a service."""

    load_balancer: LoadBalancerStatus = LoadBalancerStatus()


class Ingress(ApiObject, frozen=True):
    """Who it is, and whose: what it says is compared by the hash in an annotation."""


class Service(ApiObject, frozen=True):
    """A service."""

    spec: ServiceSpec = ServiceSpec()
    status: ServiceStatus = ServiceStatus()


class JobSpec(Part, frozen=True):
    """What a batch Job asks for."""

    suspend: bool | None = None
    parallelism: int | None = None
    completions: int | None = None
    backoff_limit: int | None = None
    active_deadline_seconds: int | None = None
    ttl_seconds_after_finished: int | None = None


class JobStatus(Part, frozen=True):
    """What became of a batch Job; conditions Complete and Failed end it."""

    conditions: list[Condition] = []
    active: int = 0
    ready: int | None = None
    succeeded: int = 0
    failed: int = 0
    start_time: str | None = None
    completion_time: str | None = None


class Job(ApiObject, frozen=True):
    """A Job of batch/v1."""

    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class PriorityClass(ApiObject, frozen=True):
    """A name for a priority."""

    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None


# --- PodGroups and Queues -------------------------------------------------------------------------------------------


class PodGroupCondition(Part, frozen=True):
    """A condition of a PodGroup; `transition_id` names the cycle that wrote it.

    No schema asks for type and status: whoever may edit PodGroups may leave them out.
    """

    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None
    transition_id: str | None = msgspec.field(name="transitionID", default=None)


class PodGroupSpec(Part, frozen=True):
    """What a gang asks for. Nested policies that are read as a whole stay plain."""

    min_member: int | None = None
    min_task_member: dict[str, int] = {}
    queue: str | None = None
    priority_class_name: str | None = None
    min_resources: Quantities | None = None
    network_topology: dict[str, Any] | None = None
    sub_group_policy: list[dict[str, Any]] = []


class PodGroupStatus(Part, frozen=True):
    """Where a gang stands."""

    phase: str | None = None
    conditions: list[PodGroupCondition] = []
    running: int = 0
    succeeded: int = 0
    failed: int = 0


class PodGroup(ApiObject, frozen=True):
    """A PodGroup of scheduling.volcano.sh/v1beta1. Its status is no subresource: whoever may edit it may write that."""

    status_is_derived: ClassVar[bool] = True

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class Guarantee(Part, frozen=True):
    """What is kept for a queue."""

    resource: Quantities | None = None


class NodeGroupTerms(Part, frozen=True):
    """Names of node groups."""

    required: list[str] = msgspec.field(name="requiredDuringSchedulingIgnoredDuringExecution", default_factory=list)
    preferred: list[str] = msgspec.field(name="preferredDuringSchedulingIgnoredDuringExecution", default_factory=list)


class QueueAffinity(Part, frozen=True):
    """Which groups of nodes the queue's pods are to use, and which not."""

    node_group_affinity: NodeGroupTerms | None = None
    node_group_anti_affinity: NodeGroupTerms | None = None


class QueueSpec(Part, frozen=True):
    """What a queue may have. None and an empty map differ: absent means no limit."""

    weight: int | None = None
    capability: Quantities | None = None
    deserved: Quantities | None = None
    guarantee: Guarantee | None = None
    reclaimable: bool | None = None
    parent: str | None = None
    priority: int | None = None
    type: str | None = None
    dequeue_strategy: str | None = None
    affinity: QueueAffinity | None = None


class QueueCondition(Part, frozen=True):
    """One condition of a Queue."""

    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


class QueueStatus(Part, frozen=True):
    """What a queue has."""

    state: str | None = None
    conditions: list[QueueCondition] = []
    allocated: Quantities | None = None
    reservation: dict[str, Any] | None = None


class Queue(ApiObject, frozen=True):
    """A Queue of scheduling.volcano.sh/v1beta1."""

    spec: QueueSpec = QueueSpec()
    status: QueueStatus = QueueStatus()
