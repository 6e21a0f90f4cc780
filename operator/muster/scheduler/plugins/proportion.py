"""Shares the cluster among queues by weight, water filling up to what each asks for.

`deserved` is what a queue may use now: its weighted part of the cluster, never more than its own jobs ask for nor than
it can ever have, never less than its guarantee. All amounts are integers, and the parts add up to the whole
(`water_filling.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from muster.scheduler.framework import ExtensionPoints, Plugin, Standing, Vote
from muster.scheduler.plugins.guarantees import Guarantees
from muster.scheduler.plugins.water_filling import FINE, Claim, Part, fill
from muster.scheduler.queue import QueueInfo, limits, promised_in
from muster.scheduler.reasons import Code, Reason, Wake
from muster.scheduler.resources import Resources, share, total
from muster.scheduler.specs import QueueSpec

if TYPE_CHECKING:
    from muster.scheduler.job import JobInfo
    from muster.scheduler.session import Session
    from muster.scheduler.task import TaskInfo

_UNLIMITED = 1 << 62


class Proportion(Plugin):
    """Volcano's `proportion`."""

    name: ClassVar[str] = "proportion"

    def __init__(self, arguments: dict[str, object]) -> None:
        super().__init__(arguments)
        self._seen: object = None
        self._guarantees = Guarantees()
        self._parts: dict[str, Part] = {}

    def register(self, points: ExtensionPoints) -> None:
        """Orders queues, bounds what they use and what they admit."""
        points.add("queue_order", self._queue_order)
        points.add("overused", _overused)
        points.add("allocatable", self._allocatable)
        points.add("job_enqueueable", self._enqueueable)
        points.add("preemptive", self._preemptive)
        points.add("reclaimable", _above_deserved)
        points.add("queue_standing", self._standing)

    def on_session_open(self, session: Session) -> None:
        """Compute `deserved` anew when anything that it depends on has changed."""
        cache = session.cache
        queues = sorted(cache.queues.values(), key=lambda queue: queue.name)
        seen = (
            cache.total.key(),
            [(q.name, q.spec, q.obstacle is None, bool(q.jobs), q.allocated.key(), q.pending.key()) for q in queues],
        )
        if seen == self._seen:
            return
        self._seen = seen
        self._guarantees = Guarantees(queues, cache.total.without_pods())
        claims = {
            queue.name: self._claim(queue, queue.spec) for queue in queues if queue.jobs and queue.spec is not None
        }
        self._parts = dict(zip(claims, fill(cache.total.without_pods(), list(claims.values())), strict=True))
        for queue in queues:
            part = self._parts.get(queue.name)
            before, after = queue.deserved or Resources(), part.whole if part is not None else Resources()
            queue.deserved = after
            if after != before:
                cache.relief.victims = True
            if not after.less_equal(before):
                cache.relief.queues.add(queue.name)

    def _claim(self, queue: QueueInfo, spec: QueueSpec) -> Claim:
        request = queue.allocated.without_pods()
        if queue.obstacle is None:
            request.add(queue.pending.without_pods())
        return Claim(
            weight=max(1, spec.weight) if queue.fault is None else 1,  # what is wrong with it may be its weight
            request=request,
            guarantee=queue.guarantee.without_pods(),
            most=self._real_capability(queue, spec),
        )

    def _real_capability(self, queue: QueueInfo, spec: QueueSpec) -> Resources:
        """What the queue could ever have: the cluster less the others' guarantees, and its own cap."""
        left = self._guarantees.left.plus(queue.guarantee.without_pods())
        return left.capped_by(_or_unlimited(spec.capability))

    def _enqueueable(self, session: Session, job: JobInfo) -> Vote:
        queue, minimum = job.queue, job.min_resources
        if minimum is None or queue.spec is None:
            return True
        session.settle()
        used = queue.allocated.plus(queue.inqueue).minus(queue.elastic)
        limit = self._real_capability(queue, queue.spec)
        lacking = used.plus(minimum).violations(limit, minimum)
        if not lacking:
            return True
        promised = promised_in(queue.own_sums(), lacking[0])
        return self._quota(queue, lacking[0], minimum, used, limit, promised)

    def _allocatable(self, _session: Session, queue: QueueInfo, request: Resources) -> Reason | None:
        deserved = queue.deserved or Resources()
        lacking = queue.allocated.plus(request).violations(deserved, request)
        if not lacking:
            return None
        return self._quota(queue, lacking[0], request, queue.allocated, deserved, "its share of the cluster now")

    def _preemptive(self, session: Session, queue: QueueInfo, tasks: Sequence[TaskInfo]) -> Reason | None:
        """A queue takes back from others no more than it deserves."""
        return self._allocatable(session, queue, total(task.request for task in tasks))

    def _quota(
        self, queue: QueueInfo, resource: str, request: Resources, used: Resources, limit: Resources, detail: str
    ) -> Reason:
        bound = self._guarantees.bind(queue, limit, resource)
        cause = self._guarantees.cause(queue, resource) if bound else ""
        return replace(_quota(queue, resource, request, used, limit), detail=", ".join(filter(None, (detail, cause))))

    def _share(self, queue: QueueInfo) -> float:
        """The largest part of its deserved amounts that the queue uses; above 1 it uses more.

        Of the exact amounts, since queues that use the same part of what they deserve are equals: age decides then.
        """
        part = self._parts.get(queue.name)
        if part is None or queue.deserved is None:
            return 0.0
        exact, used = part.exact, queue.allocated
        return round(max(share(used.get(name) * FINE, exact.get(name)) for name in exact.dimensions()), 6)

    def _queue_order(self, _session: Session, left: QueueInfo, right: QueueInfo) -> int:
        """Higher queue priority first, then the smaller share."""
        ours, theirs = _priority(left), _priority(right)
        if ours != theirs:
            return -1 if ours > theirs else 1
        left_share, right_share = self._share(left), self._share(right)
        return (left_share > right_share) - (left_share < right_share)

    def _standing(self, session: Session, queue: QueueInfo) -> Standing | None:
        if queue.deserved is None:
            return None
        overused = _overused(session, queue) and not queue.allocated.is_empty()
        return Standing(queue.deserved, self._share(queue), overused)


