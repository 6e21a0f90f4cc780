"""Room for a whole gang at once: gangpreempt and gangreclaim."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from muster.scheduler.bundles import Bundle, bundles_of, keep_allowed
from muster.scheduler.conf import SchedulerConfiguration, load_configuration
from muster.scheduler.specs import Phase, PriorityClassSpec, QueueSpec, TaskStatus
from muster.testing import Cluster, Spec, bindings, evictions, node, nodes, pod, pod_group, pods, queue, resources
from tests.scheduler.audit import audit

CLASSES = [PriorityClassSpec("high", 100), PriorityClassSpec("mid", 50), PriorityClassSpec("low", 1)]


def configured(actions: str, *tiers: list[str], **arguments: Any) -> SchedulerConfiguration:
    document: dict[str, Any] = {
        "actions": actions,
        "tiers": [{"plugins": [{"name": name} for name in tier]} for tier in tiers],
    }
    if arguments:
        document["configurations"] = [{"name": actions.split(", ")[-1], "arguments": arguments}]
    return load_configuration(document)


PREEMPT = ("enqueue, allocate, gangpreempt", ["priority", "gang", "conformance"], ["predicates"])
RECLAIM = ("enqueue, allocate, gangreclaim", ["priority", "gang", "conformance"], ["proportion", "predicates"])


def running(name: str, count: int, least: int = 0, *, node: str = "n-0", cpu: float = 1, **options: Any) -> list[Spec]:
    priority = options.pop("priority_class", "low")
    group = pod_group(name, least, phase=Phase.RUNNING, priority_class=priority, **options)
    return [group, *pods(name, count, cpu, node=node)]


def waiting(name: str, count: int, *, cpu: float = 1, **options: Any) -> list[Spec]:
    priority = options.pop("priority_class", "high")
    return [pod_group(name, count, phase=Phase.INQUEUE, priority_class=priority, **options), *pods(name, count, cpu)]


def preempting(*specs: Any, **arguments: Any) -> Cluster:
    return Cluster.of(CLASSES, *specs, configuration=configured(*PREEMPT, **arguments))


def reclaiming(*specs: Any, **arguments: Any) -> Cluster:
    return Cluster.of(CLASSES, queue("q1"), queue("q2"), *specs, configuration=configured(*RECLAIM, **arguments))


def test_what_gangs_can_spare_goes_before_whole_gangs() -> None:
    cluster = preempting(nodes("n", 1, cpu=5), running("a", 3, 2), running("b", 2, 1), waiting("high", 2))
    outcome = cluster.cycle()
    assert evictions(outcome) == {"a-w-2", "b-w-1"}, "of a gang the pod that would be placed last"
    assert {(each.reason, each.by) for each in outcome.evictions} == {("gangpreempt", "default/high")}
    cluster.settle(outcome)
    assert set(bindings(cluster.cycle())) == {"high-w-0", "high-w-1"}
    audit(cluster.cache)


def test_a_gang_that_can_spare_nothing_goes_whole() -> None:
    cluster = preempting(nodes("n", 1, cpu=4), running("a", 2, 2), running("b", 2, 2), waiting("high", 1))
    assert evictions(cluster.cycle()) == {"b-w-0", "b-w-1"}, "the job that comes last"


def test_whole_gangs_stay_where_the_configuration_says_so() -> None:
    cluster = preempting(nodes("n", 1, cpu=2), running("a", 2, 2), waiting("high", 1), allowWholeBundle=False)
    assert not cluster.cycle().evictions


def test_no_more_than_needed_is_evicted() -> None:
    """volcano#5994, volcano#5984."""
    cluster = preempting(
        node("n-0", 4), node("n-1", 4), running("a", 4), running("b", 4, node="n-1"), waiting("high", 1, cpu=3)
    )
    outcome = cluster.cycle()
    assert len(outcome.evictions) == 3
    assert len({each.node for each in outcome.evictions}) == 1


def test_a_gang_that_would_still_lack_a_member_evicts_nobody() -> None:
    cluster = preempting(nodes("n", 1, cpu=4), running("a", 4), waiting("high", 5))
    outcome = cluster.cycle()
    assert (outcome.evictions, outcome.pipelined) == ((), ())


@pytest.mark.parametrize("priority", ["high", "mid"])
def test_only_gangs_of_lower_priority_are_preempted(priority: str) -> None:
    cluster = preempting(nodes("n", 1, cpu=1), running("a", 1, priority_class=priority))
    cluster.add(waiting("mid", 1, priority_class="mid"))
    assert not cluster.cycle().evictions


