"""Which scheduling gates of a pod are the scheduler's to remove.

Its own, and Volcano's queue-allocation gate where the pod asks for it by the annotation of the same name. Volcano takes
that gate away as soon as the queue has quota, and reserves the quota until the pod finds a node; here quota, nodes and
gates are decided at once, so nothing is ever reserved in between. A gate of that name without the annotation, like any
other, is somebody else's.
"""

from __future__ import annotations

from typing import Any

from muster.engine.field_ownership import CLEARED, may_be_cleared
from muster.engine.wire_keys import QUEUE_ALLOCATION_GATE
from muster.kube.objects import Pod


def removable(pod: Pod, gate: str) -> frozenset[str]:
    """The names of the gates that may be removed; `gate` is our own."""
    opted_in = pod.metadata.annotations.get(QUEUE_ALLOCATION_GATE) == "true"
    return frozenset((gate, QUEUE_ALLOCATION_GATE)) if opted_in else frozenset((gate,))


def held_by_others(pod: Pod, gate: str) -> bool:
    """Whether a gate is on the pod that is not ours to remove."""
    ours = removable(pod, gate)
    return any(each.name not in ours for each in pod.spec.scheduling_gates)


def gate_removal(pod: Pod, gate: str) -> list[dict[str, Any]] | None:
    """A JSON patch that takes our gates away from this very pod (UID), at their places; None when it has none.

    Of a pod that we made it clears the record of its fields' owners, too.
    """
    ours = removable(pod, gate)
    patch: list[dict[str, Any]] = []
    # The last first: what is removed moves those behind it.
    for index, found in reversed(list(enumerate(pod.spec.scheduling_gates))):
        if found.name in ours:
            path = f"/spec/schedulingGates/{index}"
            patch += [{"op": "test", "path": f"{path}/name", "value": found.name}, {"op": "remove", "path": path}]
    if not patch:
        return None
    if may_be_cleared(pod.metadata):
        patch.append({"op": "add", "path": "/metadata/managedFields", "value": CLEARED})
    return [{"op": "test", "path": "/metadata/uid", "value": pod.metadata.uid}, *patch]
