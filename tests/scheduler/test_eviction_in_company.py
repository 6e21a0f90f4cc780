"""Evictions are chosen by the same rules: whoever is evicted must leave a place that the rules allow."""

from __future__ import annotations

from muster.scheduler.specs import PriorityClassSpec
from muster.testing import Cluster, configuration, evictions, gang, node, pod, pod_group
from muster.testing_company import constraints, far, ports

PREEMPT = configuration("enqueue, allocate, preempt", ["priority", "gang"], ["predicates", "nodeorder"])
HIGH = PriorityClassSpec("high", 10)
WEB = {"app": "web"}


def cluster(victim: object, scheduling: object) -> Cluster:
    return Cluster.of(
        HIGH,
        node("a", labels={"host": "a"}),
        pod_group("low", 0),
        victim,  # type: ignore[arg-type]
        gang("g", 1, priority_class="high", scheduling=scheduling),  # type: ignore[arg-type]
        configuration=PREEMPT,
    )


def test_a_pod_with_the_same_port_is_evicted_though_resources_are_free() -> None:
    made = cluster(pod("v", "low", node="a", scheduling=ports(80)), ports(80))
    assert evictions(made.cycle()) == {"v"}


def test_a_pod_whose_company_is_refused_is_evicted() -> None:
    made = cluster(pod("v", "low", node="a", labels=WEB), constraints(far("host", app="web")))
    outcome = made.cycle()
    assert evictions(outcome) == {"v"}
    assert [each.node for each in outcome.pipelined] == ["a"]


def test_nobody_is_evicted_for_a_pod_whose_volume_is_not_ready() -> None:
    made = cluster(pod("v", "low", cpu=4, node="a"), constraints(claims=("default/data",)))
    made.cache.storage.known = True
    assert not evictions(made.cycle())
    assert not made.cycle().bindings
