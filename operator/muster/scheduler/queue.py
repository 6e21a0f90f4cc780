"""A queue and what its jobs use.

Kept current by the cache whenever a task or job changes; plugins read these accounts and add what they compute
(`deserved`). A queue that jobs name but that does not exist has a QueueInfo with `spec` None.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from muster.scheduler.claim_charges import ClaimCharges, Weigh, weigh_nothing
from muster.scheduler.outcome import QueueStatus
from muster.scheduler.reasons import Code, Reason, Wake
from muster.scheduler.resources import CPU, MEMORY, ResourceKey, Resources
from muster.scheduler.specs import QueueSpec, QueueState

if TYPE_CHECKING:
    from muster.scheduler.job import JobInfo

ROOT = "root"
DEFAULT = "default"
IMPLICIT = {ROOT: QueueSpec(ROOT, reclaimable=False), DEFAULT: QueueSpec(DEFAULT)}

_NOTHING = Resources()
_CLOSING = (QueueState.CLOSED, QueueState.CLOSING)


class Sums:
    """What is used (`allocated`), leaving, reserved for admitted jobs, and used above the jobs' minimums."""

    __slots__ = ("allocated", "elastic", "inqueue", "releasing")

    def __init__(
        self,
        allocated: Resources | None = None,
        releasing: Resources | None = None,
        inqueue: Resources | None = None,
        elastic: Resources | None = None,
    ) -> None:
        self.allocated = allocated if allocated is not None else Resources()
        self.releasing = releasing if releasing is not None else Resources()
        self.inqueue = inqueue if inqueue is not None else Resources()
        self.elastic = elastic if elastic is not None else Resources()

    def add(self, other: Sums) -> None:
        """Add in place."""
        self.allocated.add(other.allocated)
        self.releasing.add(other.releasing)
        self.inqueue.add(other.inqueue)
        self.elastic.add(other.elastic)

    def keys(self) -> tuple[ResourceKey, ...]:
        """Comparable values."""
        return (self.allocated.key(), self.releasing.key(), self.inqueue.key(), self.elastic.key())


