"""The tree of queues: sums over subtrees, and what a fault in it stops."""

from __future__ import annotations

import pytest

from muster.scheduler.outcome import Outcome
from muster.scheduler.reasons import Code, ReasonClass, describe
from muster.scheduler.resources import Resources
from muster.scheduler.specs import QueueSpec, QueueState
from muster.testing import Cluster, Spec, bindings, configuration, gang, nodes, queue, resources
from tests.scheduler.audit import audit

PLAIN = configuration("enqueue, allocate", ["gang"], ["predicates"])


def below(parent: str, name: str, **options: object) -> QueueSpec:
    return queue(name, parent=parent, **options)  # type: ignore[arg-type]


BROKEN = {
    "its own parent": ([below("q", "q")], "q", "its own parent"),
    "two in a circle": ([below("b", "q"), below("q", "b")], "q", "circle"),
    "below a circle": ([below("a", "q"), below("b", "a"), below("a", "b")], "a", "circle"),
    "a missing parent": ([below("nowhere", "q")], "q", "parent nowhere does not exist"),
    "below a missing parent": ([below("nowhere", "p"), below("p", "q")], "p", "parent nowhere does not exist"),
    "guarantees above the parent's": (
        [
            queue("p", guarantee=resources(2)),
            below("p", "q", guarantee=resources(2)),
            below("p", "r", guarantee=resources(1)),
        ],
        "p",
        "guaranteed: cpu 3 of 2), most to q: 2",
    ),
    "guarantees above the parent's cap": (
        [
            queue("p", capability=resources(6)),
            below("p", "q", guarantee=resources(4)),
            below("p", "r", guarantee=resources(4)),
        ],
        "p",
        "guaranteed: cpu 8 of 6), most to q: 4",
    ),
    "deserved above the parent's": (
        [
            queue("p", deserved=resources(4)),
            below("p", "q", deserved=resources(3)),
            below("p", "r", deserved=resources(2)),
        ],
        "p",
        "deserved: cpu 5 of 4), most to q: 3",
    ),
    "a guarantee above its own cap": (
        [queue("q", capability=resources(1), guarantee=resources(99999))],
        "q",
        "spec.guarantee.resource[cpu]: 99999 is more than the 1 that the queue may use (spec.capability[cpu]); "
        "lower the guarantee, or raise the capability",
    ),
    "a guarantee of what its own cap leaves no room for": (
        [queue("q", capability=resources(8, gpu=0), guarantee=resources(8, gpu=1))],
        "q",
        "spec.guarantee.resource[nvidia.com/gpu]: 1 is more than the 0",
    ),
    "a guarantee above a cap above it": (
        [queue("g", capability=resources(6)), below("g", "p"), below("p", "q", guarantee=resources(8))],
        "q",
        "spec.guarantee.resource[cpu]: 8 is more than the 6 that queue g above it may use (spec.capability[cpu] of g); "
        "lower the guarantee, or raise that capability",
    ),
    "a negative amount": ([QueueSpec("q", problem="spec.capability[cpu]: '-1' is negative")], "q", "negative"),
}


def reason_of(outcome: Outcome, name: str) -> tuple[Code, str | None]:
    reason = outcome.pod_groups[f"default/{name}"].reason
    assert reason is not None
    return reason.code, reason.queue