def test_a_gang_that_says_so_is_neither_preempted_nor_are_its_pods() -> None:
    for change in ("group", "pod"):
        cluster = preempting(nodes("n", 1, cpu=1), running("a", 1), waiting("high", 1))
        if change == "pod":
            cluster.change_pod("a-w-0", preemptable=False)
        else:
            spec = cluster.cache.jobs["default/a"].spec
            assert spec is not None
            cluster.cache.set_pod_group(replace(spec, preemptable=False))
        assert not cluster.cycle().evictions


def test_a_plugin_that_protects_one_pod_of_a_whole_bundle_keeps_all_of_it() -> None:
    cluster = preempting(nodes("n", 1, cpu=2), running("a", 2, 2), waiting("high", 1))
    cluster.change_pod("a-w-0", priority_class="system-node-critical")
    assert not cluster.cycle().evictions


def test_room_is_taken_from_queues_above_what_they_deserve() -> None:
    cluster = reclaiming(nodes("n", 1, cpu=4), running("a", 4, queue="q1"), waiting("b", 2, queue="q2"))
    outcome = cluster.cycle()
    assert len(outcome.evictions) == 2
    assert {each.reason for each in outcome.evictions} == {"gangreclaim"}
    cluster.settle(outcome)
    assert set(bindings(cluster.cycle())) == {"b-w-0", "b-w-1"}


def test_a_queue_takes_back_no_more_for_a_gang_than_it_deserves() -> None:
    cluster = reclaiming(nodes("n", 1, cpu=4), running("a", 4, queue="q1"), waiting("b", 3, queue="q2"))
    assert not cluster.cycle().evictions


def test_gangs_of_queues_that_are_not_reclaimable_stay() -> None:
    cluster = reclaiming(nodes("n", 1, cpu=4), running("a", 4, queue="q1"), waiting("b", 1, queue="q2"))
    cluster.cache.set_queue(QueueSpec("q1", reclaimable=False))
    assert not cluster.cycle().evictions


def test_pods_that_do_not_run_yet_are_not_reclaimed() -> None:
    cluster = reclaiming(nodes("n", 1, cpu=1), running("a", 1, queue="q1"), waiting("b", 1, queue="q2"))
    cluster.change_pod("a-w-0", status=TaskStatus.BOUND)
    assert not cluster.cycle().evictions


# --- bundles ---


def bundled(cluster: Cluster, name: str = "g") -> list[tuple[bool, list[str]]]:
    job = cluster.cache.jobs[f"default/{name}"]
    found = bundles_of(job, [task for task in job.tasks.values() if task.status is TaskStatus.RUNNING])
    return [(bundle.whole, [task.spec.name for task in bundle.tasks]) for bundle in found]


def test_the_surplus_is_safe_and_the_rest_is_whole() -> None:
    cluster = Cluster.of(nodes("n", 1, cpu=9), running("g", 3, 2))
    assert bundled(cluster) == [(False, ["g-w-0"]), (True, ["g-w-1", "g-w-2"])]


def test_the_least_important_pods_are_the_surplus() -> None:
    cluster = Cluster.of(nodes("n", 1, cpu=9), running("g", 3, 2))
    cluster.change_pod("g-w-2", priority=-1)
    assert bundled(cluster)[0] == (False, ["g-w-2"])


def test_a_role_at_its_minimum_has_no_surplus() -> None:
    cluster = Cluster.of(
        nodes("n", 1, cpu=9),
        pod_group("g", 2, roles={"head": 1}),
        pod("g-0", "g", role="head", node="n-0", priority=-5),
        pod("g-1", "g", role="worker", node="n-0"),
        pod("g-2", "g", role="worker", node="n-0"),
    )
    assert bundled(cluster) == [(False, ["g-1"]), (True, ["g-0", "g-2"])]


def test_of_a_gang_that_is_not_ready_everything_is_safe() -> None:
    cluster = Cluster.of(nodes("n", 1, cpu=9), running("g", 2, 3))
    assert bundled(cluster) == [(False, ["g-w-0", "g-w-1"])]


def test_a_whole_bundle_is_kept_only_complete_and_others_shrink() -> None:
    cluster = Cluster.of(nodes("n", 1, cpu=9), running("g", 4, 2))
    job = cluster.cache.jobs["default/g"]
    bundles = bundles_of(job, job.tasks.values())
    allowed = [cluster.cache.tasks[f"uid-g-w-{index}"] for index in (0, 2)]
    kept = keep_allowed(bundles, allowed)
    assert [(bundle.whole, len(bundle.tasks)) for bundle in kept] == [(False, 1)]


def test_a_bundle_is_worth_what_it_gives_of_the_need_against_what_is_lost() -> None:
    cluster = Cluster.of(nodes("n", 1, cpu=9), running("g", 4, 4))
    job = cluster.cache.jobs["default/g"]
    (bundle,) = bundles_of(job, job.tasks.values())
    assert bundle.worth(resources(2)) == 0.5
    assert Bundle(job, bundle.tasks, whole=False).worth(resources(2)) == float("inf")
