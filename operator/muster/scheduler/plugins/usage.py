"""Keeps pods off nodes that are busy, and draws them to idle ones, by what nodes really use.

Requests say what pods may take, not what they do. The engine reads the nodes' average load from Prometheus (section
`metrics` of the configuration); a figure older than five minutes says nothing, and a node without one is judged by
its requests alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from muster.scheduler.framework import ExtensionPoints, Plugin
from muster.scheduler.node import NodeInfo
from muster.scheduler.plugins.arguments import integer, number, record
from muster.scheduler.specs import NodeUsage
from muster.scheduler.task import Shape

if TYPE_CHECKING:
    from muster.scheduler.session import Session

FRESH = 300.0
_HUNDRED = 100


class Usage(Plugin):
    """Volcano's `usage`."""

    name: ClassVar[str] = "usage"
    arguments: ClassVar = {
        "usage.weight": integer,
        "cpu.weight": integer,
        "memory.weight": integer,
        "thresholds": record({"cpu": number, "mem": number}),
    }

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._weight: int = arguments.get("usage.weight", 5)
        self._cpu: int = arguments.get("cpu.weight", 1)
        self._memory: int = arguments.get("memory.weight", 1)
        if min(self._weight, self._cpu, self._memory) < 0:
            raise ValueError("no weight may be negative")
        thresholds = arguments.get("thresholds", {})
        self._most_cpu: Fraction = thresholds.get("cpu", Fraction(80))
        self._most_memory: Fraction = thresholds.get("mem", Fraction(80))
        self._now = 0.0
        self._stale_at: float | None = None

    def register(self, points: ExtensionPoints) -> None:
        """Filters and scores nodes by their load."""
        points.add("predicates", self.refusal)
        if self._weight and self._cpu + self._memory:
            points.add("make_orders", lambda _shape, nodes: self._scores(nodes))

    def on_session_open(self, session: Session) -> None:
        """Figures that have grown old count no more."""
        self._now = session.now
        if self._stale_at is not None and self._stale_at <= session.now:
            session.framework.judge_anew(session)
        ends = (node.usage.at + FRESH for node in session.cache.nodes.values() if node.usage is not None)
        self._stale_at = min((end for end in ends if end > session.now), default=None)

    def deadline(self, session: Session) -> float | None:
        """When the next figure grows old."""
        return self._stale_at if self._stale_at is not None and self._stale_at > session.now else None

    def _usage_of(self, node: NodeInfo) -> NodeUsage | None:
        usage = node.usage
        return usage if usage is not None and self._now < usage.at + FRESH else None

    def refusal(self, _shape: Shape, node: NodeInfo) -> str | None:
        """A node above a threshold takes no pods."""
        usage = self._usage_of(node)
        if usage is None:
            return None
        if usage.cpu > self._most_cpu:
            return "node(s) whose CPU load exceeds the upper limit"
        return "node(s) whose memory load exceeds the upper limit" if usage.memory > self._most_memory else None

    def _scores(self, nodes: Sequence[NodeInfo]) -> list[int]:
        return [self.score(node) for node in nodes]

    def score(self, node: NodeInfo) -> int:
        """100 points times the weight for a node without load; none where nothing is known."""
        usage = self._usage_of(node)
        if usage is None:
            return 0
        free = self._cpu * (_HUNDRED - usage.cpu) + self._memory * (_HUNDRED - usage.memory)
        return int(self._weight * free / (self._cpu + self._memory))
