"""Taking room from others of the same queue."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from muster.scheduler.conf import SchedulerConfiguration, load_configuration
from muster.scheduler.outcome import Outcome
from muster.scheduler.reasons import Code
from muster.scheduler.specs import Phase, PriorityClassSpec, TaskStatus
from muster.testing import (
    Cluster,
    Spec,
    bindings,
    companion,
    configuration,
    evictions,
    gang,
    nodes,
    pod,
    pod_group,
    pods,
    queue,
    resources,
)
from tests.scheduler.audit import audit

HIGH, LOW = PriorityClassSpec("high", 100), PriorityClassSpec("low", 1)
CLASSES = [HIGH, LOW]
ACTIONS = "enqueue, allocate, preempt"
PRIORITY = configuration(ACTIONS, ["priority", "gang"], ["predicates"])


def running(name: str, count: int, least: int = 0, *, node: str = "n-0", cpu: float = 1, **options: Any) -> list[Spec]:
    """A gang that runs on one node."""
    group = pod_group(name, least, phase=Phase.RUNNING, priority_class=options.pop("priority_class", "low"), **options)
    return [group, *pods(name, count, cpu, node=node)]


def waiting(name: str, count: int, least: int | None = None, *, cpu: float = 1, **options: Any) -> list[Spec]:
    """An admitted gang that waits."""
    members = count if least is None else least
    priority = options.pop("priority_class", "high")
    return [pod_group(name, members, phase=Phase.INQUEUE, priority_class=priority, **options), *pods(name, count, cpu)]


def pipelined(outcome: Outcome) -> dict[str, str]:
    return {each.pod: each.node for each in outcome.pipelined}


def cluster_of(*specs: Any, configuration: SchedulerConfiguration = PRIORITY) -> Cluster:
    return Cluster.of(CLASSES, *specs, configuration=configuration)


def leave(cluster: Cluster, outcome: Outcome) -> None:
    """The API server shows that evicted pods are leaving."""
    for eviction in outcome.evictions:
        cluster.change_pod(eviction.pod, status=TaskStatus.RELEASING, node=eviction.node)


def test_a_gang_of_higher_priority_takes_room_and_is_bound_when_the_victims_are_gone() -> None:
    cluster = cluster_of(nodes("n", 1, cpu=4), running("low", 4), waiting("high", 2))
    outcome = cluster.cycle()
    assert evictions(outcome) == {"low-w-2", "low-w-3"}
    assert {(each.reason, each.by) for each in outcome.evictions} == {("preempt", "default/high")}
    assert pipelined(outcome) == {"high-w-0": "n-0", "high-w-1": "n-0"}
    assert not outcome.bindings
    assert cluster.phase("high") is Phase.INQUEUE
    reason = outcome.pod_groups["default/high"].reason
    assert reason is not None
    assert reason.code is Code.WAITING_FOR_RELEASE
    leave(cluster, outcome)
    second = cluster.cycle()
    assert (second.bindings, second.evictions) == ((), ())
    assert pipelined(second) == pipelined(outcome)
    cluster.delete("low-w-2")
    third = cluster.cycle()
    assert (third.bindings, third.evictions) == ((), ()), "P1: nothing is bound until all have their room"
    cluster.delete("low-w-3")
    assert bindings(cluster.cycle()) == {"high-w-0": "n-0", "high-w-1": "n-0"}
    audit(cluster.cache)


@pytest.mark.parametrize("actions", ["preempt, enqueue, allocate", "preempt, allocate"])
def test_a_gang_that_is_admitted_after_the_action_has_its_turn_without_any_event(actions: str) -> None:
    cluster = cluster_of(nodes("n", 1, cpu=4), running("low", 4))
    cluster.configuration = configuration(actions, ["priority", "gang"], ["predicates"])
    cluster.add(pod_group("high", 2, priority_class="high"), pods("high", 2))
    assert cluster.cycle().wake_at == cluster.now
    assert evictions(cluster.cycle()) == {"low-w-2", "low-w-3"}


def test_nothing_is_evicted_when_the_gang_would_still_lack_a_member() -> None:
    """volcano#5026, volcano#5010."""
    cluster = cluster_of(nodes("n", 1, cpu=4), running("low", 2), running("other", 2, priority_class="high"))
    cluster.add(waiting("high", 3))
    outcome = cluster.cycle()
    assert not outcome.evictions
    assert not outcome.pipelined
    audit(cluster.cache)


