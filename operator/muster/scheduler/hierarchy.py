"""The tree of queues: who is below whom, what each queue uses together with those below it, and what is wrong with it.

`link` is called when queues have come, gone or changed, never for a task: from then on every account is entered in the
queue and in all above it (`QueueInfo.charged`). A fault (parents in a circle, a parent that does not exist, promises
that contradict each other) is the business of the queues it touches and of those below them; all others go on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from muster.scheduler.promises import contradiction, too_much_promised
from muster.scheduler.queue import IMPLICIT, ROOT, QueueInfo, Sums, parent_of
from muster.scheduler.reasons import Code, Reason


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
    own: dict[str, Reason] = {}
    # The deepest first: what is broken below a queue is promised nothing of what that has.
    for queue in sorted(queues.values(), key=lambda each: len(each.above), reverse=True):
        if detail := _own_fault(queue, queues, own):
            own[queue.name] = Reason(Code.QUEUE_BROKEN, queue=queue.name, detail=detail)
    for name, queue in queues.items():
        # Everything is below the root: what is wrong with it must not stop everything.
        inherited = (own[each.name] for each in queue.above if each.name in own and each.name != ROOT)
        queue.fault = own.get(name) or next(inherited, None)


def _own_fault(queue: QueueInfo, queues: Mapping[str, QueueInfo], broken: Collection[str]) -> str:
    """What is wrong with this queue itself, in words; empty when nothing is. `broken` are those below that are."""
    spec = queue.spec
    if spec is None or spec.problem or queue.name == ROOT:
        return spec.problem if spec is not None else ""
    name = parent_of(queue)
    if name == queue.name:
        return "it is its own parent"
    parent = queues.get(name)
    if parent is None or parent.spec is None:
        return f"its parent {name} does not exist"
    if circle := _circle(queue):
        return f"its parents go round in a circle ({' - '.join(circle)})"
    return contradiction(queue) or too_much_promised(queue, spec, broken)


def _circle(queue: QueueInfo) -> list[str]:
    """The names along the circle that the queue is a part of, none when it is in none."""
    last = queue.above[-1] if queue.above else queue
    return [*queue.lineage, queue.name] if parent_of(last) == queue.name else []
