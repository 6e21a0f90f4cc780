"""A queue and what its jobs use.

Kept current by the cache whenever a task or job changes; plugins read these accounts and add what they compute
(`deserved`). A queue that jobs name but that does not exist has a QueueInfo with `spec` None.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from muster.scheduler.outcome import QueueStatus
from muster.scheduler.reasons import Code, Reason, Wake
from muster.scheduler.resources import CPU, MEMORY, Resources
from muster.scheduler.specs import QueueSpec, QueueState

if TYPE_CHECKING:
    from muster.scheduler.job import JobInfo

ROOT = "root"
DEFAULT = "default"
IMPLICIT = {ROOT: QueueSpec(ROOT, reclaimable=False), DEFAULT: QueueSpec(DEFAULT)}


class QueueInfo:
    """Accounts of one queue.

    `allocated`: charged tasks of its jobs. `releasing`: its tasks that are leaving. `pending`: tasks that could be
    placed. `inqueue`: reserved for admitted jobs, above what they use already. `elastic`: what jobs use above their
    minimum. `deserved`: set by a plugin, None without one.
    """

    __slots__ = (
        "allocated",
        "deserved",
        "elastic",
        "inqueue",
        "jobs",
        "name",
        "pending",
        "published",
        "releasing",
        "spec",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.spec: QueueSpec | None = IMPLICIT.get(name)
        self.jobs: dict[str, JobInfo] = {}
        self.allocated = Resources()
        self.releasing = Resources()
        self.pending = Resources()
        self.inqueue = Resources()
        self.elastic = Resources()
        self.deserved: Resources | None = None
        self.published: QueueStatus | None = None

    def __repr__(self) -> str:
        return f"QueueInfo({self.name})"

    @property
    def open(self) -> bool:
        """Whether the queue takes new work."""
        return self.spec is not None and self.spec.state is QueueState.OPEN

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

        `standing` defaults to all that the queue's pods occupy, the leaving ones included: they still run. Only
        dimensions that are asked for and that the cap names are compared, so `pods` counts only if it is named.
        """
        cap = self.capability
        if cap is None:
            return None
        held = standing if standing is not None else self.allocated.plus(self.releasing)
        for dimension, limit in limits(cap):
            asked = request.get(dimension)
            if asked > 0 and held.get(dimension) + asked > limit:
                return dimension
        return None


def limits(capability: Resources) -> list[tuple[str, int]]:
    """The dimensions that a capability limits, in the order of names (CPU and memory first)."""
    named = [(CPU, capability.milli_cpu), (MEMORY, capability.memory)]
    found = [(name, value) for name, value in named if value > 0]
    return found + sorted(capability.scalars.items())


def capability_reason(queue: QueueInfo, dimension: str, request: Resources) -> Reason:
    """The queue's hard cap has no room for `request`."""
    cap = queue.capability or Resources()
    used = queue.allocated.get(dimension) + queue.releasing.get(dimension)
    limit = cap.get(dimension)
    return Reason(
        Code.QUEUE_QUOTA,
        resource=dimension,
        requested=request.get(dimension),
        used=used,
        free=max(0, limit - used),
        limit=limit,
        queue=queue.name,
        wakes=(Wake.QUEUE,),
    )


def allocated_with_descendants(queues: Mapping[str, QueueInfo]) -> dict[str, Resources]:
    """What each queue uses together with all queues below it, as Volcano reports it.

    A queue without a parent is below `root`. Where parents form a circle each is counted once in every other.
    """
    totals = {name: queue.allocated.clone() for name, queue in queues.items()}
    for name, queue in queues.items():
        seen = {name}
        above = parent_of(queue)
        while above in totals and above not in seen:
            totals[above].add(queue.allocated)
            seen.add(above)
            above = parent_of(queues[above])
    return totals


def parent_of(queue: QueueInfo) -> str:
    """The name of the queue above, empty for `root`."""
    if queue.name == ROOT:
        return ""
    return (queue.spec.parent if queue.spec else "") or ROOT
