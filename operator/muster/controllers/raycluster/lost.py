"""Pods that are lost with their node (kuberay#4078): they are taken away by force, so that others come in their place.

By force, since nobody is there to confirm a normal end, and a head that stays would go on being an address of the head
service. Should the node come back, its kubelet ends what it still runs. Pure: what is goes in, deletions come out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from muster.controllers.dead_nodes import DeadNodes
from muster.controllers.raycluster.place import keeps_place_until
from muster.controllers.raycluster.plan import Deletion, GroupPlan
from muster.kube.objects import Pod
from muster.ray.pod_health import is_terminating

LOOK_AGAIN_SECONDS = 30.0
"""How often to see whether the nodes can reach the control plane again."""


def plan_lost(pods: Iterable[Pod], nodes: DeadNodes, now: float) -> GroupPlan:
    """The pods that count as lost now, and when the next one does."""
    ends = [(pod, _lost_at(pod, nodes)) for pod in pods]
    if any(end < math.inf for _, end in ends) and nodes.control_plane_is_cut_off():
        return GroupPlan(look_again=now + LOOK_AGAIN_SECONDS)
    waits = [end for _, end in ends if now < end < math.inf]
    lost = (Deletion(pod, _why(pod, nodes, now), force=True) for pod, end in ends if end <= now)
    return GroupPlan(tuple(lost), look_again=min(waits, default=None))


def _lost_at(pod: Pod, nodes: DeadNodes) -> float:
    """One that should have gone already is lost as soon as its node does not answer."""
    since = nodes.silent_since(pod)
    if since is None:
        return math.inf
    return min(nodes.lost_at(pod), max(since, keeps_place_until(pod)) if is_terminating(pod) else math.inf)


def _why(pod: Pod, nodes: DeadNodes, now: float) -> str:
    since = nodes.silent_since(pod)
    return f"its node {pod.spec.node_name} has not answered for {now - (now if since is None else since):.0f} s"