@pytest.mark.parametrize(("specs", "culprit", "words"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_queue_says_so_its_gangs_wait_and_all_others_go_on(
    specs: list[Spec], culprit: str, words: str
) -> None:
    others = [queue("x"), below("x", "y")]
    cluster = Cluster.of(nodes("n", 2), specs, others, gang("bad", 1, queue="q"), gang("good", 2, queue="y"))
    outcome = cluster.cycle()
    assert set(bindings(outcome)) == {"good-w-0", "good-w-1"}
    reason = outcome.pod_groups["default/bad"].reason
    assert reason is not None
    assert (reason.code, reason.reason_class, reason.queue) == (Code.QUEUE_BROKEN, ReasonClass.QUEUE, culprit)
    assert words in describe(reason)
    for name in {culprit, "q"}:
        problem = outcome.queues[name].problem
        assert problem is not None
        assert words in describe(problem)
    assert {outcome.queues[name].problem for name in ("x", "y", "root", "default")} == {None}
    assert all(not verdict.reason for verdict in outcome.pods.values())
    audit(cluster.cache)


@pytest.mark.parametrize(
    "specs",
    [
        pytest.param([queue("p"), below("p", "q", guarantee=resources(9), deserved=resources(9))], id="parent unset"),
        pytest.param(
            [queue("p", capability=resources(2)), below("p", "q", capability=resources(9))], id="a cap is no promise"
        ),
        pytest.param([queue("p", deserved=resources(4)), below("p", "q", deserved=resources(4))], id="exactly as much"),
        pytest.param([QueueSpec("root", capability=resources(1)), queue("q", guarantee=resources(2))], id="the root"),
        pytest.param([QueueSpec("root", problem="wrong"), queue("q")], id="a broken root"),
        pytest.param([QueueSpec("root", state=QueueState.CLOSED), queue("q")], id="a closed root"),
        pytest.param([queue("q", weight=0)], id="weight 0"),
        pytest.param([queue("q", capability=resources(2), guarantee=resources(2))], id="guaranteed all it may use"),
        pytest.param([queue("q", capability=resources(2), guarantee=resources(0, 9))], id="no cap of what is kept"),
        pytest.param([queue("q", capability=resources(2), deserved=resources(9))], id="what it deserves is capped"),
        pytest.param([queue("q", capability=Resources(10**40, 10**60))], id="an enormous cap"),
        pytest.param([below("", "q")], id="no parent is the root"),
    ],
)
def test_what_looks_odd_but_can_be_used_is_used(specs: list[Spec]) -> None:
    cluster = Cluster.of(nodes("n", 1), specs, gang("g", 1, queue="q"))
    assert bindings(cluster.cycle()) == {"g-w-0": "n-0"}


@pytest.mark.parametrize(
    "cap",
    [
        pytest.param(resources(1), id="its own cap"),
        pytest.param(resources(), id="its parent's"),
    ],
)
def test_a_queue_that_is_guaranteed_more_than_it_may_use_keeps_nothing_from_its_siblings(cap: Resources) -> None:
    parent = queue("p", capability=resources(6))
    specs = [parent, below("p", "q", capability=cap, guarantee=resources(9)), below("p", "r", guarantee=resources(6))]
    cluster = Cluster.of(nodes("n", 6), specs, gang("bad", 1, queue="q"), gang("good", 6, queue="r"))
    outcome = cluster.cycle()
    assert len(bindings(outcome)) == 6
    assert reason_of(outcome, "bad") == (Code.QUEUE_BROKEN, "q")
    assert {name for name, status in outcome.queues.items() if status.problem is not None} == {"q"}


def test_a_queue_whose_guarantee_is_lowered_is_used_again() -> None:
    cluster = Cluster.of(nodes("n", 1), queue("q", capability=resources(1), guarantee=resources(9)))
    cluster.add(gang("g", 1, queue="q"))
    assert reason_of(cluster.cycle(), "g") == (Code.QUEUE_BROKEN, "q")
    cluster.add(queue("q", capability=resources(1), guarantee=resources(1)))
    outcome = cluster.cycle()
    assert bindings(outcome) == {"g-w-0": "n-0"}
    assert outcome.queues["q"].problem is None


def test_a_mended_queue_lets_its_gang_in_and_a_broken_one_keeps_out_what_waits_below() -> None:
    cluster = Cluster.of(nodes("n", 1), below("p", "q"), gang("g", 1, queue="q"))
    assert reason_of(cluster.cycle(), "g") == (Code.QUEUE_BROKEN, "q")
    cluster.add(queue("p"))
    outcome = cluster.cycle()
    assert bindings(outcome) == {"g-w-0": "n-0"}
    assert outcome.queues["q"].problem is None
    cluster.add(gang("late", 9, queue="q"))
    cluster.cycle()
    cluster.cache.remove_queue("p")
    assert reason_of(cluster.cycle(), "late") == (Code.QUEUE_BROKEN, "q")


@pytest.mark.parametrize("name", ["q", "default"])
def test_a_queue_that_is_made_anew_says_what_it_uses_though_nothing_has_changed(name: str) -> None:
    cluster = Cluster.of(nodes("n", 1), queue(name), gang("g", 1, queue=name))
    assert cluster.cycle().queues[name].allocated.milli_cpu == 1000
    assert name not in cluster.cycle().queues
    cluster.cache.remove_queue(name)
    cluster.cycle()
    cluster.add(queue(name))
    assert cluster.cycle().queues[name].allocated.milli_cpu == 1000


def test_a_gang_in_a_queue_with_children_waits_until_they_are_gone() -> None:
    gangs = [*gang("g", 1, queue="p"), *gang("r", 1, queue="root")]
    cluster = Cluster.of(nodes("n", 1), queue("p"), below("p", "q"), gangs)
    outcome = cluster.cycle()
    assert reason_of(outcome, "g") == (Code.QUEUE_NOT_LEAF, "p")
    assert reason_of(outcome, "r") == (Code.QUEUE_NOT_LEAF, "root")
    assert not outcome.bindings
    cluster.cache.remove_queue("q")
    assert bindings(cluster.cycle()) == {"g-w-0": "n-0"}


@pytest.mark.parametrize("state", [QueueState.CLOSED, QueueState.CLOSING])
def test_below_a_closed_queue_nothing_starts(state: QueueState) -> None:
    cluster = Cluster.of(nodes("n", 1), queue("p", state=state), below("p", "q"), gang("g", 1, queue="q"))
    assert reason_of(cluster.cycle(), "g") == (Code.QUEUE_CLOSED, "p")


def test_root_and_default_exist_without_being_given() -> None:
    cluster = Cluster.of(nodes("n", 1), gang("g", 1))
    outcome = cluster.cycle()
    assert set(outcome.queues) == {"root", "default"}
    assert outcome.queues["root"].allocated.milli_cpu == 1000


def test_sums_follow_a_queue_that_moves_in_the_tree() -> None:
    specs = [queue("a"), queue("b"), below("a", "q")]
    cluster = Cluster.of(nodes("n", 1), specs, gang("g", 2, queue="q"), configuration=PLAIN)
    used = {name: status.allocated.milli_cpu for name, status in cluster.cycle().queues.items()}
    assert used == {"a": 2000, "b": 0, "q": 2000, "root": 2000, "default": 0}
    cluster.add(below("b", "q"))
    used = {name: status.allocated.milli_cpu for name, status in cluster.cycle().queues.items()}
    assert used == {"a": 0, "b": 2000}
    audit(cluster.cache)
