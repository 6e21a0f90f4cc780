"""The tree of queues: who is below whom, what each queue uses together with those below it, and what is wrong with it.

`link` is called when queues have come, gone or changed, never for a task: from then on every account is entered in the
queue and in all above it (`QueueInfo.charged`). A fault (parents in a circle, a parent that does not exist, children
that are promised more than their parent has) is the business of the queues it touches and of those below them; all
others go on.
"""

from __future__ import annotations

from collections.abc import Mapping

from muster.scheduler.queue import IMPLICIT, ROOT, QueueInfo, Sums, parent_of
from muster.scheduler.reasons import Code, Reason
from muster.scheduler.resources import Resources, format_amount, total
from muster.scheduler.specs import QueueSpec


def link(queues: Mapping[str, QueueInfo]) -> list[QueueInfo]:
    """Work out paths, sums, faults and obstacles of all queues anew; returns those whose obstacle is another now."""
    for queue in queues.values():
        queue.above = _path(queue, queues)
        queue.children = ()
    for queue in queues.values():
        # `default` as it is by itself, made by nobody, does not turn the root into an inner queue.
        if queue.spec is not None and queue.spec is not IMPLICIT.get(queue.name):
            parent = queues.get(parent_of(queue))
            if parent is not None:
                parent.children = (*parent.children, queue)
    inner = {each.name for queue in queues.values() for each in queue.above}
    for name, queue in queues.items():
        queue.children = tuple(sorted(queue.children, key=lambda each: each.name))
        queue.lineage = (name, *[each.name for each in queue.above])
        queue.subtree = Sums() if name in inner else queue.own_sums()
    for queue in queues.values():
        line = (queue, *queue.above)
        queue.levels = tuple(each for each in line if each.name != ROOT or each.capability is not None)
        queue.charged = tuple(each.subtree for each in queue.levels if each.name in inner)
        for sums in queue.charged:
            sums.add(queue.own_sums())
    _find_faults(queues)
    changed: list[QueueInfo] = []
    for queue in queues.values():
        before, queue.obstacle = queue.obstacle, queue.find_obstacle()
        if before != queue.obstacle:
            changed.append(queue)
    return changed


def sum_up_root(queues: Mapping[str, QueueInfo]) -> None:
    """Bring the root's sums up to date: since every pod is below it, it is charged only where it has a cap to watch."""
    root = queues[ROOT]
    if root.capability is None and root.subtree.allocated is not root.allocated:
        root.subtree = Sums()
        root.subtree.add(root.own_sums())
        for queue in queues.values():
            if queue.above == (root,):
                root.subtree.add(queue.subtree)


def _path(queue: QueueInfo, queues: Mapping[str, QueueInfo]) -> tuple[QueueInfo, ...]:
    """The queues above, nearest first; it ends at the root, where a parent is missing, or where it would go round."""
    path: list[QueueInfo] = []
    here = queue
    while (above := queues.get(parent_of(here))) is not None and above is not queue and above not in path:
        path.append(above)
        here = above
    return tuple(path)


def _find_faults(queues: Mapping[str, QueueInfo]) -> None:
    own = {name: fault for name, queue in queues.items() if (fault := _own_fault(queue, queues)) is not None}
    for name, queue in queues.items():
        # Everything is below the root: what is wrong with it must not stop everything.
        inherited = (own[each.name] for each in queue.above if each.name in own and each.name != ROOT)
        queue.fault = own.get(name) or next(inherited, None)


def _own_fault(queue: QueueInfo, queues: Mapping[str, QueueInfo]) -> Reason | None:
    """What is wrong with this queue itself."""
    spec = queue.spec
    if spec is None:
        return None
    if spec.problem:
        return _broken(queue, spec.problem)
    if queue.name == ROOT:
        return None
    name = parent_of(queue)
    if name == queue.name:
        return _broken(queue, "it is its own parent")
    parent = queues.get(name)
    if parent is None or parent.spec is None:
        return _broken(queue, f"its parent {name} does not exist")
    circle = _circle(queue)
    if circle:
        return _broken(queue, f"its parents go round in a circle ({' - '.join(circle)})")
    return _too_much_promised(queue, spec)


def _circle(queue: QueueInfo) -> list[str]:
    """The names along the circle that the queue is a part of, none when it is in none."""
    last = queue.above[-1] if queue.above else queue
    return [*queue.lineage, queue.name] if parent_of(last) == queue.name else []


def _too_much_promised(queue: QueueInfo, spec: QueueSpec) -> Reason | None:
    """The children's guarantees, or what they deserve, add up to more than the queue has itself.

    Where the queue names no such amount for a resource it is measured by its cap, without that by nothing.
    """
    specs = [child.spec for child in queue.children if child.spec is not None]
    offers = (
        ("guaranteed", spec.guarantee, total(each.guarantee for each in specs)),
        ("deserved", _entitled(spec), total(_entitled(each) for each in specs)),
    )
    for word, offer, promised in offers:
        for name in promised.dimensions():
            limit = offer.get(name) or spec.capability.get(name)
            if limit and promised.get(name) > limit:
                amounts = f"{name} {format_amount(name, promised.get(name))} of {format_amount(name, limit)}"
                return _broken(queue, f"its children are promised more than it has ({word}: {amounts})")
    return None


def _entitled(spec: QueueSpec) -> Resources:
    return spec.deserved.maximum(spec.guarantee)


def _broken(queue: QueueInfo, detail: str) -> Reason:
    return Reason(Code.QUEUE_BROKEN, queue=queue.name, detail=detail)
