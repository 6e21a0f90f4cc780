"""What the scheduler is told: the cluster's objects, reduced to what a decision reads.

The engine's mirror (and `muster simulate`) builds these from Kubernetes objects and hands them to the SchedulerCache.
All are frozen values; times are Unix seconds, amounts are `Resources`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from muster.scheduler.constraints import UNCONSTRAINED, NodeGroups, PodConstraints, Taint
from muster.scheduler.resources import Resources
from muster.scheduler.selectors import LabelSelector


class TaskStatus(Enum):
    """Volcano's ten. Allocated and Pipelined exist only inside a Session.

    What each means for the accounts: `placed` is Volcano's AllocatedStatus; `charged` counts against queue and job;
    `holds` occupies the node's idle resources; `finished` will never run again.
    """

    PENDING = "Pending"
    ALLOCATED = "Allocated"
    PIPELINED = "Pipelined"
    BINDING = "Binding"
    BOUND = "Bound"
    RUNNING = "Running"
    RELEASING = "Releasing"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"

    index: int
    charged: bool
    holds: bool
    placed: bool
    finished: bool

    def __init__(self, label: str) -> None:
        # Plain attributes: looked up many times a placement, and Enum's own hash is slow.
        self.index = len(type(self).__members__)
        self.placed = label in ("Allocated", "Binding", "Bound", "Running")
        self.charged = self.placed or label == "Pipelined"
        self.holds = self.placed or label in ("Releasing", "Unknown")
        self.finished = label in ("Succeeded", "Failed")


class Phase(Enum):
    """A PodGroup's phase. Absent or empty reads as Pending."""

    PENDING = "Pending"
    INQUEUE = "Inqueue"
    RUNNING = "Running"
    UNKNOWN = "Unknown"
    COMPLETED = "Completed"


class QueueState(Enum):
    """A Queue's state. Absent or empty reads as Open."""

    OPEN = "Open"
    CLOSING = "Closing"
    CLOSED = "Closed"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Condition:
    """A PodGroup condition; `last_transition` is when `status` last changed."""

    type: str
    status: bool
    reason: str = ""
    message: str = ""
    last_transition: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class Wait:
    """Since when (Unix seconds) a gang waits. `for_room`: it could be placed if there were room or quota for it."""

    since: float
    for_room: bool


@dataclass(frozen=True, slots=True)
class PodVerdict:
    """What a waiting pod of ours should say about itself. `nominated` is the node that it has been promised, or empty.

    `reason` is `Unschedulable` exactly when more or larger nodes would help (cluster autoscalers act on that word),
    else empty: an Unschedulable that was written before is then no longer true and has to go. `gist` is what the
    message is about, without the numbers that others change; None where that is not known.
    """

    status: str
    reason: str
    message: str
    nominated: str = ""
    gist: tuple[object, ...] | None = field(default=None, compare=False)

    def is_news_after(self, said: PodVerdict) -> bool:
        """Whether more differs than numbers that others change."""
        if (self.reason, self.nominated) != (said.reason, said.nominated):
            return True
        return self.message != said.message and (said.gist is None or said.gist != self.gist)


@dataclass(frozen=True, slots=True)
class Delegation:
    """A pod that the default scheduler binds, once we have decided about its gang.

    `node` is the one that it has been pinned to, empty until then, and `since` (Unix seconds) is when that was done.
    """

    node: str = ""
    since: float = 0.0


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """A pod. `request` includes `pods: 1`; `init_request` is what it needs to start (init containers counted).

    `status` by volcano's table: Pending (no node), Bound (node, not yet running), Running, Releasing (deletion
    asked for and not yet gone), Succeeded, Failed, Unknown. `job` is `namespace/podgroup`, empty for a pod without a
    group. `labels` are what affinity and spread of pods select by. `gated` means a scheduling gate other than ours.
    `queue` is the one that the pod itself names; it counts as long as there is no PodGroup. `verdict` is what it
    says already (None: nothing of ours); the node that it names there is believed once, when the pod is first seen.
    Until `cooldown_until` it has run too short a time to be evicted for others. `expected_runtime` is how many seconds
    it says it is going to run, `started` since when it does; None: not said, not yet.
    `lost` pods have failed by no doing of their own: the kubelet refused them, or they were thrown off their node.
    `delegation` is None for a pod that we bind ourselves.
    """

    uid: str
    namespace: str
    name: str
    job: str = ""
    role: str = ""
    request: Resources = field(default_factory=Resources)
    init_request: Resources = field(default_factory=Resources)
    priority: int = 1
    creation: float = 0.0
    status: TaskStatus = TaskStatus.PENDING
    node: str | None = None
    scheduling: PodConstraints = UNCONSTRAINED
    labels: Mapping[str, str] = field(default_factory=dict)
    gated: bool = False
    preemptable: bool = True
    preemption_policy_never: bool = False
    ours: bool = True
    queue: str = ""
    priority_class: str = ""
    cooldown_until: float | None = None
    verdict: PodVerdict | None = field(default=None, compare=False)
    expected_runtime: float | None = None
    started: float | None = None
    lost: bool = False
    delegation: Delegation | None = None


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """What a node really uses, in percent of what it has, on average; `at` (Unix seconds) is when that was read."""

    cpu: float
    memory: float
    at: float


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """A node. `ready` is for the reader: as in Volcano, taints decide whether a node that is not ready is used.

    `images` are the images that it has, by name with tag or digest, and their sizes in bytes.
    """

    name: str
    allocatable: Resources
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    ready: bool = True
    images: Mapping[str, int] = field(default_factory=dict)
    usage: NodeUsage | None = None