def test_room_that_is_free_is_taken_before_anybody_is_evicted() -> None:
    cluster = cluster_of(nodes("n", 2, cpu=4), running("low", 4), running("low2", 2, node="n-1"), waiting("high", 3))
    outcome = cluster.cycle()
    assert len(outcome.evictions) == 1
    assert sorted(pipelined(outcome).values()) == ["n-0", "n-1", "n-1"] or len(outcome.pipelined) == 3


def test_a_victim_that_turns_out_needless_is_spared() -> None:
    cluster = cluster_of(nodes("n", 1, cpu=5))
    cluster.add(pod_group("low", 0, phase=Phase.RUNNING, priority_class="low"))
    cluster.add(pod("low-w-0", "low", 4, node="n-0"), pod("low-w-1", "low", 1, node="n-0"))
    cluster.add(waiting("high", 1, cpu=4))
    assert evictions(cluster.cycle()) == {"low-w-0"}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"preemptable": False}, "it says that it must not be evicted"),
        ({"status": TaskStatus.UNKNOWN}, "its status is unknown"),
        ({"ours": False}, "it is another scheduler's"),
    ],
)
def test_a_pod_is_nobodys_victim_when(changes: dict[str, Any], why: str) -> None:
    cluster = cluster_of(nodes("n", 1, cpu=1), running("low", 1), waiting("high", 1))
    cluster.change_pod("low-w-0", **changes)
    assert not cluster.cycle().evictions, why


def test_a_pod_that_is_bound_and_not_yet_running_may_be_a_victim() -> None:
    cluster = cluster_of(nodes("n", 1, cpu=1), running("low", 1), waiting("high", 1))
    cluster.change_pod("low-w-0", status=TaskStatus.BOUND)
    assert evictions(cluster.cycle()) == {"low-w-0"}


def test_a_pod_of_another_queue_is_not_preempted() -> None:
    cluster = cluster_of(nodes("n", 1, cpu=1), queue("q"), running("low", 1, queue="q"), waiting("high", 1))
    assert not cluster.cycle().evictions


def test_a_pod_that_never_preempts_evicts_nobody() -> None:
    cluster = cluster_of(nodes("n", 1, cpu=1), running("low", 1), waiting("high", 1))
    cluster.change_pod("high-w-0", preemption_policy_never=True)
    assert not cluster.cycle().evictions


def test_a_gang_that_is_not_admitted_evicts_nobody() -> None:
    cluster = cluster_of(
        nodes("n", 1, cpu=1),
        running("low", 1),
        pod_group("high", 1, phase=Phase.PENDING, min_resources=resources(1), priority_class="high"),
        pods("high", 1),
        configuration=configuration(ACTIONS, ["priority", "gang"], ["overcommit", "predicates"]),
    )
    assert not cluster.cycle().evictions
    assert cluster.phase("high") is Phase.PENDING


def test_a_gang_with_too_few_pods_evicts_nobody() -> None:
    cluster = cluster_of(nodes("n", 1, cpu=1), running("low", 1), waiting("high", 1, 2))
    assert not cluster.cycle().evictions


def test_a_gang_that_has_its_minimum_does_not_evict_for_more() -> None:
    """With priority and gang in one tier only jobs below their minimum starve."""
    cluster = cluster_of(nodes("n", 1, cpu=2), running("low", 1), running("high", 1, 1, priority_class="high"))
    cluster.add(pod("high-w-1", "high"))
    assert not cluster.cycle().evictions


def test_without_the_gang_plugin_a_job_evicts_for_its_extra_members_too() -> None:
    cluster = cluster_of(
        nodes("n", 1, cpu=2),
        running("low", 1),
        running("high", 1, 1, priority_class="high"),
        pod("high-w-1", "high"),
        configuration=configuration(ACTIONS, ["priority"], ["predicates"]),
    )
    outcome = cluster.cycle()
    assert evictions(outcome) == {"low-w-0"}
    cluster.settle(outcome)
    assert bindings(cluster.cycle()) == {"high-w-1": "n-0"}


