"""Who is evicted is needed for the gang, each of them, when it has all its places."""

from __future__ import annotations

from typing import Any

import pytest

from muster.scheduler.conf import SchedulerConfiguration, load_configuration
from muster.scheduler.specs import Phase, PriorityClassSpec
from muster.testing import Cluster, Spec, bindings, evictions, node, pod, pod_group, queue, resources
from muster.testing_company import constraints, far, near, spread
from tests.scheduler.audit import audit
from tests.scheduler.audit_evictions import audited_evictions

CLASSES = [PriorityClassSpec("high", 100), PriorityClassSpec("low", 1)]
WEB = {"app": "web"}


def configured(actions: str, *tiers: list[str], **arguments: Any) -> SchedulerConfiguration:
    return load_configuration(
        {
            "actions": actions,
            "tiers": [{"plugins": [{"name": name} for name in tier]} for tier in tiers],
            "configurations": [{"name": "preempt", "arguments": arguments}],
        }
    )


PREEMPT = configured("allocate, preempt", ["priority", "gang", "conformance"], ["predicates"])
CAREFUL = configured("allocate, preempt", ["priority", "gang"], ["predicates"], enableTopologyAwarePreemption=True)
RECLAIM = configured("allocate, reclaim", ["priority", "gang"], ["predicates", "capacity"])
GANGPREEMPT = configured("allocate, gangpreempt", ["priority", "gang", "conformance"], ["predicates"])


def running(name: str, *members: Spec, least: int = 0, **options: Any) -> list[Spec]:
    return [pod_group(name, least, phase=Phase.RUNNING, priority_class="low", **options), *members]


def waiting(name: str, *members: Spec, least: int | None = None, **options: Any) -> list[Spec]:
    least = len(members) if least is None else least
    return [pod_group(name, least, phase=Phase.INQUEUE, priority_class="high", **options), *members]


def cluster_of(configuration: SchedulerConfiguration, *specs: Any) -> Cluster:
    return Cluster.of(CLASSES, *specs, configuration=configuration)


@pytest.mark.parametrize(
    ("configuration", "losers"),
    [(PREEMPT, "taker"), (CAREFUL, "taker"), (RECLAIM, "giver")],
    ids=["preempt", "careful preempt", "reclaim"],
)
def test_who_goes_for_one_member_stays_when_who_goes_for_the_next_frees_enough_for_both(
    configuration: SchedulerConfiguration, losers: str
) -> None:
    cluster = cluster_of(
        configuration,
        queue("giver"),
        queue("taker", deserved=resources(4)),
        node("n", 4),
        running("low", pod("small", "low", 1, node="n"), pod("large", "low", 3, node="n", priority=5), queue=losers),
        waiting("high", pod("high-w-0", "high", 1), pod("high-w-1", "high", 2), queue="taker"),
    )
    outcome = cluster.cycle()
    assert evictions(outcome) == {"large"}
    assert len(outcome.pipelined) == 2
    cluster.settle(outcome)
    assert set(bindings(cluster.cycle())) == {"high-w-0", "high-w-1"}
    audit(cluster.cache)


def test_pods_on_a_node_that_the_gang_does_not_use_stay_though_others_ask_too_much_of_that_node() -> None:
    cluster = cluster_of(
        GANGPREEMPT,
        node("full", 2),
        pod("other", cpu=3, ours=False, node="full"),
        node("n", 1),
        running("a", pod("a-0", "a", 1, node="n")),
        running("b", pod("b-0", "b", 1, node="full")),
        waiting("high", pod("high-w-0", "high", 1)),
    )
    assert evictions(cluster.cycle()) == {"a-0"}


def test_a_pod_from_which_a_member_keeps_away_is_evicted_though_another_member_came_last() -> None:
    cluster = cluster_of(
        GANGPREEMPT,
        node("a", 3, labels={"host": "a"}),
        node("b", 1, labels={"host": "b"}),
        running("low", pod("web", "low", 1, node="a", labels=WEB), pod("plain", "low", 1, node="b")),
        waiting(
            "high",
            pod("high-w-0", "high", 1, scheduling=constraints(far("host", app="web"), node_selector=(("host", "a"),))),
            pod("high-w-1", "high", 1, scheduling=constraints(node_selector=(("host", "b"),))),
        ),
    )
    outcome = cluster.cycle()
    assert evictions(outcome) == {"web", "plain"}
    assert {each.pod: each.node for each in outcome.pipelined} == {"high-w-0": "a", "high-w-1": "b"}
    cluster.settle(outcome)
    assert set(bindings(cluster.cycle())) == {"high-w-0", "high-w-1"}


def test_nobody_is_evicted_for_one_member_whose_company_another_member_needs() -> None:
    cluster = cluster_of(
        PREEMPT,
        node("n", 2, labels={"host": "n"}),
        running("low", pod("web", "low", 1, node="n", labels=WEB)),
        waiting(
            "high",
            pod("high-w-0", "high", 1, scheduling=constraints(near("host", app="web"))),
            pod("high-w-1", "high", 1),
        ),
    )
    outcome = cluster.cycle()
    assert (outcome.evictions, outcome.pipelined) == ((), ())


