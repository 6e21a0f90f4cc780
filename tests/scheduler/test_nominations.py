"""Room that gangs have had pods evicted for is kept for them until they are bound."""

from __future__ import annotations

from muster.scheduler.specs import Phase, PriorityClassSpec, TaskStatus
from muster.testing import Cluster, Spec, bindings, companion, configuration, evictions, node, pod, pod_group, queue
from muster.testing_company import constraints, near

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