def test_nobody_starves_when_no_plugin_says_so() -> None:
    cluster = cluster_of(
        nodes("n", 1, cpu=1),
        running("low", 1),
        waiting("high", 1),
        configuration=configuration(ACTIONS, ["predicates", "drf"]),
    )
    assert not cluster.cycle().evictions


def test_a_pod_that_asks_for_nothing_evicts_only_its_like() -> None:
    cluster = cluster_of(nodes("n", 1, cpu=4, pods=2))
    cluster.add(running("low", 1), running("idle", 1, cpu=0), waiting("high", 1, cpu=0))
    assert evictions(cluster.cycle()) == {"idle-w-0"}


def test_the_gang_plugin_breaks_no_gang_for_another() -> None:
    cluster = cluster_of(nodes("n", 1, cpu=3), running("low", 3, 2), waiting("high", 1))
    assert evictions(cluster.cycle()) == {"low-w-2"}
    cluster = cluster_of(nodes("n", 1, cpu=2), running("low", 2, 2), waiting("high", 1))
    assert not cluster.cycle().evictions


def test_a_gang_is_broken_where_the_gang_plugin_is_not_asked() -> None:
    """Volcano's chart switches its say on victims off."""
    document = {
        "actions": ACTIONS,
        "tiers": [{"plugins": [{"name": "priority"}, {"name": "gang", "enablePreemptable": False}]}],
    }
    cluster = cluster_of(
        nodes("n", 1, cpu=2), running("low", 2, 2), waiting("high", 1), configuration=load_configuration(document)
    )
    assert evictions(cluster.cycle()) == {"low-w-1"}


def test_the_job_that_comes_last_loses_its_last_pods_first() -> None:
    cluster = cluster_of(nodes("n", 1, cpu=4), PriorityClassSpec("mid", 50))
    cluster.add(running("mid", 2, priority_class="mid"), running("low", 2))
    cluster.add(waiting("high", 3))
    assert evictions(cluster.cycle()) == {"low-w-0", "low-w-1", "mid-w-1"}


def test_of_jobs_that_no_plugin_tells_apart_the_last_task_goes_first() -> None:
    cluster = cluster_of(nodes("n", 1, cpu=4), running("a", 3), running("b", 1), waiting("high", 2))
    assert evictions(cluster.cycle()) == {"a-w-2", "a-w-1"}


def test_a_higher_task_of_the_same_gang_takes_the_place_of_a_lower_one() -> None:
    cluster = cluster_of(
        nodes("n", 1, cpu=2),
        pod_group("g", 1, phase=Phase.RUNNING),
        pod("g-w-0", "g", node="n-0", priority=1),
        pod("g-w-1", "g", node="n-0", priority=1),
        pod("g-w-2", "g", priority=9),
        configuration=configuration(ACTIONS, ["priority"], ["predicates"]),
    )
    outcome = cluster.cycle()
    assert evictions(outcome) == {"g-w-1"}
    assert pipelined(outcome) == {"g-w-2": "n-0"}


def test_inside_a_gang_nobody_goes_when_the_gang_is_no_nearer_to_its_minimum() -> None:
    cluster = cluster_of(
        nodes("n", 1, cpu=2),
        pod_group("g", 3, phase=Phase.INQUEUE),
        pod("g-w-0", "g", node="n-0", priority=1),
        pod("g-w-1", "g", node="n-0", priority=1),
        pod("g-w-2", "g", priority=9),
        configuration=configuration(ACTIONS, ["priority"], ["predicates"]),
    )
    assert not cluster.cycle().evictions


def test_inside_a_gang_nobody_goes_while_a_companion_lacks_room() -> None:
    cluster = cluster_of(
        nodes("n", 1, cpu=1),
        pod_group("g", 1, phase=Phase.INQUEUE, companions=(companion(cpu=0.5),)),
        pod("g-w-0", "g", node="n-0", priority=1),
        pod("g-w-1", "g", priority=9),
        configuration=configuration(ACTIONS, ["priority"], ["predicates"]),
    )
    assert not cluster.cycle().evictions


