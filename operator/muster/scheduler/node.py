"""A node and what is on it.

`used` counts every pod that occupies the node, whoever bound it, the leaving ones (`releasing`) included.
`pipelined` is room promised on it for later, `assumed` (milli-CPU, bytes) what kube-scheduler's scores add for
containers that ask for nothing. Idle may be negative, since others bind pods too: then nothing fits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from muster.scheduler.resources import Resources
from muster.scheduler.specs import NodeSpec, NodeUsage, TaskStatus
from muster.scheduler.task import TaskInfo

if TYPE_CHECKING:
    from muster.scheduler.buckets import Bucket

_NOTHING = Resources()


class NodeInfo:
    """Accounts of one node. A node that only pods name (`spec` None) takes nothing but keeps their account.

    `overdue` is the part of `releasing` that should be gone by now, and is not counted on any more.
    """

    __slots__ = ("assumed", "bucket", "name", "overdue", "pipelined", "releasing", "spec", "tasks", "used")

    def __init__(self, name: str) -> None:
        self.name = name
        self.spec: NodeSpec | None = None
        self.used = Resources()
        self.releasing = Resources()
        self.overdue: Resources | None = None
        self.pipelined = Resources()
        self.assumed = (0, 0)
        self.tasks: dict[str, TaskInfo] = {}
        self.bucket: Bucket | None = None

    def __repr__(self) -> str:
        return f"NodeInfo({self.name})"

    @property
    def allocatable(self) -> Resources:
        """What the node has for pods."""
        spec = self.spec
        return _NOTHING if spec is None else spec.allocatable

    @property
    def labels(self) -> Mapping[str, str]:
        """The node's labels."""
        return self.spec.labels if self.spec else {}

    @property
    def usage(self) -> NodeUsage | None:
        """What the node really uses, where that is known."""
        return self.spec.usage if self.spec else None

    @property
    def idle(self) -> Resources:
        """What is free now."""
        return self.allocatable.minus(self.used)

    @property
    def future_idle(self) -> Resources:
        """What is free once the leaving pods are gone and the promised ones are here."""
        future = self.idle
        future.add(self.releasing)
        if self.overdue is not None:
            future.sub(self.overdue)
        future.sub(self.pipelined)
        return future

    def add(self, task: TaskInfo) -> None:
        """Take the task's account on, by its status."""
        self.tasks[task.spec.uid] = task
        self._account(task, Resources.add, 1)

    def remove(self, task: TaskInfo) -> None:
        """Give the task's account back; it must not have changed since `add`."""
        del self.tasks[task.spec.uid]
        self._account(task, Resources.sub, -1)

    def _account(self, task: TaskInfo, change: _Change, sign: int) -> None:
        request = task.spec.request
        status = task.status
        if status.holds:
            change(self.used, request)
            cpu, memory = task.spec.scheduling.assumed
            if cpu or memory:
                self.assumed = (self.assumed[0] + sign * cpu, self.assumed[1] + sign * memory)
            if status is TaskStatus.RELEASING:
                change(self.releasing, request)
        elif status is TaskStatus.PIPELINED:
            change(self.pipelined, request)


if TYPE_CHECKING:
    from collections.abc import Callable

    _Change = Callable[[Resources, Resources], None]
