"""What the `capacity` plugin entitles each queue to, alone or in a tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from muster.scheduler.plugins.guarantees import Guarantees
from muster.scheduler.queue import ROOT, QueueInfo
from muster.scheduler.resources import Resources, total

_UNLIMITED = 1 << 62


@dataclass(frozen=True, slots=True)
class Entitlement:
    """What a queue deserves, what no other may take from it, and the most that it may use.

    `shared` are the guarantees of those that it shares with; they are in `limit` already.
    """

    deserved: Resources
    guarantee: Resources
    limit: Resources
    shared: Guarantees | None = field(default=None, compare=False)


def flat(queues: Mapping[str, QueueInfo], whole: Resources) -> dict[str, Entitlement]:
    """Every queue for itself: the cluster less the others' guarantees, and its own cap."""
    shared = Guarantees(queues.values(), whole)
    found = {}
    for name, queue in queues.items():
        if queue.spec is not None and queue.fault is None:
            limit = shared.left.plus(queue.guarantee).capped_by(_cap(queue))
            deserved = queue.spec.deserved.capped_by(limit).maximum(queue.guarantee)
            found[name] = Entitlement(deserved, queue.guarantee, limit, shared)
    return found


def hierarchical(queues: Mapping[str, QueueInfo], whole: Resources) -> dict[str, Entitlement]:
    """Down the tree: what a parent has, less the siblings' guarantees, and the queue's own cap.

    The root is bounded by its own cap only, not by the size of the cluster (Volcano's rule: a queue may promise more
    than there is now), but of a resource that the cluster does not have there is none. It deserves what its children
    do, and likewise with the guarantee.
    """
    below: dict[str, list[QueueInfo]] = {}
    for queue in queues.values():
        if queue.spec is not None and queue.fault is None and queue.above:
            below.setdefault(queue.above[0].name, []).append(queue)
    root = queues[ROOT]
    every = Resources(_UNLIMITED, _UNLIMITED, dict.fromkeys(whole.scalars, _UNLIMITED))
    tops = below.get(ROOT, [])
    found = {
        ROOT: Entitlement(
            deserved=total(_deserved(each) for each in tops),
            guarantee=total(each.guarantee for each in tops),
            limit=every.capped_by(_cap(root)),
        )
    }
    parents = [root]
    while parents:
        parent = parents.pop()
        children = below.get(parent.name, [])
        shared = Guarantees(children, found[parent.name].limit)
        for child in children:
            limit = shared.left.plus(child.guarantee).capped_by(_cap(child))
            found[child.name] = Entitlement(_deserved(child), child.guarantee, limit, shared)
        parents += children
    return found


def _deserved(queue: QueueInfo) -> Resources:
    return queue.spec.deserved.maximum(queue.guarantee) if queue.spec is not None else queue.guarantee


def _cap(queue: QueueInfo) -> Resources:
    cap = queue.capability or Resources()
    return Resources(cap.milli_cpu or _UNLIMITED, cap.memory or _UNLIMITED, cap.scalars)


def cause(levels: Iterable[QueueInfo], found: Mapping[str, Entitlement], dimension: str) -> str:
    """In words, whose guarantees leave a queue no more than its limit; empty where only caps do.

    `levels` are the queue and those above it: what one of them lacks, those below it lack too. Told is of the level at
    which most is guaranteed to others.
    """
    most, told = 0, ""
    for queue in levels:
        entitled = found.get(queue.name)
        shared = entitled.shared if entitled is not None else None
        if entitled is None or shared is None or not shared.bind(queue, entitled.limit, dimension):
            break
        if shared.beside(queue, dimension) > most:
            most, told = shared.beside(queue, dimension), shared.cause(queue, dimension)
    return told


def path(queue: QueueInfo) -> tuple[QueueInfo, ...]:
    """The queue's ancestors, the root first."""
    return queue.above[::-1]


def common_level(left: QueueInfo, right: QueueInfo) -> int:
    """How deep the last ancestor is that two queues share; 0 is the root."""
    level = 0
    for position, (one, other) in enumerate(zip(path(left), path(right), strict=False)):
        if one is not other:
            break
        level = position
    return level


def branches_apart(left: QueueInfo, right: QueueInfo) -> tuple[QueueInfo, QueueInfo]:
    """The two queues, or ancestors of theirs, just below the last ancestor that they share."""
    level = common_level(left, right) + 1
    ours, theirs = path(left), path(right)
    return (ours[level] if level < len(ours) else left, theirs[level] if level < len(theirs) else right)
