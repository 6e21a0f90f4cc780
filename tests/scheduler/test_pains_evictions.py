"""What users of Volcano suffered where pods are evicted: in vain, too many, the wrong ones, or round in circles."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muster.scheduler.conf import SchedulerConfiguration
from muster.scheduler.constraints import PodConstraints
from muster.scheduler.outcome import Outcome
from muster.scheduler.resources import Resources
from muster.scheduler.specs import Phase, PriorityClassSpec, TaskStatus
from muster.testing import (
    Cluster,
    Spec,
    configuration,
    evictions,
    node,
    nodes,
    plugin,
    pod,
    pod_group,
    pods,
    queue,
    resources,
)

Specs = Spec | list[Spec]

CLASSES: list[Spec] = [PriorityClassSpec("high", 1000), PriorityClassSpec("low", 10)]
GANG = plugin("gang", enablePreemptable=False)
PREEMPT = configuration("enqueue, allocate, preempt", ["priority", GANG, "conformance"], ["predicates", "proportion"])
RECLAIM = configuration("enqueue, allocate, reclaim", ["priority", "gang"], ["predicates", "proportion"])
CAPACITY = configuration("enqueue, allocate, reclaim", ["priority", "gang"], ["predicates", "capacity"])


def low(name: str, count: int, least: int = 0, *, at: str = "n", cpu: float = 1, **scalars: int) -> list[Spec]:
    group = pod_group(name, least, phase=Phase.RUNNING, priority_class="low")
    return [group, *pods(name, count, cpu, node=at, **scalars)]


def high(name: str, count: int, *, cpu: float = 1, **scalars: int) -> list[Spec]:
    group = pod_group(name, count, phase=Phase.INQUEUE, priority_class="high")
    return [group, *pods(name, count, cpu, **scalars)]


def holding(queue_name: str, count: int, *, at: str = "n", cpu: float = 1, **scalars: int) -> list[Spec]:
    group = pod_group(f"of-{queue_name}", 0, phase=Phase.RUNNING, queue=queue_name)
    return [group, *pods(group.name, count, cpu, node=at, **scalars)]


def wanting(queue_name: str, count: int, *, cpu: float = 1, name: str = "new", **scalars: int) -> list[Spec]:
    return [pod_group(name, count, phase=Phase.INQUEUE, queue=queue_name), *pods(name, count, cpu, **scalars)]


def all_evictions(outcomes: list[Outcome]) -> set[str]:
    return {pod for outcome in outcomes for pod in evictions(outcome)}


# --- nobody leaves in vain ---


@pytest.mark.parametrize(
    ("conf", "specs"),
    [
        pytest.param(PREEMPT, [low("a", 2), high("g", 3)], id="preempt: one member too many"),
        pytest.param(PREEMPT, [low("a", 2), high("g", 1, cpu=3)], id="preempt: a member too large"),
        pytest.param(
            RECLAIM, [queue("q1"), queue("q2"), holding("q1", 2), wanting("q2", 2)], id="reclaim: more than is deserved"
        ),
    ],
)
def test_evictions_that_do_not_help_are_never_sent(conf: SchedulerConfiguration, specs: list[Spec]) -> None:
    """volcano#5026, volcano#5010, volcano#5067, volcano#3673."""
    cluster = Cluster.of(node("n", 2), CLASSES, *specs, configuration=conf)
    assert not all_evictions(cluster.run())


def test_inside_a_gang_nobody_leaves_for_a_member_that_finds_no_place_even_so() -> None:
    """volcano#5011."""
    members = [pod("g-w-0", "g", 1, node="n"), pod("g-w-1", "g", 4, priority=9)]
    cluster = Cluster.of(node("n", 2), pod_group("g", 2, phase=Phase.RUNNING), members, configuration=PREEMPT)
    assert not all_evictions(cluster.run())


def test_nodes_that_were_tried_first_and_did_not_do_lose_nobody() -> None:
    """volcano#5067: only the pods of the node that is used in the end are evicted."""
    specs: list[Specs] = [low("a", 2, at="n-0"), low("b", 1, at="n-1", cpu=4)]
    cluster = Cluster.of(nodes("n", 2, cpu=4), CLASSES, *specs, high("g", 1, cpu=4), configuration=PREEMPT)
    cluster.add(pod("fixed", node="n-0", cpu=1, ours=False))
    assert evictions(cluster.cycle()) == {"b-w-0"}


def test_the_victims_of_one_node_are_not_added_up_with_those_of_another() -> None:
    """volcano#4926, volcano#4925: enough in sum is not enough."""
    specs: list[Specs] = [queue("q1"), queue("q2"), holding("q1", 2, at="n-0"), nodes("n", 2, cpu=2)]
    specs.append([pod_group("b", 0, phase=Phase.RUNNING, queue="q1"), *pods("b", 2, node="n-1")])
    cluster = Cluster.of(*specs, wanting("q2", 1, cpu=3), configuration=RECLAIM)
    assert not all_evictions(cluster.run())