def test_a_pod_elsewhere_is_evicted_for_the_quota_that_it_holds() -> None:
    """A queue above what it deserves has to give back more than its member takes, wherever its pods are."""
    cluster = cluster_of(
        configured("allocate, gangpreempt", ["priority", "gang", "conformance"], ["predicates", "proportion"]),
        queue("q"),
        node("n-0", 2),
        node("n-1", 2),
        running("a", *(pod(f"a-{index}", "a", 1, node="n-0") for index in range(2)), least=1),
        running("b", *(pod(f"b-{index}", "b", 1, node="n-1") for index in range(2)), least=1),
        waiting("high", pod("high-w-0", "high", 1)),
        waiting("elsewhere", pod("elsewhere-w-0", "elsewhere", 1), queue="q"),
    )
    outcome = cluster.cycle()
    assert evictions(outcome) == {"a-1", "b-1"}
    assert [each.pod for each in outcome.pipelined] == ["high-w-0"]


def test_a_gang_that_is_taken_whole_gives_no_more_than_is_needed_when_it_can_spare_others_after_all() -> None:
    """Of five pods that need two, two are in the way of the new gang; the three on the other node can stay."""
    cluster = cluster_of(
        GANGPREEMPT,
        node("a", 2, labels={"host": "a"}),
        node("b", 3),
        running("low", *(pod(f"low-{index}", "low", 1, node="abbab"[index]) for index in range(5)), least=2),
        waiting(
            "high",
            *(
                pod(f"high-w-{index}", "high", 1, scheduling=constraints(node_selector=(("host", "a"),)))
                for index in range(2)
            ),
        ),
    )
    assert evictions(cluster.cycle()) == {"low-0", "low-3"}


def test_who_stays_can_let_another_stay_where_a_spread_is_asked_for() -> None:
    """The more of a kind stay in one zone, the more are allowed in the other."""
    cluster = cluster_of(
        GANGPREEMPT,
        node("b-0", 3, labels={"zone": "b"}),
        node("a-0", 4, labels={"zone": "a"}),
        node("a-1", 4, labels={"zone": "a"}),
        running("big", *(pod(f"big-{index}", "big", 2, node=("b-0", "a-0", "a-0")[index]) for index in range(3))),
        running(
            "low",
            *(pod(f"low-{index}", "low", 1, labels=WEB, node="a-1" if index else "b-0") for index in range(4)),
        ),
        waiting(
            "high",
            *(pod(f"high-w-{n}", "high", 1, scheduling=constraints(spread("zone", app="web"))) for n in range(2)),
        ),
    )
    with audited_evictions():
        outcome = cluster.cycle()
    assert outcome.evictions
    cluster.settle(outcome)
    assert set(bindings(cluster.cycle())) == {"high-w-0", "high-w-1"}


@pytest.mark.parametrize("configuration", [PREEMPT, GANGPREEMPT], ids=["preempt", "gangpreempt"])
def test_a_member_that_keeps_away_from_its_own_kind_finds_its_place_first(
    configuration: SchedulerConfiguration,
) -> None:
    """The spread allows one pod of the kind more than there are: the member that asks for it comes before the other."""
    cluster = cluster_of(
        configuration,
        node("a", 2, labels={"zone": "a"}),
        node("b", 2, labels={"zone": "a"}),
        running("low", pod("low-0", "low", 2, node="a", labels=WEB)),
        waiting(
            "high",
            pod("high-w-0", "high", 1, labels=WEB),
            pod("high-w-1", "high", 1, labels=WEB, scheduling=constraints(spread("zone", min_domains=2, app="web"))),
        ),
    )
    outcome = cluster.cycle()
    assert evictions(outcome) == {"low-0"}
    cluster.settle(outcome)
    assert set(bindings(cluster.cycle())) == {"high-w-0", "high-w-1"}


@pytest.mark.parametrize("configuration", [PREEMPT, GANGPREEMPT], ids=["preempt", "gangpreempt"])
def test_nobody_is_evicted_for_a_worker_too_many_before_the_head_has_its_place(
    configuration: SchedulerConfiguration,
) -> None:
    cluster = cluster_of(
        configuration,
        node("n", 3),
        running("low", *(pod(f"low-{index}", "low", 1, node="n") for index in range(3))),
        waiting(
            "high",
            *(pod(f"high-w-{index}", "high", 1, role="worker") for index in range(2)),
            pod("high-z-9", "high", 1, role="head"),
            least=2,
            roles={"head": 1},
        ),
    )
    outcome = cluster.cycle()
    assert len(outcome.evictions) == 2
    assert {each.pod for each in outcome.pipelined} == {"high-w-0", "high-z-9"}
