"""Pods that leave, and those that should have left by now.

Room is promised where pods leave, for they are gone within seconds. One with a finalizer that nobody takes away, or on
a node whose kubelet is dead, leaves never; what was promised next to it, on nodes that are idle, would be kept from
others for ever (P7). So a pod that is still there some time after it began to leave (`overdue`) counts as one that
stays until it is gone. The time is counted from when a cycle first saw it: after a restart it begins anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from muster.scheduler.resources import Resources
from muster.scheduler.specs import TaskStatus

if TYPE_CHECKING:
    from muster.scheduler.accounts import Accounts
    from muster.scheduler.queue import QueueInfo
    from muster.scheduler.task import TaskInfo


class Leaving:
    """Since when pods leave, by uid, the first first; and the overdue ones.

    `mark` sets `TaskInfo.overdue` and whatever is counted by it.
    """

    def __init__(self, mark: Callable[[TaskInfo, bool], None]) -> None:
        self._mark = mark
        self._unseen: dict[str, None] = {}
        self._since: dict[str, float] = {}
        self._overdue: dict[str, TaskInfo] = {}
        self._changed = False
        self._marked: set[str] = set()

    def note(self, task: TaskInfo, now: float | None = None) -> None:
        """The task is leaving its node (from `now`, else from the next cycle on), or it is not, or not any more."""
        uid = task.uid
        if task.status is not TaskStatus.RELEASING or task.node is None:
            self.forget(uid)
        elif uid in self._overdue:
            self._overdue[uid] = task
            self._mark(task, True)
        elif uid not in self._since and now is not None:
            self._since[uid] = now
        elif uid not in self._since:
            self._unseen[uid] = None

    def forget(self, uid: str) -> None:
        """The task leaves no more: it is gone, or stays."""
        self._unseen.pop(uid, None)
        self._since.pop(uid, None)
        task = self._overdue.pop(uid, None)
        if task is not None:
            self._mark(task, False)
            self._changed = True

    def look(self, accounts: Accounts, now: float, patience: float) -> None:
        """Begin a cycle: see who has begun to leave, and who is overdue after so many seconds."""
        self._since.update(dict.fromkeys(self._unseen, now))
        self._unseen.clear()
        late = []
        for uid, since in self._since.items():
            if since + patience > now:
                break
            late.append(uid)
        for uid in late:
            del self._since[uid]
            task = accounts.tasks.get(uid)
            if task is not None:
                self._overdue[uid] = task
                self._mark(task, True)
                self._changed = True
        if self._changed:
            self._changed = False
            self._tell_nodes(accounts)

    def deadline(self, patience: float) -> float | None:
        """When the next one will be overdue."""
        first = next(iter(self._since.values()), None)
        return None if first is None else first + patience

    def staying_in(self, queue: QueueInfo) -> Resources:
        """What pods of the queue and of those below it use that will be there when the others have left."""
        if not self._overdue:
            return queue.subtree.allocated
        found = queue.subtree.allocated.clone()
        counted: dict[str, set[str]] = {}
        for task in self._overdue.values():
            if task.job is None or queue.name not in task.job.queue.lineage:
                continue
            found.add(task.request)
            if task.shape.devices is not None:
                own = task.job.queue
                before = counted.setdefault(own.name, set())
                found.add(own.claims.of_new(set(task.shape.devices.claims) - before))
                before.update(task.shape.devices.claims)
        return found

    def _tell_nodes(self, accounts: Accounts) -> None:
        amounts: dict[str, Resources] = {}
        for task in self._overdue.values():
            if task.node is not None:
                amounts.setdefault(task.node, Resources()).add(task.request)
        marked, self._marked = self._marked, set(amounts)
        for name in sorted(marked | self._marked):
            node = accounts.nodes.get(name)
            if node is not None:
                node.overdue = amounts.get(name)
                accounts.index.touch(node)
