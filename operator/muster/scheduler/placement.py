"""Finding the best node for a task without looking at every node.

Nodes of one make (equal allocatable, taints, and the labels that any pod mentions) share every verdict about what
they are; nodes of one `Bucket` (one make and equal accounts) share every verdict and score. A bucket never changes:
a node whose accounts change moves to another one. A `ShapeView` keeps, for one shape of task, a heap of buckets by
score, and catches up with the buckets that gained a node since it was asked last. So a placement re-examines only the
touched node, and a shape never seen before costs the number of buckets, not of nodes.

The order is exact and depends on nothing but the model: highest score first, then the lowest node name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from muster.scheduler.buckets import Bucket, Make, fits
from muster.scheduler.constraints import NODE_NAME_FIELD
from muster.scheduler.images import ImageBook
from muster.scheduler.judge import PRECISION, Judge
from muster.scheduler.node import NodeInfo
from muster.scheduler.specs import NodeSpec
from muster.scheduler.task import Shape
from muster.scheduler.views import ShapeView

__all__ = ["NodeIndex", "ShapeView", "fits"]


class NodeIndex:
    """All nodes in buckets, and the views of the shapes.

    `version` is another one after each change, `makes_version` when a make of node has come or gone.
    """

    def __init__(self) -> None:
        self.epoch = 0
        self.version = 0
        self.log: list[Bucket] = []
        self.buckets: dict[object, Bucket] = {}
        self.makes: dict[object, Make] = {}
        self.makes_version = 0
        self.judge = Judge()
        self.images = ImageBook()
        self._make_of: dict[str, Make] = {}
        self._mentioned: set[str] = set()
        self._dirty: dict[str, NodeInfo] = {}
        self._views: dict[int, ShapeView] = {}
        self._next_id = 0
        self._starts_over = False

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

    def mention(self, keys: set[str], images: Iterable[str] = ()) -> None:
        """A pod that looks for a node reads these labels or wants these images: from now on they tell makes apart."""
        new_images = self.images.name(images)
        if keys <= self._mentioned and not new_images:
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
        view = self._views.get(shape.id)
        if view is None:
            # Only now: most pods are never asked about. Those of a DaemonSet name their node each, and would make every
            # node a make of its own.
            self.mention(shape.scheduling.label_keys(), shape.scheduling.images)
            view = self._views[shape.id] = ShapeView(self, shape)
        self._refresh()
        view.catch_up()
        return view

    def filled_buckets(self) -> Iterator[Bucket]:
        """The buckets that hold nodes."""
        self._refresh()
        return (bucket for bucket in self.buckets.values() if bucket.members)

    def nodes_that_fit(self, shape: Shape) -> Iterator[NodeInfo]:
        """The nodes that are possible for the shape and have its resources, whoever is there."""
        view = self.view(shape)
        for bucket in self.filled_buckets():
            if view.refusal(bucket.make) is None and fits(shape, bucket.idle):
                yield from bucket.members.values()

    def rank(self, shape: Shape, nodes: Iterable[NodeInfo]) -> list[NodeInfo]:
        """Those of the nodes that the shape could run on, whatever and whoever is there now, the best first."""
        view = self.view(shape)
        scores: dict[int, int | None] = {}
        found: list[tuple[int, NodeInfo]] = []
        for node in nodes:
            bucket = node.bucket
            if bucket is None:
                continue
            if bucket.id not in scores:
                scores[bucket.id] = view.score(bucket, node)
            score = scores[bucket.id]
            if score is not None:
                found.append((score, node))
        for wish in self.judge.wishes_of(shape, later=True):
            more = wish([node for _, node in found])
            if more is None:
                return []
            found = [(score + round(extra * PRECISION), node) for (score, node), extra in zip(found, more, strict=True)]
        return [node for _, node in sorted(found, key=lambda entry: (-entry[0], entry[1].name))]

    # --- inside ---

    def _refresh(self) -> None:
        if not (self._dirty or self._starts_over):
            return
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
        if self._starts_over or len(self.log) > 4 * len(self._make_of) + 1024:
            self._start_over()

    def _bucket_for(self, node: NodeInfo) -> Bucket:
        make = self._make_of[node.name]
        overdue = None if node.overdue is None else node.overdue.key()
        key = (make.id, node.used.key(), node.releasing.key(), overdue, node.pipelined.key(), node.assumed)
        bucket = self.buckets.get(key)
        if bucket is None:
            self._next_id += 1
            bucket = self.buckets[key] = Bucket(self._next_id, key, make, node)
        return bucket

    def _start_over(self) -> None:
        """Forget empty buckets and the log; the views start over from what is there."""
        self._starts_over = False
        self.buckets = {key: bucket for key, bucket in self.buckets.items() if bucket.members}
        self.log = []
        self.epoch += 1

    def _join_make(self, node: NodeInfo, spec: NodeSpec) -> None:
        key = self._make_key(spec)
        make = self.makes.get(key)
        if make is None:
            self._next_id += 1
            make = self.makes[key] = Make(self._next_id, key, self.images.named_on(spec))
            self._starts_over = True
            self.makes_version += 1
        make.nodes[node.name] = node
        self._make_of[node.name] = make
        self.images.add(make.images, 1)
        self._starts_over = self._starts_over or self.images.matter

    def _leave_make(self, node: NodeInfo) -> None:
        make = self._make_of.pop(node.name, None)
        if make is None:
            return
        del make.nodes[node.name]
        self.images.add(make.images, -1)
        self._starts_over = self._starts_over or self.images.matter
        if not make.nodes:
            del self.makes[make.key]
            self._starts_over = True
            self.makes_version += 1

    def _make_key(self, spec: NodeSpec) -> object:
        labels = tuple(sorted((k, v) for k, v in spec.labels.items() if k in self._mentioned))
        name = spec.name if NODE_NAME_FIELD in self._mentioned else ""
        images = self.images.named_on(spec)
        return (spec.allocatable.key(), spec.unschedulable, spec.taints, labels, name, images, spec.usage)