def _or_unlimited(capability: Resources) -> Resources:
    return Resources(
        capability.milli_cpu if capability.milli_cpu > 0 else _UNLIMITED,
        capability.memory if capability.memory > 0 else _UNLIMITED,
        capability.scalars,
    )


def _priority(queue: QueueInfo) -> int:
    return queue.spec.priority if queue.spec else 0


def _overused(_session: Session, queue: QueueInfo) -> bool:
    """All of what it deserves is in use."""
    return queue.deserved is not None and queue.deserved.less_equal(queue.allocated)


def _above_deserved(_session: Session, _reclaimer: TaskInfo, candidates: Sequence[TaskInfo]) -> list[TaskInfo]:
    """Tasks of queues that use more than they deserve of anything, as long as they do."""
    left: dict[str, Resources] = {}
    victims = []
    for task in candidates:
        if task.job is None:
            continue
        queue = task.job.queue
        used = left.get(queue.name)
        if used is None:
            used = left[queue.name] = queue.allocated.without_pods()
        if not used.less_equal(queue.deserved or Resources()):
            used.sub(task.request.without_pods())
            victims.append(task)
    return victims


def _quota(queue: QueueInfo, resource: str, request: Resources, used: Resources, limit: Resources) -> Reason:
    cap = queue.capability
    capped = dict(limits(cap)) if cap is not None else {}
    asked = request.get(resource)
    return Reason(
        Code.QUEUE_QUOTA,
        resource=resource,
        requested=asked,
        used=used.get(resource),
        free=max(0, limit.get(resource) - used.get(resource)),
        limit=limit.get(resource),
        queue=queue.name,
        wakes=(Wake.QUEUE, Wake.CLUSTER),
        more_nodes_help=used.get(resource) + asked <= capped.get(resource, _UNLIMITED),
    )
