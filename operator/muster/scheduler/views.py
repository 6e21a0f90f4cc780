"""The nodes as one shape of task sees them: buckets ranked by score, caught up with what changed since."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heapreplace
from typing import TYPE_CHECKING

from muster.scheduler.buckets import Bucket, Make, fits
from muster.scheduler.judge import PRECISION
from muster.scheduler.node import NodeInfo
from muster.scheduler.resources import dominant_share
from muster.scheduler.task import Shape

if TYPE_CHECKING:
    from muster.scheduler.placement import NodeIndex

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


Candidate = tuple[int, NodeInfo, Bucket]


def _in_order(*rankings: _Ranking) -> Iterator[Candidate]:
    """All nodes of the rankings, the best first, looked for only as far as they are asked for.

    Nothing may change meanwhile.
    """
    heap = [entry for ranking in rankings for entry in ranking.heap]
    if len(rankings) > 1:
        heapify(heap)
    started: dict[int, tuple[Iterator[NodeInfo], NodeInfo | None]] = {}
    while heap:
        score, name, bucket_id, bucket = heappop(heap)
        if bucket_id not in started:
            nodes = bucket.in_order()
            due = next(nodes, None)
        else:
            nodes, due = started[bucket_id]
        if due is not None and due.name == name:
            yield -score, due, bucket
            due = next(nodes, None)
        elif bucket_id in started:
            continue  # an entry that was put right before
        started[bucket_id] = (nodes, due)
        if due is not None:
            heappush(heap, (score, due.name, bucket_id, bucket))


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
        if self.shape.plain:
            return self._now.top()
        return self._choose(_in_order(self._now), later=False)

    def best_later(self) -> NodeInfo | None:
        """The best node on which it fits once the leaving pods are gone."""
        if self.shape.plain:
            return self._later.top()
        # Also where the resources are free by now: a neighbour that is in the way may be leaving.
        return self._choose(_in_order(self._now, self._later), later=True)

    def _choose(self, candidates: Iterator[Candidate], *, later: bool) -> NodeInfo | None:
        """The best of the candidates to which no neighbour objects."""
        judge = self._index.judge
        check = judge.check(self.shape, later=later)
        admitted = ((score, node) for score, node, _ in candidates if check(node) is None)
        wishes = judge.wishes_of(self.shape, later=later)
        if not wishes:
            return next((node for _, node in admitted), None)
        found = list(admitted)
        nodes = [node for _, node in found]
        totals = [score for score, _ in found]
        for wish in wishes:
            points = wish(nodes)
            if points is None:
                return None
            totals = [total + round(more * PRECISION) for total, more in zip(totals, points, strict=True)]
        best = min(range(len(nodes)), key=lambda each: (-totals[each], nodes[each].name), default=None)
        return nodes[best] if best is not None else None

    def tightest(self) -> NodeInfo | None:
        """The node on which the task fits now and that would be fullest with it; costs a look at every bucket."""
        if not self.shape.plain:
            return self._tightest_in_company()
        found: tuple[float, str, Bucket] | None = None
        for bucket in self._index.filled_buckets():
            if self.refusal(bucket.make) is None and self._fits_now(bucket):
                rest = dominant_share(bucket.idle.minus(self.shape.request), bucket.make.sample.allocatable)
                candidate = (rest, bucket.first() or "", bucket)
                found = candidate if found is None else min(found, candidate, key=lambda each: each[:2])
        return found[2].members[found[1]] if found else None

    def _tightest_in_company(self) -> NodeInfo | None:
        check = self._index.judge.check(self.shape, later=False)
        found: tuple[float, str, NodeInfo] | None = None
        for _, node, bucket in _in_order(self._now):
            if check(node) is None:
                rest = dominant_share(bucket.idle.minus(self.shape.request), node.allocatable)
                candidate = (rest, node.name, node)
                found = candidate if found is None else min(found, candidate, key=lambda each: each[:2])
        return found[2] if found else None

    def _fits_now(self, bucket: Bucket) -> bool:
        """Whether the room is idle and promised to nobody."""
        return fits(self.shape, bucket.idle) and fits(self.shape, bucket.future_idle)

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
        if not fits(self.shape, bucket.future_idle):
            return None  # what is idle is promised to others
        score = self.score(bucket, node)
        judge = self._index.judge
        if score is None or (judge.node_predicates and judge.refusal_now(self.shape, node) is not None):
            return None
        return (self._now if fits(self.shape, bucket.idle) else self._later), score

    def score(self, bucket: Bucket, node: NodeInfo) -> int | None:
        """How good the bucket is (`node` is one of its nodes), None when it is out of the question."""
        score = self._makes[bucket.make.id]
        if isinstance(score, str):
            return None
        points: float = score
        for order in self._index.judge.node_orders:
            points += order(self.shape, node)
        return round(points * PRECISION)
