"""Builders for what pods ask of each other's places, in the style of `muster.testing`.

apart = constraints(far("zone", app="db"))
cluster = Cluster.of(zone_nodes("ab"), gang("db", 2, labels={"app": "db"}, scheduling=apart))
"""

from __future__ import annotations

from muster.scheduler.company import AffinityTerm, Company, HostPort, PreferredAffinity, SpreadConstraint
from muster.scheduler.constraints import PodConstraints
from muster.scheduler.selectors import LabelSelector, Operator, PodSelector, Requirement
from muster.testing import NAMESPACE, Spec, node


def labels(**wanted: str) -> LabelSelector:
    """Labels that all have to be there."""
    return LabelSelector(tuple(Requirement(key, Operator.IN, (value,)) for key, value in sorted(wanted.items())))


def pods_with(**wanted: str) -> PodSelector:
    """Pods of the builders' namespace with these labels."""
    return PodSelector(labels(**wanted), (NAMESPACE,))


def near(key: str, **wanted: str) -> Company:
    """Needs such a pod in its domain."""
    return Company(affinity=(AffinityTerm(pods_with(**wanted), key),))


def far(key: str, **wanted: str) -> Company:
    """Refuses such pods in its domain."""
    return Company(anti_affinity=(AffinityTerm(pods_with(**wanted), key),))


def rather(weight: int, key: str, **wanted: str) -> Company:
    """Would like such pods in its domain, or (with a negative weight) would not."""
    return Company(preferred=(PreferredAffinity(weight, AffinityTerm(pods_with(**wanted), key)),))


def spread(
    key: str, skew: int = 1, *, hard: bool = True, min_domains: int = 1, honor_taints: bool = False, **wanted: str
) -> Company:
    """Spreads such pods evenly."""
    constraint = SpreadConstraint(
        pods_with(**wanted), key, skew, hard=hard, min_domains=min_domains, honor_taints=honor_taints
    )
    return Company(spread=(constraint,))


def constraints(*wishes: Company, **others: object) -> PodConstraints:
    """All these wishes together; `others` are fields of PodConstraints."""
    company = Company(
        affinity=tuple(term for each in wishes for term in each.affinity),
        anti_affinity=tuple(term for each in wishes for term in each.anti_affinity),
        preferred=tuple(term for each in wishes for term in each.preferred),
        spread=tuple(term for each in wishes for term in each.spread),
    )
    return PodConstraints(company=company, **others)  # type: ignore[arg-type]


def ports(*numbers: int) -> PodConstraints:
    """Wants these ports of the node."""
    return PodConstraints(ports=tuple(HostPort(number) for number in numbers))


def zone_nodes(zones: str, each: int = 1, cpu: float = 4) -> list[Spec]:
    """`a-0`, `a-1`, `b-0`, …: nodes labelled with their zone and hostname."""
    return [
        node(f"{zone}-{index}", cpu, labels={"zone": zone, "host": f"{zone}-{index}"})
        for zone in zones
        for index in range(each)
    ]
