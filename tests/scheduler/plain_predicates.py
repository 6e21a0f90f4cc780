"""Kubernetes' rules for pods and their neighbours, written down as plainly as they read: the oracle of a property.

Looks at every pod on every node, knows no counts and shares nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from muster.scheduler.company import AffinityTerm, Company, SpreadConstraint
from muster.scheduler.constraints import HARD_EFFECTS
from muster.scheduler.selectors import PodSelector
from muster.scheduler.specs import NodeSpec, TaskSpec


@dataclass(frozen=True)
class Placed:
    """A pod on a node that exists."""

    pod: TaskSpec
    node: NodeSpec
    leaving: bool = False


def objection(pod: TaskSpec, node: NodeSpec, placed: Sequence[Placed], nodes: Iterable[NodeSpec]) -> str | None:
    """Why the pod must not go to the node where these are placed."""
    wants = pod.scheduling
    if node.unschedulable:
        return "cordon"
    if not wants.selects(node.name, node.labels):
        return "affinity"
    if any(True for _ in wants.untolerated(node.taints, HARD_EFFECTS)):
        return "taint"
    here = [each for each in placed if each.node.name == node.name]
    if any(one.conflicts(other) for each in here for other in each.pod.scheduling.ports for one in wants.ports):
        return "ports"
    company = wants.company or Company()
    return (
        _affinity(pod, node, placed, company)
        or _anti_affinity(pod, node, placed, company)
        or _spread(pod, node, placed, list(nodes), company)
    )


def selects(selector: PodSelector, pod: TaskSpec) -> bool:
    return selector.matches(pod.namespace, pod.labels, {"kubernetes.io/metadata.name": pod.namespace})


def same_domain(term: AffinityTerm, one: NodeSpec, other: NodeSpec) -> bool:
    key = term.topology_key
    return key in one.labels and one.labels.get(key) == other.labels.get(key)


def _affinity(pod: TaskSpec, node: NodeSpec, placed: Sequence[Placed], company: Company) -> str | None:
    terms = company.affinity
    if not terms:
        return None
    if any(term.topology_key not in node.labels for term in terms):
        return "no label"
    friends = [each for each in placed if all(selects(term.pods, each.pod) for term in terms)]
    if all(any(same_domain(term, node, each.node) for each in friends) for term in terms):
        return None
    labelled = [each for each in friends if any(term.topology_key in each.node.labels for term in terms)]
    if not labelled and all(selects(term.pods, pod) for term in terms):
        return None
    return "no company"


def _anti_affinity(pod: TaskSpec, node: NodeSpec, placed: Sequence[Placed], company: Company) -> str | None:
    for each in placed:
        if any(selects(term.pods, each.pod) and same_domain(term, node, each.node) for term in company.anti_affinity):
            return "company"
        theirs = each.pod.scheduling.company or Company()
        if any(selects(term.pods, pod) and same_domain(term, node, each.node) for term in theirs.anti_affinity):
            return "unwelcome"
    return None


def _spread(
    pod: TaskSpec, node: NodeSpec, placed: Sequence[Placed], nodes: Sequence[NodeSpec], company: Company
) -> str | None:
    hard = [each for each in company.spread if each.hard]
    if any(each.topology_key not in node.labels for each in hard):
        return "no label"
    keys = [each.topology_key for each in hard]
    for constraint in hard:
        counted = [each for each in nodes if _takes_part(pod, each, constraint, keys)]
        names = {each.name for each in counted}
        counts = {each.labels[constraint.topology_key]: 0 for each in counted}
        for each in placed:
            if each.node.name in names and not each.leaving and selects(constraint.pods, each.pod):
                counts[each.node.labels[constraint.topology_key]] += 1
        fewest = min(counts.values(), default=0) if len(counts) >= constraint.min_domains else 0
        own = 1 if selects(constraint.pods, pod) else 0
        if counts.get(node.labels[constraint.topology_key], 0) + own - fewest > constraint.max_skew:
            return "skew"
    return None


def _takes_part(pod: TaskSpec, node: NodeSpec, constraint: SpreadConstraint, keys: list[str]) -> bool:
    if any(key not in node.labels for key in keys):
        return False
    if constraint.honor_affinity and not pod.scheduling.selects(node.name, node.labels):
        return False
    return not constraint.honor_taints or not any(True for _ in pod.scheduling.untolerated(node.taints, HARD_EFFECTS))
