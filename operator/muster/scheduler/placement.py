"""Finding the best node for a task without looking at every node.

Nodes of one make (equal allocatable, taints, and the labels that any pod mentions) share every verdict about what
they are; nodes of one `Bucket` (one make and equal accounts) share every verdict and score. A bucket never changes:
a node whose accounts change moves to another one. A `ShapeView` keeps, for one shape of task, a heap of buckets by
score, and catches up with the buckets that gained a node since it was asked last. So a placement re-examines only the
touched node, and a shape never seen before costs the number of buckets, not of nodes.

The order is exact and depends on nothing but the model: highest score first, then the lowest node name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush, heapreplace

from muster.scheduler.constraints import NODE_NAME_FIELD
from muster.scheduler.node import NodeInfo
from muster.scheduler.resources import PODS, Resources, dominant_share
from muster.scheduler.specs import NodeSpec
from muster.scheduler.task import Shape

Predicate = Callable[[Shape, NodeInfo], "str | None"]
NodeOrder = Callable[[Shape, NodeInfo], float]
PRECISION = 1000
"""Scores are compared in thousandths of a point: finer than any plugin means, coarser than what floats add by noise."""

MakeOrder = Callable[[Shape, Sequence[NodeInfo]], Sequence[int]]


@dataclass(frozen=True, slots=True)
class Judge:
    """How nodes are filtered and scored.

    `predicates` and `make_orders` may read only what makes a make (spec, taints, mentioned labels); `node_predicates`
    and `node_orders` may read the accounts too. A make order scores all admissible makes at once, since Kubernetes
    scales its answers by the largest.
    """

    predicates: tuple[Predicate, ...] = ()
    node_orders: tuple[NodeOrder, ...] = ()
    make_orders: tuple[MakeOrder, ...] = ()
    node_predicates: tuple[Predicate, ...] = ()

    def refusal(self, shape: Shape, node: NodeInfo) -> str | None:
        """Why a node of this make is out of the question, None when it is not."""
        for predicate in self.predicates:
            failure = predicate(shape, node)
            if failure is not None:
                return failure
        return None

    def refusal_now(self, shape: Shape, node: NodeInfo) -> str | None:
        """Why a node is out of the question with the accounts that it has, though its make is not."""
        for predicate in self.node_predicates:
            failure = predicate(shape, node)
            if failure is not None:
                return failure
        return None


class Make:
    """Nodes that differ only in their accounts."""

    __slots__ = ("id", "key", "nodes")

    def __init__(self, make_id: int, key: object) -> None:
        self.id = make_id
        self.key = key
        self.nodes: dict[str, NodeInfo] = {}

    @property
    def sample(self) -> NodeInfo:
        """Any of the nodes; they all look alike here."""
        return next(iter(self.nodes.values()))


class Bucket:
    """Nodes of one make with equal accounts."""

    __slots__ = ("_names", "future_idle", "id", "idle", "key", "make", "members")

    def __init__(self, bucket_id: int, key: object, make: Make, node: NodeInfo) -> None:
        self.id = bucket_id
        self.key = key
        self.make = make
        self.idle = node.idle
        self.future_idle = node.future_idle
        self.members: dict[str, NodeInfo] = {}
        self._names: list[str] = []

    def first(self) -> str | None:
        """The lowest name, None when the bucket is empty."""
        names = self._names
        while names and names[0] not in self.members:
            heappop(names)
        return names[0] if names else None

    def join(self, node: NodeInfo) -> bool:
        """Add a node; True when it became the first."""
        before = self.first()
        self.members[node.name] = node
        heappush(self._names, node.name)
        return before is None or node.name < before

    def leave(self, node: NodeInfo) -> None:
        """Take a node out."""
        del self.members[node.name]


class NodeIndex:
    """All nodes in buckets, and the views of the shapes. `version` is another one after each change."""

    def __init__(self) -> None:
        self.epoch = 0
        self.version = 0
        self.log: list[Bucket] = []
        self.buckets: dict[object, Bucket] = {}
        self.makes: dict[object, Make] = {}
        self.judge = Judge()
        self._make_of: dict[str, Make] = {}
        self._mentioned: set[str] = set()
        self._dirty: dict[str, NodeInfo] = {}
        self._views: dict[int, ShapeView] = {}
        self._next_id = 0

    # --- changes ---

    def touch(self, node: NodeInfo) -> None:
        """The node's accounts changed."""
        if node.spec is not None:
            self._dirty[node.name] = node
            self.version += 1

    def set_spec(self, node: NodeInfo) -> None:
        """The node is new, or its spec changed."""
        self._leave_make(node)
        self.version += 1
        if node.spec is not None:
            self._join_make(node, node.spec)
            self._dirty[node.name] = node

    def remove(self, node: NodeInfo) -> None:
        """The node is gone (or only pods name it still)."""
        self._leave_make(node)
        self.version += 1
        self._dirty.pop(node.name, None)
        if node.bucket is not None:
            node.bucket.leave(node)
            node.bucket = None

    def mention(self, keys: set[str]) -> None:
        """Some pod's constraints read these labels: from now on they tell makes apart."""
        if keys <= self._mentioned:
            return
        self._mentioned |= keys
        for node in [node for make in self.makes.values() for node in make.nodes.values()]:
            self.set_spec(node)

    def use(self, judge: Judge) -> None:
        """Filter and score by this judge from now on."""
        if judge is not self.judge:
            self.judge = judge
            self._views.clear()

    def forget(self, shape: Shape) -> None:
        """No task has the shape any more."""
        self._views.pop(shape.id, None)

    # --- questions ---

    def view(self, shape: Shape) -> ShapeView:
        """The up-to-date view of a shape."""
        if self._dirty:
            self._refresh()
        view = self._views.get(shape.id)
        if view is None:
            view = self._views[shape.id] = ShapeView(self, shape)
        view.catch_up()
        return view

    def filled_buckets(self) -> Iterator[Bucket]:
        """The buckets that hold nodes."""
        if self._dirty:
            self._refresh()
        return (bucket for bucket in self.buckets.values() if bucket.members)

    # --- inside ---

    def _refresh(self) -> None:
        for node in self._dirty.values():
            bucket = self._bucket_for(node)
            if bucket is node.bucket:
                continue
            if node.bucket is not None:
                node.bucket.leave(node)
            node.bucket = bucket
            if bucket.join(node):
                self.log.append(bucket)
        self._dirty.clear()
        if len(self.log) > 4 * len(self._make_of) + 1024:
            self._restart()

    def _bucket_for(self, node: NodeInfo) -> Bucket:
        make = self._make_of[node.name]
        key = (make.id, node.used.key(), node.releasing.key(), node.pipelined.key())
        bucket = self.buckets.get(key)
        if bucket is None:
            self._next_id += 1
            bucket = self.buckets[key] = Bucket(self._next_id, key, make, node)
        return bucket

    def _restart(self) -> None:
        """Forget empty buckets and the log; the views start over from what is there."""
        self.buckets = {key: bucket for key, bucket in self.buckets.items() if bucket.members}
        self.log = []
        self.epoch += 1

    def _join_make(self, node: NodeInfo, spec: NodeSpec) -> None:
        key = self._make_key(spec)
        make = self.makes.get(key)
        if make is None:
            self._next_id += 1
            make = self.makes[key] = Make(self._next_id, key)
            self._restart()
        make.nodes[node.name] = node
        self._make_of[node.name] = make

    def _leave_make(self, node: NodeInfo) -> None:
        make = self._make_of.pop(node.name, None)
        if make is None:
            return
        del make.nodes[node.name]
        if not make.nodes:
            del self.makes[make.key]
            self._restart()

    def _make_key(self, spec: NodeSpec) -> object:
        labels = tuple(sorted((k, v) for k, v in spec.labels.items() if k in self._mentioned))
        name = spec.name if NODE_NAME_FIELD in self._mentioned else ""
        return (spec.allocatable.key(), spec.unschedulable, spec.taints, labels, name)


