"""Which pods are on a node that does not answer any more.

The node controller says so in the node's condition Ready, which becomes Unknown when its kubelet has been silent for a
while. Nobody confirms the end of a pod there, and until the node comes back or is deleted the pod stays, often shown as
running. After a set time such a pod counts as lost. One on a node that answers, however unwell, is its kubelet's.

Where most nodes are silent it is the control plane that can't be reached: pods go on running there, and none is lost.
The bounds are those by which Kubernetes' own node controller stops evicting.
"""

from __future__ import annotations

import math

from muster.controllers.clock import Clock, seconds_of
from muster.kube.informer import Change, Informer
from muster.kube.objects import Node, Pod
from muster.ray.pod_health import condition

_FEW = 2
_MOST = 0.55

NODE_INDEX = "node"
"""Index of pods: the name of the node that they are bound to."""


class DeadNodes:
    """What is known of nodes. `patience` is how long a node may be silent, in seconds."""

    def __init__(self, nodes: Informer[Node], clock: Clock, patience: float) -> None:
        self._nodes = nodes
        self._clock = clock
        self.patience = patience

    def lost_at(self, pod: Pod) -> float:
        """The Unix second at which the pod counts as lost; infinite while its node answers."""
        since = self.silent_since(pod)
        return math.inf if since is None else since + self.patience

    def control_plane_is_cut_off(self) -> bool:
        """Whether so many nodes are silent at once that they can't all be dead."""
        nodes = self._nodes.list()
        silent = sum(_silent_since(node) is not None for node in nodes)
        return silent > 0 and (silent == len(nodes) or (silent > _FEW and silent >= _MOST * len(nodes)))

    def silent_since(self, pod: Pod) -> float | None:
        """Since when (Unix seconds) the pod's node has not answered; None while it does, or where there is none."""
        node = self._nodes.get(None, pod.spec.node_name) if pod.spec.node_name else None
        return None if node is None else _silent_since(node)


def silence_changed(change: Change[Node]) -> bool:
    """Whether the node has fallen silent, or has come back."""
    before, after = (None if node is None else _silent_since(node) for node in (change.old, change.new))
    return before != after


def node_of(pod: Pod) -> list[str]:
    """The key of a pod in the index of nodes."""
    return [pod.spec.node_name] if pod.spec.node_name else []


def _silent_since(node: Node) -> float | None:
    ready = condition(node.status.conditions, "Ready")
    if ready is None or ready.status != "Unknown":
        return None
    return seconds_of(ready.last_transition_time)
