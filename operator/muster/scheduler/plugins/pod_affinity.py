"""Affinity and anti-affinity between pods: kube-scheduler's rules and scores, read from the neighbours' counts."""

from __future__ import annotations

from collections.abc import Sequence

from muster.scheduler.judge import NodeCheck, NodeWish
from muster.scheduler.neighbours import Ties
from muster.scheduler.node import NodeInfo
from muster.scheduler.tally import Tally
from muster.scheduler.task import Shape

ALONE = "node(s) didn't match pod affinity rules"
TOGETHER = "node(s) didn't match pod anti-affinity rules"
UNWELCOME = "node(s) didn't satisfy existing pods anti-affinity rules"
MAX_SCORE = 100


def pod_affinity(shape: Shape, later: bool) -> NodeCheck | None:
    """The pod's own terms, and the anti-affinity of the pods that are there."""
    ties = shape.ties
    guards = [guard for selection in shape.matched for guard in selection.guards.values() if guard.users]
    if ties is None or not (ties.affinity or ties.anti_affinity):
        return _welcome(guards, later) if guards else None
    welcome, affine = _welcome(guards, later), _affine(shape, ties, later)

    def check(node: NodeInfo) -> str | None:
        if not affine(node):
            return ALONE
        if _met(ties.anti_affinity, node, later):
            return TOGETHER
        return welcome(node)

    return check


def _welcome(guards: list[Tally], later: bool) -> NodeCheck:
    return lambda node: UNWELCOME if _met(guards, node, later) else None


def _met(tallies: Sequence[Tally], node: NodeInfo, later: bool) -> bool:
    labels = node.labels
    return any(
        (domain := labels.get(tally.key)) is not None and tally.in_the_way(domain, later=later) > 0 for tally in tallies
    )


class _affine:  # noqa: N801 - a closure with a name
    """Whether the pods that the affinity terms ask for are in the node's domains.

    The first pod of its own kind needs no company: nobody could ever start otherwise.
    """

    def __init__(self, shape: Shape, ties: Ties, later: bool) -> None:
        self._tallies = ties.affinity
        self._later = later
        nobody = all(tally.is_empty(later=later) for tally in ties.affinity)
        self._first = nobody and ties.company in shape.matched

    def __call__(self, node: NodeInfo) -> bool:
        labels = node.labels
        domains = [labels.get(tally.key) for tally in self._tallies]
        if self._first:
            return None not in domains
        return all(
            domain is not None and tally.present(domain, later=self._later) > 0
            for tally, domain in zip(self._tallies, domains, strict=True)
        )


def pod_affinity_score(shape: Shape, later: bool) -> NodeWish | None:
    """The pod's preferred terms, and those of the pods that are there; scaled from the worst node to the best."""
    weighed = [(weight, tally) for weight, tally in (shape.ties.preferred if shape.ties else ()) if not _void(tally)]
    weighed += [(1, wish) for selection in shape.matched for wish in selection.wishes.values() if not _void(wish)]
    if not weighed:
        return None

    def scores(nodes: Sequence[NodeInfo]) -> list[int]:
        raw = [
            sum(
                weight * tally.in_the_way(domain, later=later)
                for weight, tally in weighed
                if (domain := node.labels.get(tally.key)) is not None
            )
            for node in nodes
        ]
        low, high = min(raw, default=0), max(raw, default=0)
        if low == high:
            return [0] * len(raw)
        return [MAX_SCORE * (each - low) // (high - low) for each in raw]

    return scores


def _void(tally: Tally) -> bool:
    """Whether nothing is counted anywhere."""
    return not (tally.staying or tally.leaving or tally.coming)