def test_a_gang_whose_queue_is_at_its_cap_takes_the_place_of_a_lower_one_though_nodes_are_free() -> None:
    cluster = cluster_of(
        nodes("n", 1, cpu=4),
        queue("q", capability=resources(2)),
        running("low", 2, queue="q"),
        waiting("high", 1, queue="q"),
    )
    outcome = cluster.cycle()
    assert evictions(outcome) == {"low-w-1"}
    leave(cluster, outcome)
    assert not cluster.cycle().bindings, "P2: while the victim runs the queue is full"
    cluster.delete("low-w-1")
    assert bindings(cluster.cycle()) == {"high-w-0": "n-0"}


def test_a_role_that_can_not_be_completed_leaves_everybody_in_place() -> None:
    cluster = cluster_of(
        nodes("n", 1, cpu=2),
        running("low", 2),
        pod_group("high", 2, roles={"head": 1}, phase=Phase.INQUEUE, priority_class="high"),
        pod("high-h-0", "high", 3, role="head"),
        pods("high", 2, 1),
    )
    assert not cluster.cycle().evictions


def test_room_is_made_for_the_companion_as_well_or_not_at_all() -> None:
    def of(cpu: float) -> Cluster:
        cluster = cluster_of(nodes("n", 1, cpu=cpu), running("low", int(cpu)))
        group = pod_group("high", 1, phase=Phase.INQUEUE, priority_class="high", companions=[companion(cpu=1)])
        cluster.add(group, pods("high", 1))
        return cluster

    assert not of(1).cycle().evictions
    cluster = of(2)
    outcome = cluster.cycle()
    assert evictions(outcome) == {"low-w-0", "low-w-1"}
    cluster.settle(outcome)
    assert bindings(cluster.cycle()) == {"high-w-0": "n-0"}
    assert cluster.cache.jobs["default/high"].placeholders["submittergroup"].node == "n-0"


# --- promises ---


def preempting() -> tuple[Cluster, Outcome]:
    """`high` has had all of `low` evicted from n-0; the victims are leaving."""
    cluster = cluster_of(nodes("n", 1, cpu=2), running("low", 2), waiting("high", 2))
    outcome = cluster.cycle()
    assert evictions(outcome) == {"low-w-0", "low-w-1"}
    leave(cluster, outcome)
    return cluster, outcome


def test_nobody_takes_the_room_that_is_kept_for_a_gang_whatever_his_priority() -> None:
    cluster, _ = preempting()
    cluster.add(PriorityClassSpec("huge", 10_000), waiting("huge", 1, priority_class="huge"))
    cluster.delete("low-w-0")
    outcome = cluster.cycle()
    assert not outcome.bindings
    cluster.delete("low-w-1")
    assert set(bindings(cluster.cycle())) == {"high-w-0", "high-w-1"}


def test_a_victim_that_comes_back_does_not_win_its_room_back() -> None:
    """volcano#377."""
    cluster, _ = preempting()
    cluster.delete("low-w-0", "low-w-1")
    cluster.add(pods("low", 2, first=10))
    outcomes = cluster.run()
    assert [evictions(outcome) for outcome in outcomes] == [set()] * len(outcomes)
    assert set(cluster.placed()) == {"high-w-0", "high-w-1"}


def test_nobody_goes_round_in_circles_where_the_rules_do() -> None:
    """Priority lets `high` evict `low`; the next tier's drf would let `low` evict `high` (volcano#377, #4947)."""
    circular = configuration(ACTIONS, ["priority", "gang", "conformance"], ["drf", "predicates"])
    cluster = cluster_of(nodes("n", 1, cpu=2), running("low", 2), waiting("high", 2), configuration=circular)
    evicted: list[str] = []
    for round_ in range(6):
        outcome = cluster.cycle()
        evicted += sorted(evictions(outcome))
        cluster.settle(outcome)
        for name in evictions(outcome):
            group = name.partition("-")[0]
            cluster.add(pod(f"{group}-w-{len(evicted) + 10 * round_}", group))
    assert evicted == ["low-w-0", "low-w-1"]


