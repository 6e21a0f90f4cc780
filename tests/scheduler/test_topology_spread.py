"""Topology spread constraints, as kube-scheduler has them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muster.scheduler.constraints import PodConstraints, Taint
from muster.scheduler.plugins.topology_spread import NO_LABEL, SKEWED
from muster.scheduler.specs import TaskStatus
from muster.testing import Cluster, Spec, bindings, gang, node, pod
from muster.testing_company import constraints, spread, zone_nodes

WEB = {"app": "web"}


def running(zones: str, **options: object) -> list[Spec]:
    """One pod for each letter, on the first node of that zone."""
    return [
        pod(f"x-{index}", node=f"{zone}-0", ours=False, labels=WEB, cpu=0.1, **options)  # type: ignore[arg-type]
        for index, zone in enumerate(zones)
    ]


def one(scheduling: PodConstraints, labels: dict[str, str] = WEB) -> list[Spec]:
    return gang("g", 1, scheduling=scheduling, labels=labels)


EVEN = constraints(spread("zone", app="web"))


@pytest.mark.parametrize(
    ("specs", "where"),
    [
        pytest.param([*running("a"), *one(EVEN)], "bc", id="not where one is already"),
        pytest.param([*running("ab"), *one(EVEN)], "c", id="the last empty zone"),
        pytest.param([*running("abc"), *one(EVEN)], "abc", id="all alike"),
        pytest.param([*running("aab"), *one(constraints(spread("zone", 2, app="web")))], "bc", id="a skew of two"),
        pytest.param([*running("a"), *one(EVEN, {})], "abc", id="a pod that is not meant itself adds nothing"),
        pytest.param([*running("aa"), *one(EVEN, {})], "bc", id="but must not go where the skew is too large"),
        pytest.param([*running("a", status=TaskStatus.RELEASING), *one(EVEN)], "abc", id="leaving pods do not count"),
        pytest.param([*running("a"), *one(constraints(spread("zone", app="db")))], "abc", id="other pods do not count"),
        pytest.param(
            [*running("abc"), *one(constraints(spread("zone", min_domains=3, app="web")))], "abc", id="enough"
        ),
        pytest.param([*running("abc"), *one(constraints(spread("zone", min_domains=4, app="web")))], "", id="too few"),
        pytest.param([*running("ab"), *one(replace(EVEN, node_selector=(("zone", "a"),)))], "a", id="zones it may use"),
        pytest.param([*one(constraints(spread("rack", app="web")))], "", id="no node has the label"),
        pytest.param(
            [node("d-0", labels={"zone": "d"}, taints=[Taint("t")]), *running("abc"), *one(EVEN)], "", id="tainted"
        ),
        pytest.param(
            [
                node("d-0", labels={"zone": "d"}, taints=[Taint("t")]),
                *running("abc"),
                *one(constraints(spread("zone", honor_taints=True, app="web"))),
            ],
            "abc",
            id="a tainted node left out of account",
        ),
    ],
)
def test_a_pod_goes_where_it_keeps_the_domains_even(specs: list[Spec], where: str) -> None:
    found = list(bindings(Cluster.of(zone_nodes("abc"), specs).cycle()).values())
    assert bool(found) is bool(where)
    assert all(name[0] in where for name in found)


def test_a_gang_is_spread_evenly() -> None:
    cluster = Cluster.of(zone_nodes("ab", 3), gang("g", 6, labels=WEB, scheduling=EVEN))
    assert sorted(name[0] for name in bindings(cluster.cycle()).values()) == list("aaabbb")


def test_a_gang_that_can_not_be_spread_waits_as_a_whole() -> None:
    cluster = Cluster.of(
        zone_nodes("a", 3), node("b-0", cpu=1, labels={"zone": "b"}), gang("g", 4, labels=WEB, scheduling=EVEN)
    )
    outcome = cluster.cycle()
    assert not outcome.bindings
    reason = outcome.pod_groups["default/g"].reason
    assert reason is not None
    assert dict(reason.nodes)[SKEWED] == 3


def test_a_node_without_the_label_says_so() -> None:
    cluster = Cluster.of(node("plain"), one(EVEN))
    reason = cluster.cycle().pod_groups["default/g"].reason
    assert reason is not None
    assert reason.nodes == ((NO_LABEL, 1),)


@pytest.mark.parametrize("event", ["pod", "node"])
def test_a_gang_that_waits_for_even_domains_is_woken_by_what_evens_them(event: str) -> None:
    cluster = Cluster.of(zone_nodes("a"), node("b-0", cpu=0.5, labels={"zone": "b"}), running("a"), one(EVEN))
    assert not cluster.cycle().bindings
    if event == "pod":
        cluster.add(pod("y", node="b-0", ours=False, labels=WEB, cpu=0.1))
    else:
        cluster.cache.remove_node("b-0")
    assert bindings(cluster.cycle()) == {"g-w-0": "a-0"}


@pytest.mark.parametrize(
    ("specs", "where"),
    [
        pytest.param(
            [*running("a"), *one(constraints(spread("zone", hard=False, app="web")))], "b-0", id="the emptier"
        ),
        pytest.param(
            [*running("ab"), *running("a"), *one(constraints(spread("zone", hard=False, app="web")))], "a-0", id="equal"
        ),
        pytest.param(
            [node("z", cpu=64), *one(constraints(spread("zone", hard=False, app="web")))],
            "a-0",
            id="no zone, no points",
        ),
    ],
)
def test_a_soft_constraint_is_a_wish(specs: list[Spec], where: str) -> None:
    assert bindings(Cluster.of(zone_nodes("ab"), specs).cycle()) == {"g-w-0": where}
