"""Kubernetes objects as they are read: typed, and holding only the fields that Muster looks at.

msgspec decodes straight from the wire into these, fast, and a wrong type is refused with its path. They are for
reading: a write sends a dict. Absent lists and maps read as empty ones, other absent fields as None; quantities stay as
they were written (see `muster.quantities`), times stay RFC 3339 text.
"""

from __future__ import annotations

from typing import Any

import msgspec

Quantities = dict[str, str | int | float]
"""Resource name to quantity, as written."""


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A part of an object: camelCase on the wire, frozen, all by keyword."""


class OwnerReference(_Part, frozen=True):
    """Who owns an object; `controller` marks the one that manages it."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(_Part, frozen=True):
    """The metadata of an object. `resource_version` is an integer in text form, comparable within one resource."""

    name: str = ""
    namespace: str | None = None
    uid: str = ""
    resource_version: str = ""
    generation: int | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[OwnerReference] = []
    finalizers: list[str] = []


class ApiObject(_Part, frozen=True):
    """A whole object: what all kinds have in common. Every decoded type derives from it."""

    metadata: ObjectMeta = ObjectMeta()

    @property
    def key(self) -> str:
        """`namespace/name`, or `name` alone for a cluster-scoped object."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


class PartialObject(ApiObject, frozen=True):
    """The metadata of any object, whatever else it holds."""


class Condition(_Part, frozen=True):
    """A condition; `status` is True, False or Unknown."""

    type: str
    status: str
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None
    last_probe_time: str | None = None
    observed_generation: int | None = None


# --- pods -----------------------------------------------------------------------------------------------------------


class SchedulingGate(_Part, frozen=True):
    """A gate that keeps a pod from being scheduled until it is removed."""

    name: str


class ContainerPort(_Part, frozen=True):
    """A port of a container; only `host_port` takes room on a node."""

    container_port: int
    host_port: int | None = None
    host_ip: str | None = msgspec.field(name="hostIP", default=None)
    protocol: str | None = None
    name: str | None = None


class ResourceRequirements(_Part, frozen=True):
    """What a container asks for and may use at most."""

    requests: Quantities | None = None
    limits: Quantities | None = None


class Container(_Part, frozen=True):
    """A container, or an init container (`restart_policy: Always` makes that one a sidecar)."""

    name: str
    image: str | None = None
    resources: ResourceRequirements = ResourceRequirements()
    ports: list[ContainerPort] = []
    restart_policy: str | None = None


class SelectorRequirement(_Part, frozen=True):
    """One requirement on a label or field: In, NotIn, Exists, DoesNotExist, Gt, Lt."""

    key: str
    operator: str
    values: list[str] = []


class NodeSelectorTerm(_Part, frozen=True):
    """Requirements that must all hold; a term without any matches nothing."""

    match_expressions: list[SelectorRequirement] = []
    match_fields: list[SelectorRequirement] = []


class NodeSelector(_Part, frozen=True):
    """Terms of which one must hold."""

    node_selector_terms: list[NodeSelectorTerm] = []


class PreferredTerm(_Part, frozen=True):
    """A term worth `weight` (1-100) points."""

    weight: int
    preference: NodeSelectorTerm


class NodeAffinity(_Part, frozen=True):
    """Which nodes a pod needs and which it prefers."""

    required: NodeSelector | None = msgspec.field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)
    preferred: list[PreferredTerm] = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default_factory=list
    )


class Affinity(_Part, frozen=True):
    """A pod's affinities, as far as they are read."""

    node_affinity: NodeAffinity | None = None


class Toleration(_Part, frozen=True):
    """Which taints a pod bears. An empty key with operator Exists bears all."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: int | None = None


class PodSpec(_Part, frozen=True):
    """What a pod asks for."""

    containers: list[Container] = []
    init_containers: list[Container] = []
    overhead: Quantities | None = None
    resources: ResourceRequirements | None = None
    scheduling_gates: list[SchedulingGate] = []
    scheduler_name: str | None = None
    node_name: str | None = None
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: list[Toleration] = []
    priority: int | None = None
    priority_class_name: str | None = None
    preemption_policy: str | None = None
    restart_policy: str | None = None
    host_network: bool | None = None


class ContainerStateWaiting(_Part, frozen=True):
    """Why a container does not run yet."""

    reason: str | None = None
    message: str | None = None


class ContainerStateRunning(_Part, frozen=True):
    """Since when a container runs."""

    started_at: str | None = None


class ContainerStateTerminated(_Part, frozen=True):
    """How a container ended."""

    exit_code: int
    signal: int | None = None
    reason: str | None = None
    message: str | None = None
    started_at: str | None = None
    finished_at: str | None = None


class ContainerState(_Part, frozen=True):
    """At most one of the three is set."""

    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(_Part, frozen=True):
    """The state of one container."""

    name: str
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class PodStatus(_Part, frozen=True):
    """What became of a pod."""

    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    conditions: list[Condition] = []
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []
    nominated_node_name: str | None = None
    pod_ip: str | None = msgspec.field(name="podIP", default=None)
    host_ip: str | None = msgspec.field(name="hostIP", default=None)
    start_time: str | None = None


class Pod(ApiObject, frozen=True):
    """A pod."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