def test_reclaim_goes_on_until_the_task_fits_in_every_dimension() -> None:
    """volcano#4926: CPU is there after the first victim, GPUs only after the second."""
    specs: list[Specs] = [queue("q1"), queue("q2"), node("n", 8, gpu=2), holding("q1", 2, cpu=3, gpu=1)]
    cluster = Cluster.of(*specs, wanting("q2", 1, cpu=3, gpu=1), configuration=RECLAIM)
    assert len(evictions(cluster.cycle())) == 1
    cluster = Cluster.of(*specs[:2], node("n", 8, gpu=4), holding("q1", 4, cpu=2, gpu=1), configuration=RECLAIM)
    cluster.add(wanting("q2", 1, cpu=2, gpu=2))
    assert len(evictions(cluster.cycle())) == 2


def test_a_job_that_can_not_reclaim_does_not_keep_the_next_one_of_its_queue_from_it() -> None:
    """volcano#3003."""
    specs: list[Specs] = [queue("q1"), queue("q2"), node("n", 4), holding("q1", 4)]
    jobs = [*wanting("q2", 4, name="big"), *wanting("q2", 1, name="small")]
    cluster = Cluster.of(*specs, jobs, configuration=RECLAIM)
    cluster.run()
    assert "small-w-0" in cluster.placed()


# --- nor round in circles ---


@pytest.mark.parametrize("conf", [RECLAIM, CAPACITY], ids=["proportion", "capacity"])
def test_two_queues_do_not_take_the_same_room_from_each_other_for_ever(conf: SchedulerConfiguration) -> None:
    """volcano#377, volcano#561, volcano#4947, volcano#4949: each victim comes back at once."""
    half = resources(2)
    specs: list[Specs] = [queue("q1", deserved=half), queue("q2", deserved=half), node("n", 4), holding("q1", 4)]
    cluster = Cluster.of(*specs, wanting("q2", 2), configuration=conf)
    count = 0
    for turn in range(12):
        outcome = cluster.cycle(1)
        victims = [cluster.cache.tasks[each.task_uid].spec for each in outcome.evictions]
        count += len(victims)
        cluster.settle(outcome)
        for spec in victims:
            again = replace(spec, uid=f"{spec.uid}-{turn}", name=f"{spec.name}-{turn}")
            cluster.add(replace(again, node=None, status=TaskStatus.PENDING))
    assert count == 2
    assert {"new-w-0", "new-w-1"} <= cluster.placed().keys()


def test_while_victims_take_their_time_nobody_else_is_evicted_for_the_same_gang() -> None:
    """volcano#394: long grace periods."""
    cluster = Cluster.of(nodes("n", 2, cpu=2), CLASSES, low("a", 2, at="n-0"), low("b", 2, at="n-1"))
    cluster.configuration = PREEMPT
    cluster.add(high("g", 2))
    gone = evictions(cluster.cycle())
    assert len(gone) == 2
    for name in gone:
        cluster.change_pod(name, status=TaskStatus.RELEASING)
    for _ in range(5):
        outcome = cluster.cycle(30)
        assert not outcome.evictions
        assert not outcome.bindings
    cluster.delete(*gone)
    assert len(cluster.cycle().bindings) == 2


@pytest.mark.parametrize("action", ["gangpreempt", "gangreclaim"])
def test_no_bundle_goes_that_is_not_needed(action: str) -> None:
    """volcano#5994, volcano#5984."""
    tier = ["priority", "gang", "conformance"]
    conf = configuration(f"enqueue, allocate, {action}", tier, ["predicates", "proportion"])
    specs: list[Specs] = [queue("q1"), queue("q2"), node("n", 6)]
    holders = [[pod_group(f"h{i}", 0, phase=Phase.RUNNING, queue="q1", priority_class="low")] for i in range(3)]
    running = [pods(f"h{i}", 2, node="n") for i in range(3)]
    taker = "q1" if action == "gangpreempt" else "q2"
    group = pod_group("g", 3, phase=Phase.INQUEUE, queue=taker, priority_class="high")
    cluster = Cluster.of(CLASSES, *specs, *holders, *running, group, pods("g", 3), configuration=conf)
    assert len(evictions(cluster.cycle())) == 3


# --- who leaves ---


@pytest.mark.parametrize(
    ("cap", "idle_enough"), [pytest.param(4, False, id="the queue is full"), pytest.param(6, True, id="it has room")]
)
def test_in_a_full_queue_the_lower_job_gives_way_though_nodes_are_free(cap: float, *, idle_enough: bool) -> None:
    """volcano#3161."""
    specs: list[Specs] = [queue("q", capability=resources(cap)), node("n", 12)]
    cluster = Cluster.of(CLASSES, *specs, configuration=PREEMPT)
    cluster.add(pod_group("a", 0, phase=Phase.RUNNING, queue="q", priority_class="low"), pod("a-0", "a", 3, node="n"))
    cluster.add(pod_group("g", 1, phase=Phase.INQUEUE, queue="q", priority_class="high"), pod("g-0", "g", 3))
    assert (evictions(cluster.cycle()) == set()) is idle_enough


