# ruff: noqa: RUF012 - msgspec copies an empty default for each object; ruff knows its structs only by a base in the file
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


class LabelSelector(Part, frozen=True):
    """Labels that objects must have; one without any requirement selects all."""

    match_labels: dict[str, str] = {}
    match_expressions: list[SelectorRequirement] = []


class PodAffinityTerm(Part, frozen=True):
    """Pods, and the label of nodes that says where they are near. Without a `label_selector` it selects no pod."""

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: list[str] = []
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] = []
    mismatch_label_keys: list[str] = []


class WeightedPodAffinityTerm(Part, frozen=True):
    """A term worth `weight` (1-100) points."""

    weight: int
    pod_affinity_term: PodAffinityTerm


class PodAffinity(Part, frozen=True):
    """The pods that a pod needs near (or, as anti-affinity, far), and those that it prefers so."""

    required: list[PodAffinityTerm] = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default_factory=list
    )
    preferred: list[WeightedPodAffinityTerm] = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default_factory=list
    )


class Affinity(Part, frozen=True):
    """A pod's affinities."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Part, frozen=True):
    """How evenly pods are spread; `when_unsatisfiable` is DoNotSchedule or ScheduleAnyway."""

    topology_key: str = ""
    max_skew: int = 1
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] = []


class Toleration(Part, frozen=True):
    """Which taints a pod bears. An empty key with operator Exists bears all."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: int | None = None


class ClaimSource(Part, frozen=True):
    """The PersistentVolumeClaim behind a volume of a pod."""

    claim_name: str = ""


class PodVolume(Part, frozen=True):
    """A volume of a pod, as far as it is a claim: a named one, or one of the pod's own (`ephemeral`)."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: dict[str, object] | None = None


class PodResourceClaim(Part, frozen=True):
    """A claim to devices: a named one, or one that is made for the pod from a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSpec(Part, frozen=True):
    """What a pod asks for."""

    containers: list[Container] = []
    init_containers: list[Container] = []
    overhead: Quantities | None = None
    resources: ResourceRequirements | None = None
    scheduling_gates: list[SchedulingGate] = []
    scheduler_name: str | None = None
    service_account_name: str | None = None
    node_name: str | None = None
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: list[Toleration] = []
    topology_spread_constraints: list[TopologySpreadConstraint] = []
    volumes: list[PodVolume] = []
    resource_claims: list[PodResourceClaim] = []
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


class PodResourceClaimStatus(Part, frozen=True):
    """The claim that was made for one of a pod's claims from its template; without a name it needs none."""

    name: str = ""
    resource_claim_name: str | None = None


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
    resource_claim_statuses: list[PodResourceClaimStatus] = []


class Pod(ApiObject, frozen=True):
    """A pod."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
