"""How nodes are filtered and scored: what the plugins of a configuration say together.

Most of it looks at what a node is (its make) or at its resources, and is shared by all nodes that are alike. What
depends on the other pods of a node or a domain, or on volumes, is asked only for shapes that are not `plain`: a
`CheckMaker` or `WishMaker` looks up once what the shape asks, and gives a function over nodes, or None when it asks
nothing. `later` asks for a place once the leaving pods are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from muster.scheduler.constraints import Taint
from muster.scheduler.node import NodeInfo
from muster.scheduler.reasons import Code, Reason
from muster.scheduler.task import Shape

Predicate = Callable[[Shape, NodeInfo], "str | None"]
NodeOrder = Callable[[Shape, NodeInfo], float]
MakeOrder = Callable[[Shape, Sequence[NodeInfo]], Sequence[int]]
NodeCheck = Callable[[NodeInfo], "str | None"]
CheckMaker = Callable[[Shape, bool], "NodeCheck | None"]
NodeWish = Callable[[Sequence[NodeInfo]], "Sequence[float] | None"]
"""The points of each node; None: none of them may be chosen."""
Hurdle = Callable[[Shape], "Reason | None"]
WishMaker = Callable[[Shape, bool], "NodeWish | None"]

NOT_DELEGATED = (
    "it uses ResourceClaims, which only default-scheduler can have allocated: make the pod with schedulerName "
    "default-scheduler and the scheduling gate muster.dev/gang"
)

NO_MATCH = "node(s) didn't match Pod's node affinity/selector"
_TAINTED = "node(s) had untolerated taint {taint}"
_TAINTED_BY_KUBERNETES = tuple(
    _TAINTED.format(taint=f"{{{each}") for each in ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
)

PRECISION = 1000
"""Scores are compared in thousandths of a point: finer than any plugin means, coarser than what floats add by noise."""


def tainted(taint: Taint) -> str:
    """What is said of a node with a taint that the pod does not tolerate."""
    return _TAINTED.format(taint=taint)


def may_use(refusal: str | None) -> bool:
    """Whether the pod could ever go there: nothing is said against the node, or what may pass (a cordon, its load)."""
    if refusal is None or refusal.startswith(_TAINTED_BY_KUBERNETES):
        return True
    return refusal != NO_MATCH and not refusal.startswith(_TAINTED.partition("{")[0])


@dataclass(frozen=True, slots=True)
class Judge:
    """How nodes are filtered and scored.

    `predicates` and `make_orders` may read only what makes a make (spec, taints, mentioned labels); `node_predicates`
    and `node_orders` may read the accounts too. A make order scores all admissible makes at once, since Kubernetes
    scales its answers by the largest; so does a wish with all admissible nodes.
    """

    predicates: tuple[Predicate, ...] = ()
    node_orders: tuple[NodeOrder, ...] = ()
    make_orders: tuple[MakeOrder, ...] = ()
    node_predicates: tuple[Predicate, ...] = ()
    checks: tuple[CheckMaker, ...] = ()
    wishes: tuple[WishMaker, ...] = ()
    hurdles: tuple[Hurdle, ...] = ()

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

    def hurdle(self, shape: Shape) -> Reason | None:
        """Why the shape can go to no node at all, whatever nodes there are."""
        if shape.plain:
            return None
        if shape.devices is not None and not shape.devices.delegated:
            # Whatever plugins are configured: the kubelet would refuse it, and it would hold its node for nothing.
            return Reason(Code.NEEDS_DEFAULT_SCHEDULER, detail=NOT_DELEGATED)
        return next((reason for each in self.hurdles if (reason := each(shape)) is not None), None)

    def objection(self, shape: Shape, node: NodeInfo, *, later: bool = False) -> str | None:
        """Why the node will not do for the shape, resources apart: what it is, and who is there."""
        hurdle = self.hurdle(shape)
        if hurdle is not None:
            return hurdle.detail
        failure = self.refusal(shape, node) or self.refusal_now(shape, node)
        return failure if failure is not None else self.check(shape, later=later)(node)

    def check(self, shape: Shape, *, later: bool) -> NodeCheck:
        """The first objection of the pods that are there; made once, good until a pod is placed."""
        checks = self._asked(shape, later=later)
        return lambda node: next((why for each in checks if (why := each(node)) is not None), None)

    def _asked(self, shape: Shape, *, later: bool) -> list[NodeCheck]:
        if shape.plain:
            return []
        return [check for make in self.checks if (check := make(shape, later)) is not None]

    def wishes_of(self, shape: Shape, *, later: bool) -> list[NodeWish]:
        """The scores that depend on the pods that are there."""
        if shape.plain:
            return []
        return [wish for make in self.wishes if (wish := make(shape, later)) is not None]
