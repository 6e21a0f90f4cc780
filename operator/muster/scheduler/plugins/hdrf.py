"""Hierarchical dominant resource fairness (Bhattacharya et al., SoCC 2013), as Volcano's `drf` has it.

Queues say where they are by the path in their annotation `volcano.sh/hierarchy` and what each step weighs by
`volcano.sh/hierarchy-weights`; jobs are the leaves below their queue. Of two queues the one goes first whose branch has
the smaller share by weight, where they part. A branch whose jobs can't use any more (saturated) goes last and does not
hold its siblings back: an inner node counts what its other children use scaled down to the poorest of them.

Shares are quotients and only compared, so floating point is good enough; sums do not depend on the order of events. A
job that changes costs its own path, unless a resource of the cluster has become full or free.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import fsum
from typing import TYPE_CHECKING

from muster.scheduler.resources import CPU, MEMORY, Resources, share

if TYPE_CHECKING:
    from muster.scheduler.accounts import Accounts
    from muster.scheduler.job import JobInfo
    from muster.scheduler.queue import QueueInfo

_CLOSE = 1e-9
"""Weighted shares that differ by no more are equal."""


@dataclass(frozen=True, slots=True)
class Fill:
    """What a node uses (by dimension of the cluster), the largest share that is, and whether it wants no more."""

    amounts: tuple[float, ...]
    share: float
    saturated: bool


@dataclass(frozen=True, slots=True)
class Leaf:
    """What a job used when it was last looked at: at that version, with these resources of the cluster left."""

    job: JobInfo
    version: int
    demanding: frozenset[str]
    fill: Fill

    def is_current(self, job: JobInfo, demanding: frozenset[str]) -> bool:
        """Whether it is this very job's (one made again has the same name), and nothing about it has changed."""
        return self.job is job and self.version == job.version and self.demanding is demanding


@dataclass(slots=True, eq=False)
class Node:
    """An inner node. `queues` are those whose path ends here; their jobs are its leaves, kept by name."""

    weight: float = 1.0
    parent: Node | None = None
    children: dict[str, Node] = field(default_factory=dict)
    queues: list[QueueInfo] = field(default_factory=list)
    leaves: dict[str, Leaf] = field(default_factory=dict)
    fill: Fill | None = None

    def line(self) -> list[Node]:
        """This node and all above it."""
        return [self, *(self.parent.line() if self.parent is not None else [])]


Look = Callable[[Node], Fill]


