"""Affinity and anti-affinity between pods, as kube-scheduler has them, and inside a gang."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muster.scheduler.company import AffinityTerm, Company
from muster.scheduler.constraints import PodConstraints
from muster.scheduler.plugins.pod_affinity import ALONE, TOGETHER, UNWELCOME
from muster.scheduler.selectors import LabelSelector, Operator, PodSelector, Requirement
from muster.scheduler.specs import TaskSpec, TaskStatus
from muster.testing import Cluster, Spec, bindings, gang, node, pod, pod_group
from muster.testing_company import constraints, far, labels, near, pods_with, rather, zone_nodes
from tests.scheduler.audit import audit

WEB, DB = {"app": "web"}, {"app": "db"}
EVERYWHERE = {"a-0", "a-1", "b-0", "b-1"}


def running(name: str, where: str, app: str = "db", **options: object) -> TaskSpec:
    return pod(name, node=where, ours=False, labels={"app": app}, cpu=0.1, **options)  # type: ignore[arg-type]


def needs(selector: PodSelector) -> PodConstraints:
    return constraints(Company(affinity=(AffinityTerm(selector, "zone"),)))


def one(company: PodConstraints, **options: object) -> list[Spec]:
    return gang("g", 1, scheduling=company, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("specs", "where"),
    [
        pytest.param([running("x", "b-1"), *one(constraints(near("zone", app="db")))], {"b-0", "b-1"}, id="its zone"),
        pytest.param([running("x", "b-1"), *one(constraints(near("host", app="db")))], {"b-1"}, id="its host"),
        pytest.param([running("x", "a-0"), *one(constraints(far("zone", app="db")))], {"b-0", "b-1"}, id="not there"),
        pytest.param([running("x", "a-0"), *one(constraints(far("host", app="db")))], {"a-1", "b-0", "b-1"}, id="host"),
        pytest.param([running("x", "a-0"), *one(constraints(near("zone", app="web")))], set(), id="no such pod"),
        pytest.param([*one(constraints(near("zone", app="web")), labels=WEB)], EVERYWHERE, id="the first one"),
        pytest.param(
            [running("x", "b-0", "web"), *one(constraints(near("zone", app="web")), labels=WEB)],
            {"b-0", "b-1"},
            id="not the first one any more",
        ),
        pytest.param([*one(constraints(near("rack", app="web")), labels=WEB)], set(), id="first, but no such label"),
        pytest.param([running("x", "a-0"), *one(constraints(far("rack", app="db")))], EVERYWHERE, id="no rack"),
        pytest.param(
            [running("x", "a-0", scheduling=constraints(far("zone", app="web"))), *one(PodConstraints(), labels=WEB)],
            {"b-0", "b-1"},
            id="unwelcome where the pod that is there refuses it",
        ),
        pytest.param(
            [running("x", "a-0", scheduling=constraints(far("zone", app="web"))), *one(PodConstraints(), labels=DB)],
            EVERYWHERE,
            id="but only if it means this one",
        ),
        pytest.param(
            [
                running("x", "a-0", "db"),
                running("y", "b-0", "web"),
                *one(constraints(near("zone", app="db"), near("zone", app="web"))),
            ],
            set(),
            id="one pod has to match all terms",
        ),
        pytest.param(
            [running("x", "a-0"), *one(constraints(near("zone", app="db"), far("host", app="db")))],
            {"a-1"},
            id="near and yet apart",
        ),
        pytest.param(
            [running("x", "a-0", status=TaskStatus.RELEASING), *one(constraints(near("zone", app="db")))],
            {"a-0", "a-1"},
            id="a pod that leaves is still company",
        ),
        pytest.param(
            [running("x", "a-0"), *one(needs(PodSelector(None, ("default",))))],
            set(),
            id="an absent selector selects nothing",
        ),
        pytest.param(
            [running("x", "b-0"), *one(needs(PodSelector(LabelSelector(), ("default",))))],
            {"b-0", "b-1"},
            id="an empty selector selects all",
        ),
    ],
)
def test_a_pod_goes_where_its_company_allows(specs: list[Spec], where: set[str]) -> None:
    found = set(bindings(Cluster.of(zone_nodes("ab", 2), specs).cycle()).values())
    assert found <= where
    assert bool(found) is bool(where)


@pytest.mark.parametrize("weight", [0, 1000, -1000])
def test_a_wish_of_any_weight_stops_nobody(weight: int) -> None:
    cluster = Cluster.of(zone_nodes("ab"), one(constraints(rather(weight, "zone", app="web")), labels=WEB))
    outcome = cluster.cycle()
    assert set(bindings(outcome)) == {"g-w-0"}
    cluster.settle(outcome)
    cluster.delete("g-w-0")
    cluster.cycle()
    audit(cluster.cache)


def elsewhere(**changes: object) -> PodConstraints:
    term = AffinityTerm(replace(pods_with(app="db"), **changes), "zone")  # type: ignore[arg-type]
    return constraints(Company(affinity=(term,)))


TEAM = LabelSelector((Requirement("team", Operator.IN, ("a",)),))


@pytest.mark.parametrize(
    ("scheduling", "found"),
    [
        (elsewhere(), False),
        (elsewhere(namespaces=("other",)), True),
        (elsewhere(namespaces=("another", "other")), True),
        (elsewhere(namespaces=(), namespace_selector=LabelSelector()), True),
        (elsewhere(namespaces=(), namespace_selector=TEAM), True),
        (elsewhere(namespaces=(), namespace_selector=labels(team="b")), False),
        (elsewhere(namespaces=("default",), namespace_selector=TEAM), True),
        (elsewhere(namespaces=(), namespace_selector=labels(**{"kubernetes.io/metadata.name": "other"})), True),
    ],
)
def test_a_term_looks_into_the_namespaces_that_it_names(scheduling: PodConstraints, *, found: bool) -> None:
    cluster = Cluster.of(zone_nodes("ab"), replace(running("x", "b-0"), namespace="other"), one(scheduling))
    cluster.cache.set_namespace("other", {"team": "a"})
    assert bindings(cluster.cycle()) == ({"g-w-0": "b-0"} if found else {})


def test_a_namespace_that_gets_its_label_late_wakes_who_waits_for_its_pods() -> None:
    scheduling = elsewhere(namespaces=(), namespace_selector=TEAM)
    cluster = Cluster.of(zone_nodes("ab"), replace(running("x", "b-0"), namespace="other"), one(scheduling))
    assert not cluster.cycle().bindings
    cluster.cache.set_namespace("other", {"team": "a"})
    assert bindings(cluster.cycle()) == {"g-w-0": "b-0"}


def test_members_that_refuse_each_other_are_spread_or_none_is_placed() -> None:
    apart = constraints(far("host", app="web"))
    cluster = Cluster.of(zone_nodes("ab", 2), gang("g", 4, labels=WEB, scheduling=apart))
    assert sorted(bindings(cluster.cycle()).values()) == ["a-0", "a-1", "b-0", "b-1"]
    cluster = Cluster.of(zone_nodes("ab", 2), gang("g", 5, labels=WEB, scheduling=apart))
    outcome = cluster.cycle()
    assert not outcome.bindings
    reason = outcome.pod_groups["default/g"].reason
    assert reason is not None
    assert reason.nodes == ((TOGETHER, 4),)
    assert (reason.have, reason.need) == (4, 5)


def test_one_member_looks_for_another_that_comes_after_it_in_the_order() -> None:
    seeks = constraints(near("host", app="head"))
    head = constraints(PodConstraints().company or far("none", app="nobody"), node_selector=(("zone", "b"),))
    cluster = Cluster.of(
        zone_nodes("ab", 2),
        pod_group("g", 3),
        pod("g-w-0", "g", scheduling=seeks),
        pod("g-w-1", "g", scheduling=seeks),
        pod("g-w-2", "g", scheduling=head, labels={"app": "head"}),
    )
    found = bindings(cluster.cycle())
    assert len(found) == 3
    assert len(set(found.values())) == 1


def test_a_member_that_takes_the_only_place_of_a_pickier_one_is_placed_after_it() -> None:
    apart = constraints(far("zone", app="web"))
    picky = replace(apart, node_selector=(("zone", "a"),))
    cluster = Cluster.of(
        zone_nodes("ab"),
        pod_group("g", 2),
        pod("g-w-0", "g", scheduling=apart, labels=WEB),
        pod("g-w-1", "g", scheduling=picky, labels=WEB),
    )
    assert bindings(cluster.cycle()) == {"g-w-0": "b-0", "g-w-1": "a-0"}


@pytest.mark.parametrize(
    ("specs", "histogram"),
    [
        ([running("x", "a-0"), *one(constraints(far("zone", app="db")))], {TOGETHER: 1}),
        ([*one(constraints(near("zone", app="db")))], {ALONE: 1}),
        (
            [running("x", "a-0", scheduling=constraints(far("zone", app="web"))), *one(PodConstraints(), labels=WEB)],
            {UNWELCOME: 1},
        ),
    ],
)
def test_the_reason_says_what_kube_scheduler_would_say(specs: list[Spec], histogram: dict[str, int]) -> None:
    outcome = Cluster.of(zone_nodes("a"), specs).cycle()
    reason = outcome.pod_groups["default/g"].reason
    assert reason is not None
    assert dict(reason.nodes) == histogram
    assert outcome.pods["default/g-w-0"].reason == "Unschedulable"


def test_a_gang_that_waits_for_company_is_woken_when_it_comes() -> None:
    cluster = Cluster.of(zone_nodes("ab"), one(constraints(near("zone", app="db"))))
    assert not cluster.cycle().bindings
    assert not cluster.cycle().bindings
    cluster.add(running("x", "b-0"))
    assert bindings(cluster.cycle()) == {"g-w-0": "b-0"}


def test_a_gang_that_waits_for_a_pod_to_go_is_woken_though_another_node_is_freed() -> None:
    cluster = Cluster.of(
        node("full", cpu=0.2, labels={"zone": "a"}),
        node("free", labels={"zone": "a"}),
        running("x", "full"),
        one(constraints(far("zone", app="db"))),
    )
    assert not cluster.cycle().bindings
    cluster.delete("x")
    assert bindings(cluster.cycle()) == {"g-w-0": "free"}


def test_a_gang_is_woken_by_what_the_same_cycle_places_after_it() -> None:
    cluster = Cluster.of(zone_nodes("ab"), one(constraints(near("zone", app="db"))), gang("late", 1, labels=DB))
    first = cluster.cycle()
    assert set(bindings(first)) == {"late-w-0"}
    assert first.wake_at == cluster.now
    assert set(bindings(cluster.cycle())) == {"g-w-0"}
    assert cluster.placed()["g-w-0"] == cluster.placed()["late-w-0"]


def test_what_waits_in_vain_costs_no_more_cycles() -> None:
    cluster = Cluster.of(zone_nodes("ab"), gang("g", 3, labels=WEB, scheduling=constraints(far("zone", app="web"))))
    assert not cluster.cycle().bindings
    assert cluster.cycle().wake_at != cluster.now


def test_a_pod_that_leaves_is_in_the_way_now_but_not_later() -> None:
    cluster = Cluster.of(
        zone_nodes("a"), running("x", "a-0", status=TaskStatus.RELEASING), one(constraints(far("zone", app="db")))
    )
    outcome = cluster.cycle()
    assert not outcome.bindings
    assert [each.node for each in outcome.pipelined] == ["a-0"]


def test_a_label_that_changes_on_a_running_pod_counts_at_once() -> None:
    cluster = Cluster.of(zone_nodes("a"), running("x", "a-0"), one(constraints(far("zone", app="db"))))
    assert not cluster.cycle().bindings
    cluster.change_pod("x", labels=WEB)
    assert bindings(cluster.cycle()) == {"g-w-0": "a-0"}


def test_a_node_that_moves_to_another_zone_takes_its_pods_along() -> None:
    cluster = Cluster.of(zone_nodes("ab"), running("x", "a-0"), one(constraints(near("zone", app="db")), cpu=4))
    assert not cluster.cycle().bindings
    cluster.add(node("a-0", labels={"zone": "b"}))
    assert bindings(cluster.cycle()) == {"g-w-0": "b-0"}


@pytest.mark.parametrize(
    ("specs", "where"),
    [
        pytest.param([running("x", "b-0"), *one(constraints(rather(1, "zone", app="db")))], "b-0", id="wanted"),
        pytest.param([running("x", "a-0"), *one(constraints(rather(-1, "zone", app="db")))], "b-0", id="unwanted"),
        pytest.param(
            [
                running("x", "b-0", scheduling=constraints(rather(5, "zone", app="web"))),
                *one(PodConstraints(), labels=WEB),
            ],
            "b-0",
            id="wanted by the one that is there",
        ),
        pytest.param(
            [
                running("x", "a-0"),
                running("y", "b-0", "web"),
                *one(constraints(rather(1, "zone", app="db"), rather(3, "zone", app="web"))),
            ],
            "b-0",
            id="the weights decide",
        ),
        pytest.param(
            [running("x", "b-0", scheduling=constraints(near("zone", app="web"))), *one(PodConstraints(), labels=WEB)],
            "a-0",
            id="what a pod once needed is no wish of it",
        ),
    ],
)
def test_preferred_company_outweighs_emptiness(specs: list[Spec], where: str) -> None:
    assert bindings(Cluster.of(zone_nodes("ab", cpu=8), specs).cycle()) == {"g-w-0": where}
