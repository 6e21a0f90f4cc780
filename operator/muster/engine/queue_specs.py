"""Queues and PriorityClasses to the scheduler's own."""

from __future__ import annotations

from muster.engine import wire_keys
from muster.engine.amounts import amounts, resources
from muster.engine.notes import stated_duration
from muster.engine.times import unix_seconds
from muster.kube import objects
from muster.scheduler.constraints import NodeGroups
from muster.scheduler.specs import PriorityClassSpec, QueueSpec, QueueState

_STATES = {state.value: state for state in QueueState} | {"": QueueState.OPEN}


def queue_spec(queue: objects.Queue) -> QueueSpec:
    """Translate a queue. Raises TranslationError."""
    spec, status = queue.spec, queue.status
    guarantee = spec.guarantee.resource if spec.guarantee is not None else None
    return QueueSpec(
        name=queue.metadata.name,
        weight=spec.weight if spec.weight is not None else 1,
        capability=resources(amounts(spec.capability, "spec.capability")),
        guarantee=resources(amounts(guarantee, "spec.guarantee.resource")),
        deserved=resources(amounts(spec.deserved, "spec.deserved")),
        reclaimable=spec.reclaimable is not False,
        parent=spec.parent or "",
        state=_STATES.get(status.state or "", QueueState.UNKNOWN),
        priority=spec.priority or 0,
        creation=unix_seconds(queue.metadata.creation_timestamp),
        node_groups=_node_groups(spec.affinity),
        starvation_timeout=stated_duration(queue, wire_keys.STARVATION_TIMEOUT),
        allocated=None if status.allocated is None else resources(amounts(status.allocated, "status.allocated")),
    )


def _node_groups(affinity: objects.QueueAffinity | None) -> NodeGroups | None:
    if affinity is None:
        return None
    near = affinity.node_group_affinity or objects.NodeGroupTerms()
    far = affinity.node_group_anti_affinity or objects.NodeGroupTerms()
    return NodeGroups(tuple(near.required), tuple(near.preferred), tuple(far.required), tuple(far.preferred))


def priority_class_spec(found: objects.PriorityClass) -> PriorityClassSpec:
    """Translate a PriorityClass."""
    return PriorityClassSpec(found.metadata.name, found.value, found.global_default)
