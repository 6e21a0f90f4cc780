"""Room that gangs have had pods evicted for is kept for them until they are bound."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from muster.scheduler.outcome import Outcome
from muster.scheduler.specs import Phase, PriorityClassSpec, TaskStatus
from muster.testing import (
    Cluster,
    Spec,
    bindings,
    companion,
    configuration,
    evictions,
    gang,
    node,
    pod,
    pod_group,
    queue,
)
from muster.testing_company import constraints, far, near

CLASSES = [PriorityClassSpec("high", 100), PriorityClassSpec("low", 1)]
PREEMPT = configuration("allocate, preempt", ["priority", "gang"], ["predicates"])
PREEMPT_FIRST = configuration("preempt, reclaim, allocate", ["drf", "priority"], ["predicates", "proportion"])


def running(node_of: str, cpu: float = 2) -> list[Spec]:
    group = pod_group("low", 0, phase=Phase.RUNNING, priority_class="low")
    return [group, *(pod(f"low-{index}", "low", cpu, node=f"n-{name}") for index, name in enumerate(node_of))]


def test_what_a_gang_was_promised_before_stays_promised_when_pods_are_evicted_for_one_more_member() -> None:
    beside = (companion(cpu=0.5),)
    cluster = Cluster.of(
        CLASSES,
        queue("q", 9),
        *(node(f"n-{index}", 2) for index in range(2)),
        running("00", cpu=1),
        [pod_group("high", 1, queue="q", phase=Phase.INQUEUE, priority_class="high", companions=beside)],
        [pod(f"high-w-{index}", "high", 1 + index) for index in range(2)],
        configuration=PREEMPT_FIRST,
    )
    outcome = cluster.cycle()
    assert evictions(outcome) == {"low-0", "low-1"}
    nominated = {task.role or task.spec.name: task.nominated for task in cluster.cache.jobs["default/high"].all_tasks()}
    assert nominated == {"high-w-0": "n-1", "high-w-1": "n-0", "submittergroup": "n-1"}


def test_what_is_promised_anew_is_kept_when_the_rest_of_an_older_promise_is_bound() -> None:
    cluster = Cluster.of(
        CLASSES,
        *(node(f"n-{index}", 2 + (index == 1)) for index in range(2)),
        running("01"),
        [pod_group("high", 0, phase=Phase.INQUEUE, priority_class="high")],
        [pod(f"high-w-{index}", "high", 1) for index in range(2)],
        configuration=PREEMPT_FIRST,
    )
    assert evictions(cluster.cycle()) == {"low-0"}
    cluster.cache.evict_failed("uid-low-0")
    outcome = cluster.cycle()
    assert evictions(outcome) == {"low-0"}
    assert bindings(outcome) == {"high-w-0": "n-1"}
    assert cluster.cache.tasks["uid-high-w-1"].nominated == "n-0"


def test_company_that_is_leaving_is_none_for_a_member_that_is_promised_room() -> None:
    cluster = Cluster.of(
        CLASSES,
        node("n-0", 2, labels={"host": "n-0"}),
        node("n-1", 2),
        running("1"),
        [pod("leaving", "low", 1, node="n-0", labels={"app": "web"}, status=TaskStatus.RELEASING)],
        [pod_group("high", 2, phase=Phase.INQUEUE, priority_class="high")],
        [pod("high-w-0", "high", 1, scheduling=constraints(near("host", app="web"))), pod("high-w-1", "high", 2)],
        configuration=PREEMPT,
    )
    outcome = cluster.cycle()
    assert (outcome.evictions, outcome.pipelined) == ((), ())


def promised(outcome: Outcome) -> dict[str, str]:
    return {each.pod: each.node for each in outcome.pipelined}


def promised_room() -> Cluster:
    """Low leaves n-0 for high; late, in another queue, can use that room too and waits for it."""
    cluster = Cluster.of(
        CLASSES,
        queue("q"),
        node("n-0", 2),
        running("0"),
        [pod_group("high", 1, phase=Phase.INQUEUE, priority_class="high"), pod("high-w-0", "high", 2)],
        gang("late", 1, 2, queue="q", priority_class="high"),
        configuration=PREEMPT,
    )
    outcome = cluster.cycle()
    assert (evictions(outcome), promised(outcome)) == ({"low-0"}, {"high-w-0": "n-0"})
    assert promised(cluster.cycle()) == {"high-w-0": "n-0"}
    assert cluster.cache.jobs["default/late"].parked is not None
    return cluster


@pytest.mark.parametrize(
    "happens",
    [
        pytest.param(lambda c: c.delete("high-w-0"), id="its pod is deleted"),
        pytest.param(lambda c: c.change_pod("high-w-0", status=TaskStatus.FAILED), id="its pod has failed"),
        pytest.param(lambda c: c.change_pod("high-w-0", status=TaskStatus.RELEASING), id="its pod is being deleted"),
        pytest.param(lambda c: c.change_pod("high-w-0", gated=True), id="its pod is held back"),
        pytest.param(lambda c: c.cache.remove_pod_group("default/high"), id="its PodGroup is deleted"),
        pytest.param(
            lambda c: (c.add(node("n-1", 2)), c.change_pod("high-w-0", status=TaskStatus.RUNNING, node="n-1")),
            id="somebody else binds its pod elsewhere",
        ),
        pytest.param(lambda c: c.add(node("n-1", 2)), id="it finds room elsewhere"),
    ],
)
def test_promised_room_that_is_needed_no_more_is_at_once_for_who_waits_for_it(
    happens: Callable[[Cluster], None],
) -> None:
    """Not only when the pods there have left, which may be long after somebody else has come for it."""
    cluster = promised_room()
    happens(cluster)
    assert promised(cluster.cycle()).get("late-w-0") == "n-0"


def test_room_that_was_promised_to_a_submitter_is_for_others_when_none_is_needed_any_more() -> None:
    submitter = [companion(cpu=2)]
    cluster = Cluster.of(
        CLASSES,
        queue("q"),
        node("n-0", 2),
        node("n-1", 1),
        running("0"),
        [pod_group("high", 1, phase=Phase.INQUEUE, priority_class="high", companions=submitter)],
        pod("high-w-0", "high", 1),
        gang("late", 1, 2, queue="q", priority_class="high"),
        configuration=PREEMPT,
    )
    outcome = cluster.cycle()
    assert (evictions(outcome), promised(outcome)) == ({"low-0"}, {"high-w-0": "n-1"})
    cluster.cycle()
    cluster.add(pod_group("high", 1, phase=Phase.INQUEUE, priority_class="high"))
    assert promised(cluster.cycle()).get("late-w-0") == "n-0"


def test_who_keeps_away_from_a_pod_that_is_promised_room_is_asked_again_when_it_is_another() -> None:
    cluster = Cluster.of(
        CLASSES,
        queue("q"),
        node("n-0", 3),
        running("0", cpu=3),
        [pod_group("high", 1, phase=Phase.INQUEUE, priority_class="high")],
        pod("high-w-0", "high", 2, labels={"app": "web"}),
        gang("late", 1, 1, queue="q", scheduling=constraints(far("host", app="web"))),
        configuration=PREEMPT,
    )
    cluster.add(node("n-0", 3, labels={"host": "n-0"}))
    assert promised(cluster.cycle()) == {"high-w-0": "n-0"}
    cluster.cycle()
    cluster.change_pod("high-w-0", labels={"app": "db"})
    assert promised(cluster.cycle()).get("late-w-0") == "n-0"


def test_who_waits_for_company_is_asked_again_when_a_pod_with_promised_room_becomes_such() -> None:
    cluster = Cluster.of(
        CLASSES,
        queue("q"),
        node("n-0", 3, labels={"zone": "a"}),
        running("0", cpu=3),
        [pod_group("high", 1, phase=Phase.INQUEUE, priority_class="high"), pod("high-w-0", "high", 2)],
        gang("late", 1, 1, queue="q", scheduling=constraints(near("zone", app="web"))),
        configuration=PREEMPT,
    )
    assert promised(cluster.cycle()) == {"high-w-0": "n-0"}
    assert promised(cluster.cycle()) == {"high-w-0": "n-0"}
    cluster.change_pod("high-w-0", labels={"app": "web"})
    assert promised(cluster.cycle()) == {"high-w-0": "n-0", "late-w-0": "n-0"}


def test_who_waits_for_company_is_asked_again_when_room_is_kept_for_it() -> None:
    cluster = Cluster.of(
        node("n-0", 4, labels={"zone": "a"}),
        pod("old", cpu=2, node="n-0", status=TaskStatus.RELEASING, ours=False),
        [pod_group("web"), pod("web-w-0", "web", 3, labels={"app": "web"}, gated=True)],
        gang("late", 1, 1, scheduling=constraints(near("zone", app="web"))),
        configuration=configuration("allocate", ["priority", "gang"], ["predicates"]),
    )
    cluster.cycle()
    assert cluster.cache.jobs["default/late"].parked is not None
    cluster.change_pod("web-w-0", gated=False)
    outcome = cluster.cycle()
    assert (promised(outcome), outcome.wake_at) == ({"web-w-0": "n-0"}, cluster.now)
    outcome = cluster.cycle()
    assert promised(outcome) == {"web-w-0": "n-0", "late-w-0": "n-0"}
    assert cluster.cycle().wake_at != cluster.now, "the room that is kept on is news to nobody"
