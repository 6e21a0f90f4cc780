"""Gives queues their own nodes: which groups of nodes a queue's pods may use, and which they would rather use.

A node's group is its label `volcano.sh/nodegroup-name`; a queue names groups in `spec.affinity`. What is forbidden goes
before what is required, but a group that is merely unwanted can still be used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from muster.scheduler.constraints import NodeGroups, PodConstraints
from muster.scheduler.framework import ExtensionPoints, Plugin
from muster.scheduler.node import NodeInfo
from muster.scheduler.plugins.arguments import boolean
from muster.scheduler.queue import QueueInfo, parent_of
from muster.scheduler.task import Shape

if TYPE_CHECKING:
    from muster.scheduler.task import TaskInfo

GROUP_LABEL = "volcano.sh/nodegroup-name"
_BASE = 100
_UNSET = NodeGroups()


class NodeGrouping(Plugin):
    """Volcano's `nodegroup`.

    With `strict` (the default) a queue that names no group has no nodes at all; without it, those that are in none.
    """

    name: ClassVar[str] = "nodegroup"
    arguments: ClassVar = {"strict": boolean, "enablePreferredOrder": boolean}

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._strict: bool = arguments.get("strict", True)
        self._ordered: bool = arguments.get("enablePreferredOrder", False)
        self._inherits = False

    def register(self, points: ExtensionPoints) -> None:
        """Filters and scores nodes by their group."""
        self._inherits = points.flag("enableHierarchy", default=False)
        points.mention(GROUP_LABEL)
        points.add("outlooks", self._outlook)
        points.add("predicates", self.refusal)
        points.add("make_orders", self._scores)

    def _outlook(self, task: TaskInfo, queues: Mapping[str, QueueInfo], constraints: PodConstraints) -> PodConstraints:
        """A pod is bound to the node groups of its queue."""
        groups = self._groups_of(task.job.queue, queues) if task.job is not None else None
        return replace(constraints, node_groups=groups or _UNSET)

    def _groups_of(self, queue: QueueInfo, queues: Mapping[str, QueueInfo]) -> NodeGroups | None:
        """The queue's own groups, or (with enableHierarchy) those of its nearest ancestor that says something."""
        seen: set[str] = set()
        found: QueueInfo | None = queue
        while found is not None and found.name not in seen:
            if found.spec is not None and found.spec.node_groups is not None:
                return found.spec.node_groups
            if not self._inherits:
                return None
            seen.add(found.name)
            found = queues.get(parent_of(found))
        return None

    def refusal(self, shape: Shape, node: NodeInfo) -> str | None:
        """Why the node's group is not for the pod."""
        groups = shape.scheduling.node_groups or _UNSET
        group = node.labels.get(GROUP_LABEL)
        if group is None:
            allowed = not self._strict and not groups
            return None if allowed else "node(s) in no node group"
        if not groups:
            return "node(s) in a node group, but the queue names none"
        if group in groups.unwanted:
            return None
        if group in groups.forbidden or group not in (*groups.required, *groups.preferred):
            return "node(s) in node groups that are not the queue's"
        return None

    def _scores(self, shape: Shape, nodes: Sequence[NodeInfo]) -> list[int]:
        groups = shape.scheduling.node_groups or _UNSET
        return [self.score(groups, node.labels.get(GROUP_LABEL)) for node in nodes]

    def score(self, groups: NodeGroups, group: str | None) -> int:
        """100 points for a required group, up to 50 more for a preferred one, -1 for one that is unwanted."""
        if group is None:
            return 0
        if group in groups.unwanted:
            return -1
        points = _BASE if group in groups.required else 0
        if group in groups.preferred:
            distinct = list(dict.fromkeys(groups.preferred))
            left = len(distinct) - distinct.index(group) if self._ordered else len(distinct)
            points += _BASE * left // (2 * len(distinct))
        return points
