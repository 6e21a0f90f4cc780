"""Gives queues what their specs say: a hard cap, a deserved amount, a guarantee, each for itself or down a tree.

A queue may use what its cap leaves (`Entitlement.limit`); what it deserves decides who goes first and who has to give
back. With `enableHierarchy` every limit holds for a queue together with all queues below it. Entitlements depend on
queues and on the size of the cluster only, so they are worked out when one of those changes, never for a gang.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from muster.scheduler.framework import ExtensionPoints, Plugin, Standing, Vote
from muster.scheduler.plugins.arguments import boolean, natural, only
from muster.scheduler.plugins.capacity_victims import Victims
from muster.scheduler.plugins.entitlement import Entitlement, branches_apart, cause, common_level, flat, hierarchical
from muster.scheduler.queue import QueueInfo, promised_in
from muster.scheduler.reasons import Code, Reason, Wake
from muster.scheduler.resources import Resources, over_limit, partly_within, share

if TYPE_CHECKING:
    from muster.scheduler.evictable import EvictionContext
    from muster.scheduler.job import JobInfo
    from muster.scheduler.session import Session
    from muster.scheduler.task import TaskInfo


class Capacity(Plugin):
    """Volcano's `capacity`.

    With `capacity.DynamicResourceAllocationEnable` the devices that pods claim count against their queues, as
    `deviceclass/<class>`; what shares of devices (`<dimension>.deviceclass/<class>`) are used is not counted.
    """

    name: ClassVar[str] = "capacity"
    bounds_tree: ClassVar[bool] = True
    arguments: ClassVar = {
        "ancestorReclaimLevel": natural,
        "capacity.DynamicResourceAllocationEnable": boolean,
        "capacity.DRAConsumableCapacityEnable": only(boolean, False),
    }

    def __init__(self, arguments: dict[str, Any]) -> None:
        super().__init__(arguments)
        self._reclaim_level: int = arguments.get("ancestorReclaimLevel", 0)
        self.counts_devices = bool(arguments.get("capacity.DynamicResourceAllocationEnable", False))
        self._hierarchy = False
        self._entitled: dict[str, Entitlement] = {}
        self._seen: object = None

    def register(self, points: ExtensionPoints) -> None:
        """Orders queues, bounds what they use and what they admit, says who may take back from whom."""
        self._hierarchy = points.flag("enableHierarchy", default=False)
        points.add("queue_order", self._compare)
        points.add("allocatable", self._allocatable)
        points.add("job_enqueueable", self._enqueueable)
        points.add("preemptive", self._preemptive)
        points.add("reclaimable", self._reclaimable)
        points.add("unified_evictable", self._unified_evictable)
        points.add("queue_standing", self._standing)
        if self._hierarchy:
            points.add("victim_queue_order", _compare_victims)

    def on_session_open(self, session: Session) -> None:
        """Work out entitlements anew when queues or the cluster have changed."""
        cache = session.cache
        whole = cache.total.without_pods()
        if self.counts_devices:
            whole.add(cache.devices.totals())
        seen = (whole.key(), cache.tree_version)
        if seen == self._seen:
            return
        self._seen = seen
        before = self._entitled
        self._entitled = hierarchical(cache.queues, whole) if self._hierarchy else flat(cache.queues, whole)
        if self._entitled != before:
            cache.relief.queues.update(cache.queues)
            cache.relief.victims = True

    def _levels(self, queue: QueueInfo) -> tuple[QueueInfo, ...]:
        """The queues whose limits bind this one, itself first."""
        return queue.levels if self._hierarchy else (queue,)

    # --- quota ---

    def _allocatable(self, _session: Session, queue: QueueInfo, request: Resources) -> Reason | None:
        for each in self._levels(queue):
            entitled = self._entitled.get(each.name)
            if entitled is None:
                continue
            used = each.subtree.allocated
            dimension = over_limit(used, request, entitled.limit)
            if dimension is not None:
                return self._over_limit(each, dimension, request, used, entitled.limit)
        return None

    def _enqueueable(self, session: Session, job: JobInfo) -> Vote:
        minimum = job.min_resources
        if minimum is None:
            return True
        session.settle()
        for each in self._levels(job.queue):
            entitled = self._entitled.get(each.name)
            if entitled is None:
                continue
            sums = each.subtree
            used = sums.allocated.plus(sums.inqueue).minus(sums.elastic)
            dimension = over_limit(used, minimum, entitled.limit)
            if dimension is not None:
                promised = promised_in(sums, dimension)
                return self._over_limit(each, dimension, minimum, used, entitled.limit, promised)
        return True

    def _over_limit(
        self, queue: QueueInfo, dimension: str, request: Resources, used: Resources, limit: Resources, detail: str = ""
    ) -> Reason:
        """The most that the queue may use is too little: for its own cap, or for what others are guaranteed."""
        guaranteed = cause(self._levels(queue), self._entitled, dimension)
        found = self._quota(queue, dimension, request, used, limit)
        return replace(found, detail=", ".join(filter(None, (detail, guaranteed))))

    def _quota(self, queue: QueueInfo, dimension: str, request: Resources, used: Resources, limit: Resources) -> Reason:
        asked, taken, most = request.get(dimension), used.get(dimension), limit.get(dimension)
        capped = queue.capability.get(dimension) if queue.capability is not None else 0
        return Reason(
            Code.QUEUE_QUOTA,
            resource=dimension,
            requested=asked,
            used=taken,
            free=max(0, most - taken),
            limit=most,
            queue=queue.name,
            wakes=(Wake.QUEUE, Wake.CLUSTER),
            # Without a hierarchy the limit is the cluster's size where the queue sets none.
            more_nodes_help=not self._hierarchy and (not capped or taken + asked <= capped),
        )

    # --- order ---

    def _compare(self, _session: Session, left: QueueInfo, right: QueueInfo) -> int:
        """Higher priority first, then the smaller share, of equal shares the queue that deserves anything.

        In a tree the shares are those of the two branches that the queues are on, just below where they part.
        """
        ours, theirs = _priority(left), _priority(right)
        if ours != theirs:
            return -1 if ours > theirs else 1
        if self._hierarchy:
            left, right = branches_apart(left, right)
        here, there = self._share(left), self._share(right)
        if here != there:
            return -1 if here < there else 1
        return self._deserves_nothing(left) - self._deserves_nothing(right)

    def _share(self, queue: QueueInfo) -> float:
        """The largest part of what it deserves that the queue uses; who deserves nothing counts as having all."""
        entitled = self._entitled.get(queue.name)
        if entitled is None or entitled.deserved.is_empty():
            return 1.0
        deserved, used = entitled.deserved, queue.subtree.allocated
        return max(share(used.get(name), deserved.get(name)) for name in deserved.dimensions())

    def _deserves_nothing(self, queue: QueueInfo) -> bool:
        entitled = self._entitled.get(queue.name)
        return entitled is None or entitled.deserved.is_empty()

    def _standing(self, _session: Session, queue: QueueInfo) -> Standing | None:
        entitled = self._entitled.get(queue.name)
        if entitled is None:
            return None
        part = self._share(queue)
        return Standing(entitled.deserved, part, part > 1)

    # --- taking back ---

    def _preemptive(self, session: Session, queue: QueueInfo, tasks: Sequence[TaskInfo]) -> Reason | None:
        """A queue takes back from others where it would stay within what it deserves of something that it asks for."""
        entitled = self._entitled.get(queue.name)
        if queue.obstacle is not None or entitled is None:
            return queue.obstacle
        request, used = session.charge_of_all(tasks), queue.subtree.allocated
        dimension = over_limit(used, request, entitled.limit)
        if dimension is not None:
            return self._over_limit(queue, dimension, request, used, entitled.limit)
        if any(self._stays_within(each, request) for each in (queue, *self._near(queue))):
            return None
        dimension = next(iter(request.asked()), "cpu")
        return self._quota(queue, dimension, request, used, entitled.deserved)

    def _stays_within(self, queue: QueueInfo, request: Resources) -> bool:
        entitled = self._entitled.get(queue.name)
        return entitled is not None and partly_within(queue.subtree.allocated, request, entitled.deserved)

    def _near(self, queue: QueueInfo) -> tuple[QueueInfo, ...]:
        """The ancestors that reclaim looks at: those up to `ancestorReclaimLevel`, without the root."""
        return Victims.near(queue, self._reclaim_level) if self._hierarchy else ()

    def _reclaimable(
        self, _session: Session, reclaimer: TaskInfo, candidates: Sequence[TaskInfo]
    ) -> Sequence[TaskInfo]:
        level = self._reclaim_level if self._hierarchy else 0
        return Victims(self._entitled, level).choose(reclaimer, candidates)

    def _unified_evictable(
        self, _session: Session, context: EvictionContext, candidates: Sequence[TaskInfo]
    ) -> Sequence[TaskInfo]:
        if context.action != "gangreclaim":
            return candidates
        return Victims(self._entitled, 0).choose(None, candidates)


def _priority(queue: QueueInfo) -> int:
    return queue.spec.priority if queue.spec else 0


def _compare_victims(_session: Session, left: QueueInfo, right: QueueInfo, preemptor: QueueInfo) -> int:
    """The queue that shares more of the tree with the preemptor's loses its pods first."""
    return common_level(right, preemptor) - common_level(left, preemptor)