@dataclass(frozen=True, slots=True)
class Companion:
    """A pod that a gang will need later (its submitter) and whose room is held from the start."""

    role: str
    request: Resources
    init_request: Resources
    scheduling: PodConstraints = UNCONSTRAINED


@dataclass(frozen=True, slots=True)
class Portion:
    """A number of pods, or a percentage of all of them."""

    amount: int
    percent: bool = False

    def of(self, whole: int) -> int:
        """How many of so many, rounded up."""
        return -(-whole * self.amount // 100) if self.percent else self.amount


@dataclass(frozen=True, slots=True)
class DisruptionBudget:
    """How many of a gang's pods must stay, or may be missing; the latter goes first where both are given."""

    min_available: Portion | None = None
    max_unavailable: Portion | None = None


@dataclass(frozen=True, slots=True)
class TaskTopology:
    """Groups of roles that belong together, and that do not; a group of one is about that role's own pods.

    `order` is the order in which roles are to be placed.
    """

    affinity: tuple[tuple[str, ...], ...] = ()
    anti_affinity: tuple[tuple[str, ...], ...] = ()
    order: tuple[str, ...] = ()

    def roles(self) -> set[str]:
        """All roles that it names."""
        return {role for group in (*self.affinity, *self.anti_affinity, self.order) for role in group}


@dataclass(frozen=True, slots=True)
class PodGroupSpec:
    """A PodGroup: spec, the status as it was read, and our annotations.

    `min_resources` None means absent. `priority_class` names a PriorityClass. `running`/`succeeded`/`failed` are the
    counters in the status, None when it has none. `broken_since` is our annotation `muster.dev/broken-since`,
    `companion_nodes` (role to node) our annotation `muster.dev/companion-nodes`, `minimum_met` our annotation
    `muster.dev/minimum-met`. `problem` is set when the object can't be used as it is (a wrong type, a bad annotation):
    the gang then waits with that as its reason.
    `sla_waiting_time` (seconds) is how long it may wait at most, `preemptable` what it says of itself as a whole (None:
    nothing), `budget` how many of its pods may be evicted at once for no fault of theirs, `topology` which of its roles
    should share nodes. `expected_runtime` (seconds) holds for members that state none of their own. `wait` is what our
    annotation `muster.dev/reason` says.
    """

    namespace: str
    name: str
    uid: str = ""
    min_member: int = 0
    min_task_member: Mapping[str, int] = field(default_factory=dict)
    min_resources: Resources | None = None
    queue: str = "default"
    priority_class: str = ""
    creation: float = 0.0
    phase: Phase | None = None
    conditions: tuple[Condition, ...] = ()
    running: int | None = None
    succeeded: int | None = None
    failed: int | None = None
    companions: tuple[Companion, ...] = ()
    companion_nodes: Mapping[str, str] = field(default_factory=dict)
    broken_since: float | None = None
    minimum_met: int | None = None
    problem: str = ""
    sla_waiting_time: float | None = None
    preemptable: bool | None = None
    budget: DisruptionBudget | None = None
    expected_runtime: float | None = None
    wait: Wait | None = None
    topology: TaskTopology | None = None

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class QueueSpec:
    """A Queue. CPU and memory of `capability` at 0 mean no limit, a scalar is limited only when named.

    `node_groups` is None where the queue says nothing of them. `starvation_timeout` (seconds) is the queue's own, None:
    the configuration's. `hierarchy` and `hierarchy_weights` are its path in the tree of hierarchical drf, the root
    first. `problem` is set when the object can't be used as it is (a negative amount): its gangs then wait with that as
    their reason. What its status says that it uses is not believed.
    """

    name: str
    weight: int = 1
    capability: Resources = field(default_factory=Resources)
    guarantee: Resources = field(default_factory=Resources)
    deserved: Resources = field(default_factory=Resources)
    reclaimable: bool = True
    parent: str = ""
    state: QueueState = QueueState.OPEN
    priority: int = 0
    creation: float = 0.0
    node_groups: NodeGroups | None = None
    hierarchy: tuple[str, ...] = ()
    hierarchy_weights: tuple[float, ...] = ()
    problem: str = ""
    starvation_timeout: float | None = None


@dataclass(frozen=True, slots=True)
class ResourceQuotaSpec:
    """A ResourceQuota: amounts by its own names (`cpu`, `requests.cpu`, `pods`, …), in the units of Resources."""

    namespace: str
    name: str
    hard: Mapping[str, int] = field(default_factory=dict)
    used: Mapping[str, int] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class PodDisruptionBudgetSpec:
    """A PodDisruptionBudget: `allowed` of the pods that it selects may be disrupted now.

    The pods named in `disrupted` are on their way out and not counted any more.
    """

    namespace: str
    name: str
    selector: LabelSelector | None = None
    allowed: int = 0
    disrupted: frozenset[str] = frozenset()

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    def counts(self, pod: TaskSpec) -> bool:
        """Whether evicting the pod uses the budget up."""
        if self.selector is None or pod.namespace != self.namespace or pod.name in self.disrupted:
            return False
        return self.selector.matches(pod.labels)


@dataclass(frozen=True, slots=True)
class PriorityClassSpec:
    """A PriorityClass."""

    name: str
    value: int
    global_default: bool = False