class ShareTree:
    """The tree of the queues as they are; a change of queues or of the cluster's size needs another one."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        self._whole = accounts.total.clone()
        self._dimensions = tuple(accounts.total.dimensions())
        self._root = Node()
        self._at: dict[str, Node] = {}
        self._seen: dict[str, int] = {}
        self._used_by: dict[str, Resources] = {}
        self._used = Resources()
        self._demanding = self._find_demanding(self._used)
        for name, queue in sorted(accounts.queues.items()):
            node = self._at[name] = self._place(queue)
            node.queues.append(queue)

    def _place(self, queue: QueueInfo) -> Node:
        """The node at the end of the queue's path, the root for a queue without one."""
        node, spec = self._root, queue.spec
        path, weights = (spec.hierarchy, spec.hierarchy_weights) if spec is not None else ((), ())
        for position, name in enumerate(path[1:], start=1):
            if name not in node.children:
                weight = weights[position] if position < len(weights) else 1.0
                node.children[name] = Node(max(1.0, weight), node)
            node = node.children[name]
        return node

    # --- what plugins ask ---

    def compare(self, left: QueueInfo, right: QueueInfo) -> int:
        """Negative when `left` goes first."""
        self._refresh()
        return self._compare(left, right, self._fill)

    def gives_back(self, reclaimer: JobInfo, more: Resources, victim: JobInfo, less: Resources) -> bool:
        """Whether the reclaimer's queue would still go before the victim's, had they gained and lost this much."""
        self._refresh()
        holds = {reclaimer.key: reclaimer.allocated.plus(more)}
        holds[victim.key] = holds.get(victim.key, victim.allocated).minus(less)
        demanding = self._find_demanding(self._used.plus(more).minus(less))
        touched = {id(node) for job in (reclaimer, victim) for node in self._at[job.queue.name].line()}

        def look(node: Node) -> Fill:
            if demanding == self._demanding and id(node) not in touched:
                return self._fill(node)
            jobs = [job for queue in node.queues for job in queue.jobs.values()]
            leaves = [self._leaf(job, holds.get(job.key, job.allocated), demanding) for job in jobs]
            return self._combine([*leaves, *[look(child) for child in node.children.values()]])

        return self._compare(reclaimer.queue, victim.queue, look) < 0

    def _compare(self, left: QueueInfo, right: QueueInfo, look: Look) -> int:
        """Down both paths: who wants more before who does not, then the smaller share by weight."""
        pairs = zip(self._at[left.name].line()[::-1], self._at[right.name].line()[::-1], strict=False)
        for ours, theirs in pairs:
            if ours is theirs:
                continue
            here, there = look(ours), look(theirs)
            if here.saturated is not there.saturated:
                return 1 if here.saturated else -1
            difference = here.share / ours.weight - there.share / theirs.weight
            if abs(difference) > _CLOSE:
                return -1 if difference < 0 else 1
        return 0

    # --- keeping current ---

    def _refresh(self) -> None:
        """Forget what is out of date: the paths of queues whose accounts have changed."""
        for name, queue in self._accounts.queues.items():
            if self._seen.get(name) == queue.version:
                continue
            self._seen[name] = queue.version
            self._used.sub(self._used_by.get(name, Resources()))
            self._used_by[name] = queue.allocated.clone()
            self._used.add(queue.allocated)
            for node in self._at[name].line():
                node.fill = None
        demanding = self._find_demanding(self._used)
        if demanding != self._demanding:
            self._demanding = demanding
            for node in self._at.values():
                for each in node.line():
                    each.fill = None

    def _find_demanding(self, used: Resources) -> frozenset[str]:
        """The resources of which the cluster has any left."""
        return frozenset(name for name in self._dimensions if used.get(name) < self._whole.get(name))

    def _fill(self, node: Node) -> Fill:
        if node.fill is None:
            jobs = [job for queue in node.queues for job in queue.jobs.values()]
            node.leaves = {job.key: self._known_leaf(node, job) for job in jobs}
            leaves = [leaf.fill for leaf in node.leaves.values()]
            node.fill = self._combine([*leaves, *[self._fill(child) for child in node.children.values()]])
        return node.fill

    def _known_leaf(self, node: Node, job: JobInfo) -> Leaf:
        known = node.leaves.get(job.key)
        if known is not None and known.is_current(job, self._demanding):
            return known
        return Leaf(job, job.version, self._demanding, self._leaf(job, job.allocated, self._demanding))

    def _leaf(self, job: JobInfo, held: Resources, demanding: frozenset[str]) -> Fill:
        amounts = tuple(float(held.get(name)) for name in self._dimensions)
        return Fill(amounts, self._share(amounts), is_saturated(held, job.requested, demanding))

    def _combine(self, fills: list[Fill]) -> Fill:
        """A node's fill from its children's: those that want more count no more than the poorest of them."""
        used = [fill for fill in fills if fill.share > 0]
        poorest = min((fill.share for fill in used if not fill.saturated), default=1.0)
        parts = [(fill.amounts, 1.0 if fill.saturated else min(1.0, poorest / fill.share)) for fill in used]
        amounts = tuple(
            fsum(amounts[index] * factor for amounts, factor in parts) for index in range(len(self._dimensions))
        )
        return Fill(amounts, self._share(amounts), all(fill.saturated for fill in fills))

    def _share(self, amounts: tuple[float, ...]) -> float:
        parts = zip(self._dimensions, amounts, strict=True)
        return max((_part(amount, self._whole.get(name)) for name, amount in parts), default=0.0)


def _part(amount: float, whole: int) -> float:
    return amount / whole if whole > 0 else share(int(amount), whole)


def is_saturated(held: Resources, requested: Resources, demanding: frozenset[str]) -> bool:
    """Whether a job wants no more: it has all that it asks for of some resource, or asks for one that is used up.

    As in Volcano a scalar counts once the job holds some of it.
    """
    for name in (CPU, MEMORY, *held.scalars):
        has, wants = held.get(name), requested.get(name)
        if wants and (has or name in (CPU, MEMORY)) and (has >= wants or name not in demanding):
            return True
    return False
