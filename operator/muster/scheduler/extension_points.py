"""Where plugins have a say: what they register, and under which flag of the configuration."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from muster.scheduler.evictable import Evictable, Preemptive, UnifiedEvictable, VictimQueueOrder, VictimTasks
from muster.scheduler.judge import CheckMaker, Hurdle, MakeOrder, NodeOrder, Predicate, WishMaker
from muster.scheduler.reasons import Reason

if TYPE_CHECKING:
    from muster.scheduler.constraints import PodConstraints
    from muster.scheduler.job import JobInfo
    from muster.scheduler.queue import QueueInfo
    from muster.scheduler.resources import Resources
    from muster.scheduler.session import Session
    from muster.scheduler.task import TaskInfo

JobOrder = Callable[["Session", "JobInfo"], Any]
TaskOrder = Callable[["Session", "TaskInfo"], Any]
QueueOrder = Callable[["Session", "QueueInfo", "QueueInfo"], int]
JobCheck = Callable[["Session", "JobInfo"], bool]
JobValid = Callable[["Session", "JobInfo"], "Reason | None"]
Vote = bool | Reason | None
JobVote = Callable[["Session", "JobInfo"], Vote]
Overused = Callable[["Session", "QueueInfo"], bool]
Allocatable = Callable[["Session", "QueueInfo", "Resources"], "Reason | None"]
JobCallback = Callable[["Session", "JobInfo"], None]
Allocated = Callable[["Session", "TaskInfo"], "Reason | None"]
"""(session, task): it has just been given, or promised, its node; the objection takes that back."""
Deallocated = Callable[["Session", "TaskInfo", str], None]
"""(session, task, node): it has just lost the node, or the promise of it."""
Outlook = Callable[["TaskInfo", "Mapping[str, QueueInfo]", "PodConstraints"], "PodConstraints"]
"""(task, all queues, its constraints): what else decides on which node the task may run, as constraints."""
VictimFilter = Callable[["Session", Sequence["TaskInfo"]], "Sequence[TaskInfo]"]
"""(session, victims): those of the `victim_tasks` that may leave after all."""
JobKind = Callable[["JobInfo"], Hashable]
"""Tells apart jobs of one queue and shape that the plugin may nevertheless refuse or admit for different reasons."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a queue stands in the eyes of the plugin that shares the cluster out."""

    deserved: Resources
    share: float
    overused: bool


QueueStanding = Callable[["Session", "QueueInfo"], "Standing | None"]


PROTECTABLE = ("preemptable", "reclaimable", "unified_evictable")


@dataclass(slots=True)
class Tier:
    """What the plugins of one tier registered, in their order."""

    job_order: list[JobOrder] = field(default_factory=list)
    task_order: list[TaskOrder] = field(default_factory=list)
    queue_order: list[QueueOrder] = field(default_factory=list)
    job_ready: list[JobCheck] = field(default_factory=list)
    job_valid: list[JobValid] = field(default_factory=list)
    job_pipelined: list[JobVote] = field(default_factory=list)
    job_enqueueable: list[JobVote] = field(default_factory=list)
    job_enqueued: list[JobCallback] = field(default_factory=list)
    job_starving: list[JobCheck] = field(default_factory=list)
    overused: list[Overused] = field(default_factory=list)
    allocatable: list[Allocatable] = field(default_factory=list)
    predicates: list[Predicate] = field(default_factory=list)
    node_orders: list[NodeOrder] = field(default_factory=list)
    make_orders: list[MakeOrder] = field(default_factory=list)
    preemptable: list[Evictable] = field(default_factory=list)
    reclaimable: list[Evictable] = field(default_factory=list)
    unified_evictable: list[UnifiedEvictable] = field(default_factory=list)
    preemptive: list[Preemptive] = field(default_factory=list)
    victim_queue_order: list[VictimQueueOrder] = field(default_factory=list)
    victim_tasks: list[VictimTasks] = field(default_factory=list)
    victim_filters: list[VictimFilter] = field(default_factory=list)
    kinds: list[JobKind] = field(default_factory=list)
    outlooks: list[Outlook] = field(default_factory=list)
    node_predicates: list[Predicate] = field(default_factory=list)
    queue_standing: list[QueueStanding] = field(default_factory=list)
    checks: list[CheckMaker] = field(default_factory=list)
    wishes: list[WishMaker] = field(default_factory=list)
    protectors: dict[str, list[Evictable]] = field(default_factory=lambda: {point: [] for point in PROTECTABLE})
    hurdles: list[Hurdle] = field(default_factory=list)
    allocated: list[Allocated] = field(default_factory=list)
    deallocated: list[Deallocated] = field(default_factory=list)


FLAGS = {
    "job_order": "enableJobOrder",
    "task_order": "enableTaskOrder",
    "queue_order": "enableQueueOrder",
    "job_ready": "enableJobReady",
    "job_pipelined": "enableJobPipelined",
    "job_enqueueable": "enableJobEnqueued",
    "job_enqueued": "enableJobEnqueued",
    "job_starving": "enableJobStarving",
    "overused": "enabledOverused",
    "allocatable": "enabledAllocatable",
    "predicates": "enablePredicate",
    "node_orders": "enableNodeOrder",
    "make_orders": "enableNodeOrder",
    "preemptable": "enablePreemptable",
    "reclaimable": "enableReclaimable",
    "preemptive": "enablePreemptive",
    "victim_tasks": "enabledVictim",
    "victim_filters": "enabledVictim",
    "node_predicates": "enablePredicate",
    "checks": "enablePredicate",
    "wishes": "enableNodeOrder",
    "hurdles": "enablePredicate",
}
"""The flag of each extension point; `job_valid`, `unified_evictable`, `victim_queue_order`, `allocated` and
`deallocated` have none (Volcano's rule): they are always asked. Nor has `queue_standing`: it only tells."""


class ExtensionPoints:
    """One plugin's way into its tier: registers only where the plugin's flags allow it."""

    def __init__(
        self, tier: Tier, flags: dict[str, bool], labels: set[str] | None = None, *, protects: bool = False
    ) -> None:
        self._tier = tier
        self._flags = flags
        self._labels = labels if labels is not None else set()
        self._protects = protects

    def mention(self, *labels: str) -> None:
        """The plugin reads these labels of nodes where it judges makes: nodes that differ in them are told apart."""
        self._labels.update(labels)

    def flag(self, name: str, default: bool) -> bool:
        """What the configuration says of a flag, for those that change how a plugin works (`enableHierarchy`)."""
        return self._flags.get(name, default)

    def add(self, point: str, function: Callable[..., Any]) -> None:
        """Take part in the extension point of that name (a field of Tier). Raises LookupError where there is none."""
        registered = getattr(self._tier, point, None)
        if not isinstance(registered, list):
            raise LookupError(f"there is no extension point {point!r}")
        if not callable(function):
            raise TypeError(f"{function!r} can't be called, as extension point {point!r} has to be")
        flag = FLAGS.get(point)
        if flag is None or self._flags.get(flag, True):
            registered.append(function)
            if self._protects and point in PROTECTABLE:
                self._tier.protectors[point].append(function)