# --- nodes ----------------------------------------------------------------------------------------------------------


class Taint(_Part, frozen=True):
    """A taint; `effect` is NoSchedule, PreferNoSchedule or NoExecute."""

    key: str
    effect: str
    value: str | None = None


class NodeSpec(_Part, frozen=True):
    """What an administrator says about a node."""

    unschedulable: bool | None = None
    taints: list[Taint] = []


class NodeStatus(_Part, frozen=True):
    """What a node has."""

    allocatable: Quantities = {}
    capacity: Quantities = {}
    conditions: list[Condition] = []


class Node(ApiObject, frozen=True):
    """A node."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


# --- services, jobs, priority classes -------------------------------------------------------------------------------


class ServicePort(_Part, frozen=True):
    """A port of a service."""

    port: int
    name: str | None = None
    target_port: int | str | None = None
    node_port: int | None = None
    protocol: str | None = None
    app_protocol: str | None = None


class ServiceSpec(_Part, frozen=True):
    """Where a service leads."""

    type: str | None = None
    cluster_ip: str | None = msgspec.field(name="clusterIP", default=None)
    ports: list[ServicePort] = []
    selector: dict[str, str] = {}
    publish_not_ready_addresses: bool | None = None


class LoadBalancerIngress(_Part, frozen=True):
    """An address that a load balancer gave."""

    ip: str | None = None
    hostname: str | None = None


class LoadBalancerStatus(_Part, frozen=True):
    """The addresses of a load balancer."""

    ingress: list[LoadBalancerIngress] = []


class ServiceStatus(_Part, frozen=True):
    """What became of a service."""

    load_balancer: LoadBalancerStatus = LoadBalancerStatus()


class Service(ApiObject, frozen=True):
    """A service."""

    spec: ServiceSpec = ServiceSpec()
    status: ServiceStatus = ServiceStatus()


class JobSpec(_Part, frozen=True):
    """What a batch Job asks for."""

    suspend: bool | None = None
    parallelism: int | None = None
    completions: int | None = None
    backoff_limit: int | None = None
    active_deadline_seconds: int | None = None
    ttl_seconds_after_finished: int | None = None


class JobStatus(_Part, frozen=True):
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


class PodGroupCondition(_Part, frozen=True):
    """A condition of a PodGroup; `transition_id` names the cycle that wrote it."""

    type: str
    status: str
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None
    transition_id: str | None = msgspec.field(name="transitionID", default=None)


class PodGroupSpec(_Part, frozen=True):
    """What a gang asks for. Nested policies that are read as a whole stay plain."""

    min_member: int | None = None
    min_task_member: dict[str, int] = {}
    queue: str | None = None
    priority_class_name: str | None = None
    min_resources: Quantities | None = None
    network_topology: dict[str, Any] | None = None
    sub_group_policy: list[dict[str, Any]] = []


class PodGroupStatus(_Part, frozen=True):
    """Where a gang stands."""

    phase: str | None = None
    conditions: list[PodGroupCondition] = []
    running: int = 0
    succeeded: int = 0
    failed: int = 0


class PodGroup(ApiObject, frozen=True):
    """A PodGroup of scheduling.volcano.sh/v1beta1."""

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class Guarantee(_Part, frozen=True):
    """What is kept for a queue."""

    resource: Quantities | None = None


class NodeGroupTerms(_Part, frozen=True):
    """Names of node groups."""

    required: list[str] = msgspec.field(name="requiredDuringSchedulingIgnoredDuringExecution", default_factory=list)
    preferred: list[str] = msgspec.field(name="preferredDuringSchedulingIgnoredDuringExecution", default_factory=list)


class QueueAffinity(_Part, frozen=True):
    """Which groups of nodes the queue's pods are to use, and which not."""

    node_group_affinity: NodeGroupTerms | None = None
    node_group_anti_affinity: NodeGroupTerms | None = None


class QueueSpec(_Part, frozen=True):
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


class QueueStatus(_Part, frozen=True):
    """What a queue has."""

    state: str | None = None
    allocated: Quantities | None = None
    reservation: dict[str, Any] | None = None


class Queue(ApiObject, frozen=True):
    """A Queue of scheduling.volcano.sh/v1beta1."""

    spec: QueueSpec = QueueSpec()
    status: QueueStatus = QueueStatus()