def test_the_pod_that_matters_least_goes_and_none_that_may_not() -> None:
    """volcano#2232."""
    victims = [
        replace(pod("a-0", "a", node="n"), preemptable=False),
        pod("a-1", "a", node="n"),
        pod("a-2", "a", node="n", priority=1000),
    ]
    cluster = Cluster.of(CLASSES, node("n", 3), pod_group("a", 1, phase=Phase.RUNNING, priority_class="low"), victims)
    cluster.configuration = PREEMPT
    cluster.add(high("g", 1))
    assert evictions(cluster.cycle()) == {"a-1"}


@pytest.mark.parametrize("asks", [0, 3])
def test_a_pod_that_asks_for_nothing_gives_its_slot_to_a_higher_one(asks: float) -> None:
    """volcano#3335: the node takes one pod only."""
    cluster = Cluster.of(CLASSES, node("n", 12, pods=1), low("a", 1, cpu=0), high("g", 1, cpu=asks))
    cluster.configuration = PREEMPT
    assert evictions(cluster.cycle()) == {"a-w-0"}


def test_a_pod_is_not_evicted_for_one_that_the_node_would_refuse_all_the_same() -> None:
    """volcano#3642: a selector that the node does not fulfil, or company that stays, is not helped by an eviction."""
    cluster = Cluster.of(CLASSES, node("n", 1), low("a", 1), configuration=PREEMPT)
    elsewhere = PodConstraints(node_selector=(("zone", "b"),))
    cluster.add(pod_group("g", 1, phase=Phase.INQUEUE, priority_class="high"), pod("g-0", "g", scheduling=elsewhere))
    assert not all_evictions(cluster.run())


@pytest.mark.parametrize("empty", [True, False])
def test_a_gang_uses_what_is_free_and_takes_only_the_rest(*, empty: bool) -> None:
    """volcano#3291, volcano#2772: a free node counts, and one victim may make room for two."""
    specs: list[Specs] = [low("a", 1, at="n-0", cpu=2), *([] if empty else [low("b", 1, at="n-1", cpu=2)])]
    cluster = Cluster.of(CLASSES, nodes("n", 2, cpu=2), *specs, high("g", 2, cpu=2), configuration=PREEMPT)
    outcomes = cluster.run()
    assert all_evictions(outcomes) == ({"a-w-0"} if empty else {"a-w-0", "b-w-0"})
    assert {"g-w-0", "g-w-1"} <= cluster.placed().keys()
    two = Cluster.of(CLASSES, node("n", 4), low("a", 1, cpu=4), high("g", 2, cpu=2), configuration=PREEMPT)
    assert all_evictions(two.run()) == {"a-w-0"}
    assert {"g-w-0", "g-w-1"} <= two.placed().keys()


def test_a_queue_takes_back_only_what_helps_the_pod_that_asks() -> None:
    """volcano#4918: a pod that holds nothing of what is asked for stays."""
    specs: list[Specs] = [queue("q1"), queue("q2", deserved=resources(0, gpu=2)), node("n", 8, gpu=2)]
    plain = [pod_group("plain", 0, phase=Phase.RUNNING, queue="q1"), *pods("plain", 3, node="n")]
    cluster = Cluster.of(*specs, plain, holding("q1", 2, cpu=0, gpu=1), configuration=CAPACITY)
    cluster.add(wanting("q2", 1, cpu=0, gpu=1))
    assert evictions(cluster.cycle()) == {"of-q1-w-1"}


@pytest.mark.parametrize("deserved", [resources(0, gpu=2), resources(1, gpu=2)], ids=["no cpu", "too little cpu"])
def test_a_queue_that_is_entitled_in_one_dimension_may_take_back(deserved: Resources) -> None:
    """volcano#5048, volcano#4658, volcano#4808."""
    specs: list[Specs] = [
        queue("q1"),
        queue("q2", deserved=deserved),
        node("n", 8, gpu=2),
        holding("q1", 2, cpu=2, gpu=1),
    ]
    cluster = Cluster.of(*specs, wanting("q2", 1, cpu=2, gpu=1), configuration=CAPACITY)
    assert len(evictions(cluster.cycle())) == 1


def test_a_queue_does_not_take_back_beyond_its_own_cap() -> None:
    """volcano#5048."""
    full = resources(1, gpu=2)
    specs: list[Specs] = [
        queue("q1"),
        queue("q2", deserved=full, capability=full),
        node("n", 4, gpu=2),
        holding("q1", 2, gpu=1),
    ]
    cluster = Cluster.of(*specs, wanting("q2", 1, cpu=2, gpu=1), configuration=CAPACITY)
    assert not all_evictions(cluster.run())