Entry = tuple[int, str, int, Bucket]


@dataclass(slots=True)
class _Ranking:
    """Buckets by score; an entry whose node has left the bucket is put right when it comes to the top."""

    heap: list[Entry] = field(default_factory=list)
    current: dict[int, str] = field(default_factory=dict)

    def offer(self, bucket: Bucket, score: int, first: str) -> None:
        known = self.current.get(bucket.id)
        if known is None or first < known:
            self.current[bucket.id] = first
            heappush(self.heap, (-score, first, bucket.id, bucket))

    def top(self) -> NodeInfo | None:
        heap = self.heap
        while heap:
            score, name, bucket_id, bucket = heap[0]
            first = bucket.first()
            if self.current.get(bucket_id) != name:
                heappop(heap)
            elif first is None:
                heappop(heap)
                del self.current[bucket_id]
            elif first != name:
                self.current[bucket_id] = first
                heapreplace(heap, (score, first, bucket_id, bucket))
            else:
                return bucket.members[name]
        return None


class ShapeView:
    """The nodes as one shape of task sees them."""

    __slots__ = ("_cursor", "_epoch", "_index", "_later", "_makes", "_now", "_seen", "shape")

    def __init__(self, index: NodeIndex, shape: Shape) -> None:
        self.shape = shape
        self._index = index
        self._epoch = -1
        self._cursor = 0
        self._seen: dict[int, tuple[_Ranking, int] | None] = {}
        self._makes: dict[int, int | str] = {}
        self._now = _Ranking()
        self._later = _Ranking()

    def best(self) -> NodeInfo | None:
        """The best node on which the task fits now."""
        return self._now.top()

    def best_later(self) -> NodeInfo | None:
        """The best node on which it fits once the leaving pods are gone."""
        return self._later.top()

    def tightest(self) -> NodeInfo | None:
        """The node on which the task fits now and that would be fullest with it; costs a look at every bucket."""
        found: tuple[float, str, Bucket] | None = None
        for bucket in self._index.filled_buckets():
            if self.refusal(bucket.make) is None and fits(self.shape, bucket.idle):
                rest = dominant_share(bucket.idle.minus(self.shape.request), bucket.make.sample.allocatable)
                candidate = (rest, bucket.first() or "", bucket)
                found = candidate if found is None else min(found, candidate, key=lambda each: each[:2])
        return found[2].members[found[1]] if found else None

    def refusal(self, make: Make) -> str | None:
        """Why no node of this make will do, whatever is free."""
        answer = self._makes.get(make.id)
        return answer if isinstance(answer, str) else None

    def catch_up(self) -> None:
        """Look at the buckets that gained a node since the last time."""
        if self._epoch != self._index.epoch:
            self._start_over()
        log = self._index.log
        while self._cursor < len(log):
            self._consider(log[self._cursor])
            self._cursor += 1

    def _start_over(self) -> None:
        self._epoch = self._index.epoch
        self._cursor = len(self._index.log)
        self._seen.clear()
        self._now, self._later = _Ranking(), _Ranking()
        self._judge_makes()
        for bucket in self._index.buckets.values():
            self._consider(bucket)

    def _judge_makes(self) -> None:
        judge = self._index.judge
        makes = list(self._index.makes.values())
        refusals = [judge.refusal(self.shape, make.sample) for make in makes]
        self._makes = {make.id: why for make, why in zip(makes, refusals, strict=True) if why is not None}
        good = [make for make, why in zip(makes, refusals, strict=True) if why is None]
        samples = [make.sample for make in good]
        scores = [0] * len(good)
        for order in judge.make_orders:
            scores = [a + b for a, b in zip(scores, order(self.shape, samples), strict=True)]
        self._makes.update((make.id, score) for make, score in zip(good, scores, strict=True))

    def _consider(self, bucket: Bucket) -> None:
        first = bucket.first()
        if first is None:
            return
        if bucket.id in self._seen:
            verdict = self._seen[bucket.id]
        else:
            verdict = self._seen[bucket.id] = self._evaluate(bucket, bucket.members[first])
        if verdict is not None:
            ranking, score = verdict
            ranking.offer(bucket, score, first)

    def _evaluate(self, bucket: Bucket, node: NodeInfo) -> tuple[_Ranking, int] | None:
        score = self._makes[bucket.make.id]
        if isinstance(score, str):
            return None
        if fits(self.shape, bucket.idle):
            ranking = self._now
        elif fits(self.shape, bucket.future_idle):
            ranking = self._later
        else:
            return None
        judge = self._index.judge
        if judge.node_predicates and judge.refusal_now(self.shape, node) is not None:
            return None
        points: float = score
        for order in judge.node_orders:
            points += order(self.shape, node)
        return ranking, round(points * PRECISION)


def fits(shape: Shape, idle: Resources) -> bool:
    """Whether what the shape needs to start is there. A pod that asks for nothing needs only a free pod slot."""
    if shape.best_effort:
        return idle.scalars.get(PODS, 0) >= shape.init_request.scalars[PODS]
    return shape.init_request.less_equal(idle)