class QueueInfo:
    """Accounts of one queue.

    `allocated`: charged tasks of its jobs. `releasing`: its tasks that are leaving. `claims`: what their devices add
    to these two. `pending`: waiting tasks of gangs that could be placed. `inqueue`: reserved for admitted jobs, above
    what they use already. `elastic`: what jobs use above their minimum. `deserved`: set by `proportion`, None without
    it. `version` counts changes of tasks.

    What follows is worked out by `hierarchy.link`: `above` (nearest first) and `children` are the queues next to it in
    the tree, `lineage` its own name and those above, `levels` the queue and those above whose caps bind it in a
    hierarchy (the root only where it has one); `subtree` holds the sums with all queues below, `charged` the sums
    of inner queues in which every change of its own accounts has to be entered too. `fault` says what makes the queue
    unusable, `obstacle` (None: nothing) why it takes no work.
    """

    __slots__ = (
        "above",
        "allocated",
        "charged",
        "children",
        "claims",
        "deserved",
        "elastic",
        "fault",
        "inqueue",
        "jobs",
        "levels",
        "lineage",
        "name",
        "obstacle",
        "pending",
        "published",
        "releasing",
        "spec",
        "subtree",
        "version",
    )

    def __init__(self, name: str, weigh: Weigh = weigh_nothing) -> None:
        self.name = name
        self.claims = ClaimCharges(self._accounts, weigh)
        self.spec: QueueSpec | None = IMPLICIT.get(name)
        self.jobs: dict[str, JobInfo] = {}
        self.allocated = Resources()
        self.releasing = Resources()
        self.pending = Resources()
        self.inqueue = Resources()
        self.elastic = Resources()
        self.deserved: Resources | None = None
        self.published: QueueStatus | None = None
        self.version = 0
        self.above: tuple[QueueInfo, ...] = ()
        self.children: tuple[QueueInfo, ...] = ()
        self.lineage: tuple[str, ...] = (name,)
        self.levels: tuple[QueueInfo, ...] = (self,)
        self.subtree = self.own_sums()
        self.charged: tuple[Sums, ...] = ()
        self.fault: Reason | None = None
        self.obstacle: Reason | None = None

    def __repr__(self) -> str:
        return f"QueueInfo({self.name})"

    def _accounts(self) -> Iterator[tuple[Resources, Resources]]:
        yield self.allocated, self.releasing
        for sums in self.charged:
            yield sums.allocated, sums.releasing

    def own_sums(self) -> Sums:
        """The queue's own accounts, without those below; no copies."""
        return Sums(self.allocated, self.releasing, self.inqueue, self.elastic)

    @property
    def leaf(self) -> bool:
        """Whether no queue names this one as its parent."""
        return not self.children

    @property
    def age_order(self) -> tuple[float, str]:
        """The last word of every order: creation, name."""
        return (self.spec.creation if self.spec else 0.0, self.name)

    @property
    def open(self) -> bool:
        """Whether the queue is in a state to take new work."""
        return self.spec is not None and self.spec.state is QueueState.OPEN

    def find_obstacle(self) -> Reason | None:
        """Why the queue takes no work: it is missing, broken, no leaf, or closed (or a queue above it is)."""
        if self.spec is None:
            return Reason(Code.QUEUE_MISSING, queue=self.name)
        if self.fault is not None:
            return self.fault
        if not self.leaf:
            names = ", ".join(child.name for child in self.children[:3])
            return Reason(Code.QUEUE_NOT_LEAF, queue=self.name, detail=names)
        if not self.open:
            return _closed(self, self.spec)
        for queue in self.above:
            # Volcano's controller closes what is below a closed queue; until it has, the scheduler does.
            if queue.spec is not None and queue.spec.state in _CLOSING and queue.name != ROOT:
                return _closed(queue, queue.spec)
        return None

    @property
    def guarantee(self) -> Resources:
        """What no other queue may take; a queue that can't be used keeps nothing from the others."""
        return self.spec.guarantee if self.spec is not None and self.fault is None else _NOTHING

    @property
    def capability(self) -> Resources | None:
        """The hard cap, None when the queue sets none."""
        spec = self.spec
        if spec is None:
            return None
        cap = spec.capability
        return cap if cap.milli_cpu > 0 or cap.memory > 0 or cap.scalars else None

    def over_capability(self, request: Resources, *, standing: Resources | None = None) -> str | None:
        """The first dimension in which `standing` plus `request` is above the cap, None when it fits.

        `standing` defaults to all that the pods of the queue and of those below it occupy, the leaving ones included:
        they still run. Only dimensions that are asked for and that the cap names are compared, so `pods` counts only if
        it is named.
        """
        cap = self.capability
        if cap is None:
            return None
        held = standing if standing is not None else self.subtree.allocated.plus(self.subtree.releasing)
        for dimension, limit in limits(cap):
            asked = request.get(dimension)
            if asked > 0 and held.get(dimension) + asked > limit:
                return dimension
        return None


def _closed(queue: QueueInfo, spec: QueueSpec) -> Reason:
    return Reason(Code.QUEUE_CLOSED, queue=queue.name, detail=spec.state.value)


def limits(capability: Resources) -> list[tuple[str, int]]:
    """The dimensions that a capability limits, in the order of names (CPU and memory first)."""
    named = [(CPU, capability.milli_cpu), (MEMORY, capability.memory)]
    found = [(name, value) for name, value in named if value > 0]
    return found + sorted(capability.scalars.items())


def capability_reason(queue: QueueInfo, dimension: str, request: Resources) -> Reason:
    """The queue's hard cap has no room for `request`."""
    cap = queue.capability or Resources()
    leaving = queue.subtree.releasing.get(dimension)
    used = queue.subtree.allocated.get(dimension) + leaving
    limit = cap.get(dimension)
    return Reason(
        Code.QUEUE_QUOTA,
        resource=dimension,
        requested=request.get(dimension),
        used=used,
        free=max(0, limit - used),
        limit=limit,
        queue=queue.name,
        detail="pods that are leaving counted" if leaving else "",
        wakes=(Wake.QUEUE,),
    )


def promised_in(sums: Sums, dimension: str) -> str:
    """In words, what counts beside what is used, or does not, when a gang asks to be admitted."""
    found = ["what was promised to admitted gangs counted"] if sums.inqueue.get(dimension) else []
    found += ["what gangs use above their minimum not counted"] if sums.elastic.get(dimension) else []
    return " and ".join(found)


def parent_of(queue: QueueInfo) -> str:
    """The name of the queue above, empty for `root`."""
    if queue.name == ROOT:
        return ""
    return (queue.spec.parent if queue.spec else "") or ROOT
