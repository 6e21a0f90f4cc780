"""How many pods of a kind each domain of a topology holds, kept as pods come and go.

Pods that leave are counted apart, and so are those that are only promised room: whether they matter depends on
whether a place is wanted now or once the leaving are gone (`later`). One that should have left by now is counted as one
that stays, but not where pods are spread: there kube-scheduler counts no pod that is being deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from muster.scheduler.node import NodeInfo
from muster.scheduler.specs import TaskStatus

if TYPE_CHECKING:
    from muster.scheduler.task import TaskInfo


class Tally:
    """Counts by domain of `key`; a domain that holds none is not listed. `users` is how many shapes need it."""

    __slots__ = ("coming", "key", "leaving", "staying", "users")

    def __init__(self, key: str) -> None:
        self.key = key
        self.users = 0
        self.staying: dict[str, int] = {}
        self.leaving: dict[str, int] = {}
        self.coming: dict[str, int] = {}

    def domain(self, node: NodeInfo) -> str | None:
        """The domain that counts what is on the node, None when nothing there counts."""
        return node.labels.get(self.key)

    def add(self, node: NodeInfo, task: TaskInfo, amount: int) -> None:
        """Count a pod, as it is now, on the node (`amount` -1: no more)."""
        domain = self.domain(node)
        if domain is None:
            return
        if task.status is TaskStatus.PIPELINED:
            _change(self.coming, domain, amount)
        elif self._leaves(task):
            _change(self.leaving, domain, amount)
        elif task.status.holds:
            self._stay(domain, amount)

    def _leaves(self, task: TaskInfo) -> bool:
        return task.leaves

    def _stay(self, domain: str, amount: int) -> None:
        _change(self.staying, domain, amount)

    def present(self, domain: str, *, later: bool) -> int:
        """Pods that will be there for company: leaving ones count until they are gone."""
        return self.staying.get(domain, 0) + (self.coming if later else self.leaving).get(domain, 0)

    def in_the_way(self, domain: str, *, later: bool) -> int:
        """Pods that could be met there: now also those that have been promised room."""
        found = self.staying.get(domain, 0) + self.coming.get(domain, 0)
        return found if later else found + self.leaving.get(domain, 0)

    def is_empty(self, *, later: bool) -> bool:
        """Whether no pod is `present` anywhere."""
        return not self.staying and not (self.coming if later else self.leaving)


class SpreadTally(Tally):
    """Counts for a spread constraint: over the nodes only that take part in it, and without pods that are leaving.

    `sizes` is the number of such nodes in each domain, so that the empty domains are known too.
    """

    __slots__ = ("_domains", "_levels", "_takes_part", "sizes")

    def __init__(self, key: str, takes_part: Callable[[NodeInfo], bool]) -> None:
        super().__init__(key)
        self._takes_part = takes_part
        self._domains: dict[str, str] = {}
        self._levels: dict[int, int] = {}
        self.sizes: dict[str, int] = {}

    def domain(self, node: NodeInfo) -> str | None:
        """The node's domain, if the node takes part."""
        return self._domains.get(node.name)

    def join(self, node: NodeInfo) -> None:
        """A node is there; what is on it is counted afterwards."""
        domain = node.labels.get(self.key)
        if domain is None or node.spec is None or not self._takes_part(node):
            return
        self._domains[node.name] = domain
        if domain not in self.sizes:
            _change(self._levels, self.staying.get(domain, 0), 1)
        _change(self.sizes, domain, 1)

    def leave(self, node: NodeInfo) -> None:
        """A node is gone or will be another; what is on it is not counted any more."""
        domain = self._domains.pop(node.name, None)
        if domain is None:
            return
        _change(self.sizes, domain, -1)
        if domain not in self.sizes:
            _change(self._levels, self.staying.get(domain, 0), -1)

    def _leaves(self, task: TaskInfo) -> bool:
        return task.status is TaskStatus.RELEASING

    def _stay(self, domain: str, amount: int) -> None:
        before = self.staying.get(domain, 0)
        super()._stay(domain, amount)
        if domain in self.sizes:
            _change(self._levels, before, -1)
            _change(self._levels, before + amount, 1)

    def count(self, domain: str, *, later: bool) -> int:
        """Pods that count in the domain."""
        found = self.staying.get(domain, 0)
        return found + self.coming.get(domain, 0) if later else found

    def fewest(self, min_domains: int, *, later: bool) -> int:
        """What the emptiest domain holds; 0 when there are fewer domains than there should be."""
        if not self.sizes or len(self.sizes) < min_domains:
            return 0
        if later and self.coming:
            return min(self.count(domain, later=True) for domain in self.sizes)
        return min(self._levels)


def _change(counts: dict[str, int] | dict[int, int], key: str | int, amount: int) -> None:
    """Add to a count; one that comes to 0 is struck out."""
    ledger: dict[str | int, int] = counts  # type: ignore[assignment]
    value = ledger.get(key, 0) + amount
    if value:
        ledger[key] = value
    else:
        ledger.pop(key, None)
