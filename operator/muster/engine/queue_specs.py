"""Queues and PriorityClasses to the scheduler's own."""

from __future__ import annotations

from typing import Final

from muster.engine import wire_keys
from muster.engine.amounts import TranslationError, amounts, resources
from muster.engine.notes import stated_duration
from muster.engine.times import unix_seconds
from muster.kube import objects
from muster.scheduler.constraints import NodeGroups
from muster.scheduler.resources import Resources
from muster.scheduler.specs import PriorityClassSpec, QueueSpec, QueueState

_STATES = {state.value: state for state in QueueState} | {"": QueueState.OPEN}
LARGEST_WEIGHT: Final = 65535
"""What the API server lets in: beside more than that the others' parts of the cluster would be rounded to nothing."""


def queue_spec(queue: objects.Queue) -> QueueSpec:
    """Translate a queue. One with an amount that can't be used has that as its `problem`."""
    spec, status = queue.spec, queue.status
    guarantee = spec.guarantee.resource if spec.guarantee is not None else None
    problems: list[str] = []

    def amount(quantities: objects.Quantities | None, path: str) -> Resources:
        try:
            return resources(amounts(quantities, path))
        except TranslationError as error:
            problems.append(str(error))
            return Resources()

    if spec.weight is not None and spec.weight < 1:
        problems.append(f"spec.weight: {spec.weight} is less than 1")
    elif spec.weight is not None and spec.weight > LARGEST_WEIGHT:
        problems.append(f"spec.weight: {spec.weight} is more than {LARGEST_WEIGHT}")
    return QueueSpec(
        name=queue.metadata.name,
        weight=spec.weight if spec.weight is not None else 1,
        capability=amount(spec.capability, "spec.capability"),
        guarantee=amount(guarantee, "spec.guarantee.resource"),
        deserved=amount(spec.deserved, "spec.deserved"),
        reclaimable=spec.reclaimable is not False,
        parent=spec.parent or "",
        state=_STATES.get(status.state or "", QueueState.UNKNOWN),
        priority=spec.priority or 0,
        creation=unix_seconds(queue.metadata.creation_timestamp),
        node_groups=_node_groups(spec.affinity),
        starvation_timeout=stated_duration(queue, wire_keys.STARVATION_TIMEOUT),
        hierarchy=_path(queue.metadata.annotations.get(wire_keys.HIERARCHY, "")),
        hierarchy_weights=_weights(queue.metadata.annotations.get(wire_keys.HIERARCHY_WEIGHTS, "")),
        problem="; ".join(problems),
    )


def _path(text: str) -> tuple[str, ...]:
    """`root/sci/dev` as its names."""
    return tuple(text.split("/")) if text else ()


def _weights(text: str) -> tuple[float, ...]:
    """`100/50` as numbers; what is no number, or is below 1, counts as 1 (Volcano's rule)."""
    return tuple(_weight(part) for part in text.split("/")) if text else ()


def _weight(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return 1.0
    return value if 1.0 <= value < float("inf") else 1.0


def _node_groups(affinity: objects.QueueAffinity | None) -> NodeGroups | None:
    if affinity is None:
        return None
    near = affinity.node_group_affinity or objects.NodeGroupTerms()
    far = affinity.node_group_anti_affinity or objects.NodeGroupTerms()
    return NodeGroups(tuple(near.required), tuple(near.preferred), tuple(far.required), tuple(far.preferred))


def priority_class_spec(found: objects.PriorityClass) -> PriorityClassSpec:
    """Translate a PriorityClass."""
    return PriorityClassSpec(found.metadata.name, found.value, found.global_default)