def test_a_change_of_priorities_lets_the_loser_try_again() -> None:
    cluster, _ = preempting()
    cluster.delete("low-w-0", "low-w-1")
    cluster.settle(cluster.cycle())
    cluster.add(pods("low", 2, first=10), pod_group("low", 2, priority_class="high", phase=Phase.INQUEUE))
    cluster.add(PriorityClassSpec("low", 1000))
    cluster.cache.set_pod_group(pod_group("low", 2, priority_class="low", phase=Phase.INQUEUE, creation=1.0))
    document = {
        "actions": ACTIONS,
        "tiers": [{"plugins": [{"name": "priority"}, {"name": "gang", "enablePreemptable": False}]}],
    }
    cluster.configuration = load_configuration(document)
    assert evictions(cluster.cycle()) == {"high-w-0", "high-w-1"}


def test_an_eviction_that_failed_ends_the_promise_and_the_gang_tries_anew() -> None:
    cluster, outcome = preempting()
    cluster.change_pod("low-w-0", status=TaskStatus.RUNNING)
    for eviction in outcome.evictions:
        cluster.cache.evict_failed(eviction.task_uid)
    again = cluster.cycle()
    assert "low-w-0" in evictions(again) | {"low-w-0"}
    audit(cluster.cache)


def test_a_node_that_is_lost_ends_the_promise() -> None:
    cluster, _ = preempting()
    cluster.cache.remove_node("n-0")
    outcome = cluster.cycle()
    assert not outcome.pipelined
    assert not cluster.cache.nominated
    assert outcome.pods["default/high-w-0"].nominated == ""


def test_other_room_that_becomes_free_is_taken_instead() -> None:
    cluster, _ = preempting()
    cluster.add(nodes("m", 1, cpu=2))
    assert bindings(cluster.cycle()) == {"high-w-0": "m-0", "high-w-1": "m-0"}
    assert not cluster.cache.nominated


def test_a_member_that_is_replaced_takes_over_the_promise() -> None:
    cluster, _ = preempting()
    cluster.delete("high-w-1")
    cluster.add(pods("high", 1, first=5))
    outcome = cluster.cycle()
    assert pipelined(outcome) == {"high-w-0": "n-0", "high-w-5": "n-0"}
    cluster.delete("low-w-0", "low-w-1")
    assert set(bindings(cluster.cycle())) == {"high-w-0", "high-w-5"}


def test_a_gang_that_is_deleted_gives_its_promise_back() -> None:
    cluster, _ = preempting()
    cluster.cache.remove_pod_group("default/high")
    cluster.delete("high-w-0", "high-w-1", "low-w-0", "low-w-1")
    cluster.add(waiting("other", 2, priority_class="low"))
    assert set(bindings(cluster.cycle())) == {"other-w-0", "other-w-1"}


def test_a_promise_outlives_a_restart() -> None:
    _, outcome = preempting()
    said = {name: outcome.pods[f"default/{name}"] for name in ("high-w-0", "high-w-1")}
    assert {verdict.nominated for verdict in said.values()} == {"n-0"}
    after = cluster_of(PriorityClassSpec("huge", 10_000), nodes("n", 1, cpu=2), running("low", 2))
    after.add(waiting("huge", 2, priority_class="huge"), waiting("high", 2))
    for name, verdict in said.items():
        spec = after.cache.tasks[f"uid-{name}"].spec
        after.cache.remove_task(spec.uid)
        after.cache.set_task(replace(spec, verdict=verdict))
    for name in ("low-w-0", "low-w-1"):
        after.change_pod(name, status=TaskStatus.RELEASING)
    first = after.cycle()
    assert pipelined(first) == {"high-w-0": "n-0", "high-w-1": "n-0"}
    after.delete("low-w-0", "low-w-1")
    assert set(bindings(after.cycle())) == {"high-w-0", "high-w-1"}


def test_a_cycle_after_an_eviction_changes_nothing_by_itself() -> None:
    cluster, _ = preempting()
    first = cluster.cycle()
    second = cluster.cycle()
    assert second.pipelined == first.pipelined
    assert (second.bindings, second.evictions, second.pods, second.pod_groups) == ((), (), {}, {})


@pytest.mark.parametrize("action", ["preempt", "gangpreempt", "gangreclaim"])
def test_free_room_is_left_to_allocate_where_that_comes_after_the_hunt(action: str) -> None:
    cluster = Cluster.of(nodes("n", 1, cpu=4), gang("g", 2))
    cluster.configuration = configuration(f"enqueue, {action}, allocate", ["priority", "gang"], ["predicates"])
    assert len(cluster.cycle().bindings) == 2
