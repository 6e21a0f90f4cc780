"""What is wrong with what queues are promised, in words: more than they may use, or children more than their parent.

A queue that contradicts itself so is broken by itself, and is promised nothing: its siblings go on. What a queue
deserves above its cap is no such fault: it is cut off there (Volcano's rule), and keeps nothing from anybody.
"""

from __future__ import annotations

from collections.abc import Collection

from muster.scheduler.queue import ROOT, QueueInfo, limits
from muster.scheduler.resources import Resources, format_amount, total
from muster.scheduler.specs import QueueSpec


def contradiction(queue: QueueInfo) -> str:
    """The queue is guaranteed more than it, or one above it, may use at all; empty when it is not.

    The root's cap is the business of all queues together, as the size of the cluster is.
    """
    guarantee = queue.spec.guarantee if queue.spec is not None else Resources()
    for level in (queue, *queue.above):
        for name, limit in limits(level.capability or Resources()) if level.name != ROOT else ():
            if guarantee.get(name) > limit:
                return _too_high(queue, level, name, format_amount(name, guarantee.get(name)))
    return ""


def _too_high(queue: QueueInfo, level: QueueInfo, name: str, guaranteed: str) -> str:
    own = level is queue
    limit = format_amount(name, (level.capability or Resources()).get(name))
    whose = "the queue" if own else f"queue {level.name} above it"
    field = f"spec.capability[{name}]" + ("" if own else f" of {level.name}")
    return (
        f"spec.guarantee.resource[{name}]: {guaranteed} is more than the {limit} that {whose} may use ({field}); "
        f"lower the guarantee, or raise {'the' if own else 'that'} capability"
    )


def too_much_promised(queue: QueueInfo, spec: QueueSpec, broken: Collection[str]) -> str:
    """The children's guarantees, or what they deserve, add up to more than the queue has itself; empty otherwise.

    Where the queue names no such amount for a resource it is measured by its cap, without that by nothing. Children
    that are `broken` themselves are promised nothing.
    """
    children = [child.spec for child in queue.children if child.spec is not None and child.name not in broken]
    for word, offer, promises in (
        ("guaranteed", spec.guarantee, {each.name: each.guarantee for each in children}),
        ("deserved", _entitled(spec), {each.name: _entitled(each) for each in children}),
    ):
        promised = total(promises.values())
        for name in promised.dimensions():
            limit = offer.get(name) or spec.capability.get(name)
            if limit and promised.get(name) > limit:
                amounts = f"{name} {format_amount(name, promised.get(name))} of {format_amount(name, limit)}"
                most = max(promises, key=lambda child: promises[child].get(name))
                largest = f"most to {most}: {format_amount(name, promises[most].get(name))}"
                return f"its children are promised more than it has ({word}: {amounts}), {largest}"
    return ""


def _entitled(spec: QueueSpec) -> Resources:
    return spec.deserved.maximum(spec.guarantee)
