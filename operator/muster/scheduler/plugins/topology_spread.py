"""Topology spread: kube-scheduler's rule and score, read from the neighbours' counts."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log

from muster.scheduler.company import SpreadConstraint
from muster.scheduler.judge import NodeCheck, NodeWish
from muster.scheduler.node import NodeInfo
from muster.scheduler.tally import SpreadTally
from muster.scheduler.task import Shape

NO_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"
SKEWED = "node(s) didn't match pod topology spread constraints"
HOSTNAME = "kubernetes.io/hostname"
MAX_SCORE = 100


def topology_spread(shape: Shape, later: bool) -> NodeCheck | None:
    """With the pod, no domain holds more than `max_skew` above the emptiest one."""
    if shape.ties is None:
        return None
    limits: list[tuple[SpreadTally, int]] = []
    for constraint, selection, tally in shape.ties.spread:
        if constraint.hard:
            own = 1 if selection in shape.matched else 0
            fewest = tally.fewest(constraint.min_domains, later=later)
            limits.append((tally, constraint.max_skew + fewest - own))
    if not limits:
        return None

    def check(node: NodeInfo) -> str | None:
        labels = node.labels
        for tally, most in limits:
            domain = labels.get(tally.key)
            if domain is None:
                return NO_LABEL
            if tally.count(domain, later=later) > most:
                return SKEWED
        return None

    return check


def topology_spread_score(shape: Shape, later: bool) -> NodeWish | None:
    """The fewer such pods in the domains of the soft constraints, the better."""
    if shape.ties is None:
        return None
    wishes = [(constraint, tally) for constraint, _, tally in shape.ties.spread if not constraint.hard]
    if not wishes:
        return None

    def scores(nodes: Sequence[NodeInfo]) -> list[int]:
        counted = [all(tally.key in node.labels for _, tally in wishes) for node in nodes]
        weights = [_weight(tally, [n for n, has in zip(nodes, counted, strict=True) if has]) for _, tally in wishes]
        raw = [_crowd(node, wishes, weights, later) if has else None for node, has in zip(nodes, counted, strict=True)]
        known = [each for each in raw if each is not None]
        low, high = min(known, default=0), max(known, default=0)
        return [0 if each is None else MAX_SCORE * (high + low - each) // high if high else MAX_SCORE for each in raw]

    return scores


def _weight(tally: SpreadTally, nodes: Sequence[NodeInfo]) -> float:
    """Topologies of few domains would else be drowned by those of many."""
    domains = len(nodes) if tally.key == HOSTNAME else len({node.labels[tally.key] for node in nodes})
    return log(domains + 2)


def _crowd(
    node: NodeInfo, wishes: Sequence[tuple[SpreadConstraint, SpreadTally]], weights: Sequence[float], later: bool
) -> int:
    crowd = 0.0
    for (constraint, tally), weight in zip(wishes, weights, strict=True):
        crowd += tally.count(node.labels[tally.key], later=later) * weight + (constraint.max_skew - 1)
    return floor(crowd + 0.5)
