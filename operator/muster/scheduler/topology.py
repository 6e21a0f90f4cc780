"""A job's pods in buckets: those that should share a node, by what the job says of its roles.

A pod goes to the bucket whose pods it likes best (each liked pod counts one, each disliked one minus one), of equals to
the smallest; when it dislikes all of them it begins a new one. Pods that have a node already make one bucket a node.
Nothing here is remembered: who has a node and who not is read from the tasks each time, so an undone placement needs
no undoing here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from muster.scheduler.node import NodeInfo
from muster.scheduler.resources import PODS, Resources, total
from muster.scheduler.specs import TaskTopology
from muster.scheduler.task import TaskInfo

_MEBI = 1024 * 1024
_SELF_APART, _TOGETHER, _SELF_TOGETHER, _APART = 4, 3, 2, 1
"""How much a role's wish counts when roles are put in order."""


class Relations:
    """Which roles like, and which dislike, each other; a pair of one role with itself is about its own pods."""

    def __init__(self, topology: TaskTopology) -> None:
        self._liked = set(_pairs(topology.affinity))
        self._disliked = set(_pairs(topology.anti_affinity))
        self._order = {role: len(topology.order) - index for index, role in enumerate(topology.order)}
        self._rank: dict[str, int] = {}
        for groups, alone, together in (
            (topology.affinity, _SELF_TOGETHER, _TOGETHER),
            (topology.anti_affinity, _SELF_APART, _APART),
        ):
            for group in groups:
                for role in group:
                    self._rank[role] = max(self._rank.get(role, 0), alone if len(group) == 1 else together)

    def concern(self, role: str) -> bool:
        """Whether the job says anything of the role's neighbours."""
        return role in self._rank

    def precedence(self, role: str) -> tuple[int, int]:
        """Larger goes first: the job's own order, then the stronger wish."""
        return self._order.get(role, 0), self._rank.get(role, 0)

    def sympathy(self, role: str, others: Counter[str]) -> int:
        """How much a pod of the role likes to be with these."""
        liked = sum(count for other, count in others.items() if (role, other) in self._liked)
        return liked + self.antipathy(role, others)

    def antipathy(self, role: str, others: Counter[str]) -> int:
        """How much it dislikes to be with these: 0 or less."""
        return -sum(count for other, count in others.items() if (role, other) in self._disliked)


def _pairs(groups: Iterable[tuple[str, ...]]) -> Iterator[tuple[str, str]]:
    for group in groups:
        if len(group) == 1:
            yield group[0], group[0]
        for one in group:
            yield from ((one, other) for other in group if other != one)


class TaskBucket:
    """Pods that should share a node; `index` is its age, `wanting` how many had no node when it was filled."""

    __slots__ = ("index", "roles", "size", "tasks", "wanting")

    def __init__(self, index: int) -> None:
        self.index = index
        self.tasks: list[TaskInfo] = []
        self.roles: Counter[str] = Counter()
        self.size = 0
        self.wanting = 0

    def add(self, task: TaskInfo) -> None:
        """Take a pod in. What has a node already takes no room any more."""
        self.tasks.append(task)
        self.roles[task.role] += 1
        if task.node is None:
            self.wanting += 1
            self.size += _size(task.request)

    def waiting(self) -> list[TaskInfo]:
        """Those without a node."""
        return [task for task in self.tasks if task.node is None]


class TaskBuckets:
    """The buckets of one job."""

    def __init__(self, topology: TaskTopology, tasks: Iterable[TaskInfo]) -> None:
        self.relations = Relations(topology)
        self.buckets: list[TaskBucket] = []
        self._of: dict[str, TaskBucket] = {}
        self._tasks = list(tasks)
        self._fill()
        self.largest = max((len(bucket.tasks) for bucket in self.buckets), default=0)

    def bucket_of(self, task: TaskInfo) -> TaskBucket | None:
        """The task's bucket; None when the job says nothing of its role."""
        return self._of.get(task.uid)

    def order(self, task: TaskInfo) -> tuple[int, int, int, int, int]:
        """Sorts tasks: those in buckets first, the fullest bucket first, then the oldest, then by the job's order."""
        bucket = self.bucket_of(task)
        if bucket is None:
            return (1, 0, 0, 0, 0)
        wanted, rank = self.relations.precedence(task.role)
        return (0, -bucket.wanting, bucket.index, -wanted, -rank)

    def scores(self, task: TaskInfo, nodes: Sequence[NodeInfo]) -> list[int]:
        """For each node how many of the task's bucket are on it or fit there too, less those of the job it dislikes."""
        bucket = self.bucket_of(task)
        if bucket is None:
            return [0] * len(nodes)
        roles: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for each in self._tasks:
            if each.node is not None:
                roles[each.node][each.role] += 1
        here = Counter(each.node for each in bucket.tasks if each.node is not None)
        waiting = bucket.waiting()
        whole = total(each.request for each in waiting)
        return [
            here[node.name]
            + (self.relations.antipathy(task.role, roles[node.name]) if node.name in roles else 0)
            + _fitting(task, waiting, whole, node)
            for node in nodes
        ]

    def _fill(self) -> None:
        by_node: dict[str, TaskBucket] = {}
        for task in sorted((each for each in self._tasks if self.relations.concern(each.role)), key=self._precedence):
            if task.node is not None:
                bucket = by_node.get(task.node) or self._begin()
                by_node[task.node] = bucket
            else:
                bucket = self._most_liked(task) or self._begin()
            bucket.add(task)
            self._of[task.uid] = bucket

    def _precedence(self, task: TaskInfo) -> tuple[bool, str, int, int, str]:
        wanted, rank = self.relations.precedence(task.role)
        return (task.node is None, task.node or "", -wanted, -rank, task.spec.name)

    def _most_liked(self, task: TaskInfo) -> TaskBucket | None:
        liking = [(self.relations.sympathy(task.role, bucket.roles), bucket) for bucket in self.buckets]
        best = min(liking, key=lambda each: (-each[0], each[1].size, each[1].index), default=None)
        return best[1] if best is not None and best[0] >= 0 else None

    def _begin(self) -> TaskBucket:
        bucket = TaskBucket(len(self.buckets))
        self.buckets.append(bucket)
        return bucket


def _fitting(task: TaskInfo, waiting: list[TaskInfo], whole: Resources, node: NodeInfo) -> int:
    """How many of the waiting (which ask for `whole`), the task itself included, fit on the node together."""
    room, count = node.idle.plus(node.releasing), len(waiting)
    if whole.less_equal(room):
        return count
    rest = whole.clone()
    for each in reversed(waiting):
        if rest.less_equal(room):
            break
        if each is not task:
            rest.sub(each.request)
            count -= 1
    return count


def _size(request: Resources) -> int:
    """A measure by which buckets are kept equal: a core, a GPU and a gibibyte count (about) the same."""
    scalars = sum(amount for name, amount in request.scalars.items() if name != PODS)
    return request.milli_cpu + request.memory // _MEBI + scalars
