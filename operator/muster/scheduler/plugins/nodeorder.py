"""Which of the nodes that fit is best: Kubernetes' scores, each 0 to 100, times their weights.

All are whole numbers. Preferred affinity and preferred taints are scaled by the best (worst) node that the pod may
run on at all, as Kubernetes scales its scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import TYPE_CHECKING, Any, ClassVar

from muster.scheduler.framework import ExtensionPoints, Plugin
from muster.scheduler.images import ImageBook
from muster.scheduler.judge import NodeWish, WishMaker
from muster.scheduler.node import NodeInfo
from muster.scheduler.plugins.arguments import integer
from muster.scheduler.plugins.image_locality import image_locality
from muster.scheduler.plugins.pod_affinity import pod_affinity_score
from muster.scheduler.plugins.topology_spread import topology_spread_score
from muster.scheduler.task import Shape

if TYPE_CHECKING:
    from muster.scheduler.cache import SchedulerCache

MAX_SCORE = 100
_GPU = "nvidia.com/gpu"
_SOFT = ("PreferNoSchedule",)


def least_requested(shape: Shape, node: NodeInfo) -> int:
    """How much of CPU and memory would stay free, on average; who asks for nothing is taken to use a little."""
    allocatable, used, request, there, own = node.allocatable, node.used, shape.request, node.assumed, shape.assumed
    cpu = _free(allocatable.milli_cpu, used.milli_cpu + request.milli_cpu + there[0] + own[0])
    memory = _free(allocatable.memory, used.memory + request.memory + there[1] + own[1])
    return (cpu + memory) // 2


def _free(capacity: int, requested: int) -> int:
    if capacity <= 0 or requested > capacity:
        return 0
    return (capacity - requested) * MAX_SCORE // capacity


def most_requested(shape: Shape, node: NodeInfo) -> int:
    """How much of CPU and memory would be in use, on average; who asks for nothing is taken to use a little."""
    allocatable, used, request, there, own = node.allocatable, node.used, shape.request, node.assumed, shape.assumed
    cpu = _taken(allocatable.milli_cpu, used.milli_cpu + request.milli_cpu + there[0] + own[0])
    memory = _taken(allocatable.memory, used.memory + request.memory + there[1] + own[1])
    return (cpu + memory) // 2


def _taken(capacity: int, requested: int) -> int:
    if capacity <= 0:
        return 0
    return min(requested, capacity) * MAX_SCORE // capacity


def balanced_allocation(shape: Shape, node: NodeInfo) -> int:
    """How alike the used parts of CPU, memory and (when asked for) GPU would be."""
    allocatable, used, request = node.allocatable, node.used, shape.request
    fractions: list[float] = []
    if allocatable.milli_cpu > 0:
        fractions.append(min(1.0, (used.milli_cpu + request.milli_cpu) / allocatable.milli_cpu))
    if allocatable.memory > 0:
        fractions.append(min(1.0, (used.memory + request.memory) / allocatable.memory))
    if request.scalars.get(_GPU) and allocatable.scalars.get(_GPU):
        asked = used.scalars.get(_GPU, 0) + request.scalars[_GPU]
        fractions.append(min(1.0, asked / allocatable.scalars[_GPU]))
    return int((1.0 - _deviation(fractions)) * MAX_SCORE)


def _deviation(fractions: list[float]) -> float:
    if len(fractions) == 2:
        return abs(fractions[0] - fractions[1]) / 2
    if len(fractions) < 2:
        return 0.0
    mean = sum(fractions) / len(fractions)
    return sqrt(sum((each - mean) ** 2 for each in fractions) / len(fractions))


def node_affinity(shape: Shape, nodes: Sequence[NodeInfo]) -> list[int]:
    """The preferred node affinity terms that each node fulfils."""
    if not shape.scheduling.preferred:
        return [0] * len(nodes)
    raw = [shape.scheduling.preference(node.name, node.labels) for node in nodes]
    largest = max(raw, default=0)
    return [each * MAX_SCORE // largest if largest > 0 else each for each in raw]


def taint_toleration(shape: Shape, nodes: Sequence[NodeInfo]) -> list[int]:
    """Fewer PreferNoSchedule taints that the pod does not tolerate are better."""
    raw = [_soft_taints(shape, node) for node in nodes]
    largest = max(raw, default=0)
    if largest == 0:
        return [MAX_SCORE] * len(nodes)
    return [MAX_SCORE - each * MAX_SCORE // largest for each in raw]


def _soft_taints(shape: Shape, node: NodeInfo) -> int:
    if node.spec is None or not node.spec.taints:
        return 0
    return sum(1 for _ in shape.scheduling.untolerated(node.spec.taints, _SOFT))


class NodeOrdering(Plugin):
    """Volcano's `nodeorder`; a weight of 0 switches a score off."""

    name: ClassVar[str] = "nodeorder"
    arguments: ClassVar = {
        "leastrequested.weight": integer,
        "mostrequested.weight": integer,
        "balancedresource.weight": integer,
        "nodeaffinity.weight": integer,
        "tainttoleration.weight": integer,
        "podaffinity.weight": integer,
        "imagelocality.weight": integer,
        "podtopologyspread.weight": integer,
    }

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._least = arguments.get("leastrequested.weight", 1)
        self._most = arguments.get("mostrequested.weight", 0)
        self._balanced = arguments.get("balancedresource.weight", 1)
        self._affinity = arguments.get("nodeaffinity.weight", 2)
        self._taints = arguments.get("tainttoleration.weight", 3)
        self._company = arguments.get("podaffinity.weight", 2)
        self._locality = arguments.get("imagelocality.weight", 1)
        self._spread = arguments.get("podtopologyspread.weight", 2)
        self._images = ImageBook()

    def register(self, points: ExtensionPoints) -> None:
        """Scores nodes by their accounts, and makes by what they are."""
        if self._least or self._most or self._balanced:
            points.add("node_orders", self._score)
        if self._affinity or self._taints or self._locality:
            points.add("make_orders", self._score_makes)
        if self._company:
            points.add("wishes", weighted(pod_affinity_score, self._company))
        if self._spread:
            points.add("wishes", weighted(topology_spread_score, self._spread))

    def attach(self, cache: SchedulerCache) -> None:
        """Learn which nodes have which images."""
        self._images = cache.index.images

    def _score(self, shape: Shape, node: NodeInfo) -> int:
        score = 0
        if self._least:
            score += self._least * least_requested(shape, node)
        if self._most:
            score += self._most * most_requested(shape, node)
        if self._balanced:
            score += self._balanced * balanced_allocation(shape, node)
        return score

    def _score_makes(self, shape: Shape, nodes: Sequence[NodeInfo]) -> list[int]:
        affinity = node_affinity(shape, nodes)
        taints = taint_toleration(shape, nodes)
        scores = [self._affinity * a + self._taints * t for a, t in zip(affinity, taints, strict=True)]
        if self._locality and shape.scheduling.images:
            found = image_locality(shape, nodes, self._images)
            scores = [score + self._locality * local for score, local in zip(scores, found, strict=True)]
        return scores


def weighted(make: WishMaker, weight: int) -> WishMaker:
    """The same wish, so many times as strong."""

    def made(shape: Shape, later: bool) -> NodeWish | None:
        wish = make(shape, later)
        if wish is None:
            return None

        def points(nodes: Sequence[NodeInfo]) -> Sequence[float] | None:
            found = wish(nodes)
            return None if found is None else [weight * score for score in found]

        return points

    return made
