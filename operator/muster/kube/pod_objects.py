"""Pods as they are read (see `muster.kube.objects`)."""

from __future__ import annotations

import msgspec

from muster.kube.object_base import ApiObject, Condition, Part, Quantities


class SchedulingGate(Part, frozen=True):
    """A gate that keeps a pod from being scheduled until it is removed."""

    name: str


class ContainerPort(Part, frozen=True):
    """A port of a container; only `host_port` takes room on a node."""

    container_port: int
    host_port: int | None = None
    host_ip: str | None = msgspec.field(name="hostIP", default=None)
    protocol: str | None = None
    name: str | None = None


class ResourceRequirements(Part, frozen=True):
    """What a container asks for and may use at most."""

    requests: Quantities | None = None
    limits: Quantities | None = None


class Container(Part, frozen=True):
    """A container, or an init container (`restart_policy: Always` makes that one a sidecar)."""

    name: str
    image: str | None = None
    resources: ResourceRequirements = ResourceRequirements()
    ports: list[ContainerPort] = []
    restart_policy: str | None = None


class SelectorRequirement(Part, frozen=True):
    """One requirement on a label or field: In, NotIn, Exists, DoesNotExist, Gt, Lt."""

    key: str
    operator: str
    values: list[str] = []


class NodeSelectorTerm(Part, frozen=True):
    """Requirements that must all hold; a term without any matches nothing."""

    match_expressions: list[SelectorRequirement] = []
    match_fields: list[SelectorRequirement] = []


class NodeSelector(Part, frozen=True):
    """Terms of which one must hold."""

    node_selector_terms: list[NodeSelectorTerm] = []


class PreferredTerm(Part, frozen=True):
    """A term worth `weight` (1-100) points."""

    weight: int
    preference: NodeSelectorTerm


class NodeAffinity(Part, frozen=True):
    """Which nodes a pod needs and which it prefers."""

    required: NodeSelector | None = msgspec.field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)
    preferred: list[PreferredTerm] = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default_factory=list
    )


class Affinity(Part, frozen=True):
    """A pod's affinities, as far as they are read."""

    node_affinity: NodeAffinity | None = None


class Toleration(Part, frozen=True):
    """Which taints a pod bears. An empty key with operator Exists bears all."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: int | None = None


class PodSpec(Part, frozen=True):
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


class ContainerStateWaiting(Part, frozen=True):
    """Why a container does not run yet."""

    reason: str | None = None
    message: str | None = None


class ContainerStateRunning(Part, frozen=True):
    """Since when a container runs."""

    started_at: str | None = None


class ContainerStateTerminated(Part, frozen=True):
    """How a container ended."""

    exit_code: int
    signal: int | None = None
    reason: str | None = None
    message: str | None = None
    started_at: str | None = None
    finished_at: str | None = None


class ContainerState(Part, frozen=True):
    """At most one of the three is set."""

    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(Part, frozen=True):
    """The state of one container."""

    name: str
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class PodStatus(Part, frozen=True):
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
