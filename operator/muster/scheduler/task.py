"""A task: a pod as the scheduler sees it.

Tasks with equal requests and equal constraints, that the same selections of others match, are of one `Shape`: they
share feasible nodes and scores, and a gang is known by the shapes of its tasks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from heapq import merge
from typing import TYPE_CHECKING

from muster.scheduler.constraints import PodConstraints
from muster.scheduler.resources import PODS, ResourceKey, Resources
from muster.scheduler.specs import PodVerdict, TaskSpec, TaskStatus

if TYPE_CHECKING:
    from muster.scheduler.job import JobInfo
    from muster.scheduler.neighbours import Identity, Selection, Ties
    from muster.scheduler.rivals import Loss

_INDEXED_NAME = re.compile(r"[^-]*-.*-(\d+)$")

ShapeKey = tuple[ResourceKey, ResourceKey, PodConstraints, tuple[int, ...]]


class Shape:
    """What placement depends on. One object per distinct value, so that identity is equality.

    `ties` is what the pod asks of its neighbours, `matched` the selections in which it is counted itself, `concerns`
    all selections on whose pods its place can depend. `stem` is equal for shapes that differ only in which claims to
    devices they have, None for those without any. A `plain` shape is judged by what makes a node and by its
    resources alone; a `sociable` one may find a place when others find theirs. `counted` shapes change counts of
    neighbours when they are placed.
    """

    __slots__ = (
        "assumed",
        "best_effort",
        "concerns",
        "counted",
        "devices",
        "id",
        "init_request",
        "matched",
        "plain",
        "request",
        "scheduling",
        "sociable",
        "stem",
        "ties",
        "users",
    )

    def __init__(
        self,
        shape_id: int,
        request: Resources,
        init_request: Resources,
        scheduling: PodConstraints,
        matched: tuple[Selection, ...] = (),
        ties: Ties | None = None,
    ) -> None:
        self.id = shape_id
        self.request = request
        self.init_request = _with_pods(init_request, request)
        self.scheduling = scheduling
        self.assumed = scheduling.assumed
        self.devices = scheduling.devices
        self.matched = matched
        self.ties = ties
        self.best_effort = init_request.is_empty()
        asked = scheduling.ports or scheduling.claims or scheduling.seat or scheduling.individual
        self.plain = not (asked or scheduling.devices or ties or matched)
        self.sociable = ties is not None and bool(ties.affinity or ties.spread)
        self.counted = bool(matched or (ties is not None and ties.owned))
        self.concerns = frozenset((*matched, *(ties.selections if ties is not None else ())))
        self.stem: object = None
        self.users = 0


def _with_pods(init_request: Resources, request: Resources) -> Resources:
    """What has to be idle on a node. A pod takes one of the node's pods, whichever way its containers start."""
    needed = init_request.maximum(request)
    needed.scalars.setdefault(PODS, 1)
    return needed


class TaskInfo:
    """A pod, or the placeholder of one that a gang will need later (`companion`).

    `status` and `node` change only through the cache, which keeps all accounts. `assumed` says that the node is our
    decision and not yet confirmed, `delegated_at` (Unix seconds) since when the default scheduler is to confirm it,
    `evicted` that leaving is our decision and not yet confirmed. `nominated` is the
    node on which pods were evicted for it, `spoils` names the jobs that lost that room. `job` is None for a pod that is
    no business of ours but occupies a node.
    """

    __slots__ = (
        "assumed",
        "companion",
        "delegated_at",
        "evicted",
        "identity",
        "job",
        "node",
        "nominated",
        "order",
        "overdue",
        "shape",
        "spec",
        "spoils",
        "status",
        "verdict",
    )

    def __init__(self, spec: TaskSpec, shape: Shape, identity: Identity, *, companion: bool = False) -> None:
        self.spec = spec
        self.shape = shape
        self.identity = identity
        self.status: TaskStatus = TaskStatus.PENDING
        self.node: str | None = None
        self.job: JobInfo | None = None
        self.companion = companion
        self.assumed = False
        self.delegated_at: float | None = None
        self.evicted: TaskStatus | None = None
        self.nominated: str | None = None
        self.spoils: dict[str, Loss] = {}
        self.verdict: PodVerdict | None = spec.verdict
        self.overdue = False
        self.order = default_order(spec)

    def __repr__(self) -> str:
        return f"TaskInfo({self.key}, {self.status.value}, {self.node})"

    @property
    def uid(self) -> str:
        """The pod's uid."""
        return self.spec.uid

    @property
    def leaves(self) -> bool:
        """Whether it is about to be gone: it has begun to leave, and is not overdue."""
        return self.status is TaskStatus.RELEASING and not self.overdue

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.spec.namespace}/{self.spec.name}"

    @property
    def role(self) -> str:
        """The task of the gang that the pod belongs to (`headgroup`, a worker group)."""
        return self.spec.role

    @property
    def request(self) -> Resources:
        """What it takes from a node, `pods: 1` included."""
        return self.spec.request

    @property
    def best_effort(self) -> bool:
        """Asks for nothing (`pods` does not count)."""
        return self.shape.best_effort

    @property
    def schedulable(self) -> bool:
        """Pending, ours to place, and not held back by somebody else."""
        return self.status is TaskStatus.PENDING and self.spec.ours and not self.held_back

    @property
    def held_back(self) -> bool:
        """Whether somebody else keeps it, as long as it is Pending, from being placed: by a gate, or by a pin."""
        return self.spec.gated or self.pinned

    @property
    def pinned(self) -> bool:
        """Whether it was handed to the default scheduler; a Pending one was so by somebody else than us."""
        return self.spec.delegation is not None and self.spec.delegation.node != ""


def default_order(spec: TaskSpec) -> tuple[int, int, float, str, str]:
    """Volcano's order inside a job: the index at the end of the name, else age, then uid."""
    match = _INDEXED_NAME.match(spec.name)
    index = (0, int(match.group(1))) if match else (1, 0)
    return (*index, spec.creation, spec.uid, spec.name)


def numbered_by_age(tasks: Sequence[TaskInfo]) -> list[TaskInfo]:
    """Tasks in the default order, but those without a number among those with one, as their ages are.

    Volcano compares a numbered task with any other by age. That alone is no order, since numbers and ages may disagree:
    here both kinds keep their own order, and whichever is next and older goes first.
    """
    kinds = ([task for task in tasks if task.order[0] == kind] for kind in (0, 1))
    return list(merge(*kinds, key=lambda task: (task.spec.creation, task.spec.uid, task.spec.name)))
