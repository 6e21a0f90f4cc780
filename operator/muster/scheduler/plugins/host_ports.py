"""Ports of the node that containers want for themselves."""

from __future__ import annotations

from muster.scheduler.judge import NodeCheck
from muster.scheduler.node import NodeInfo
from muster.scheduler.task import Shape

TAKEN = "node(s) didn't have free ports for the requested pod ports"


def host_ports(shape: Shape, later: bool) -> NodeCheck | None:
    """No pod on the node has one of the ports; the pods are looked through only for a pod that wants ports."""
    wanted = shape.scheduling.ports
    if not wanted:
        return None

    def check(node: NodeInfo) -> str | None:
        for task in node.tasks.values():
            taken = task.shape.scheduling.ports
            if not taken or (later and task.leaves):
                continue
            if any(one.conflicts(other) for one in wanted for other in taken):
                return TAKEN
        return None

    return check
