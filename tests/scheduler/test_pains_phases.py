"""What users of Volcano suffered with what is said: phases that flap, silence, false alarms."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muster.scheduler.conf import SchedulerConfiguration
from muster.scheduler.specs import Condition, Phase, TaskStatus
from muster.testing import Cluster, Spec, configuration, gang, node, nodes, pod, pod_group, pods, queue, resources

CAPPED = configuration("enqueue, allocate, backfill", ["priority", "gang"], ["predicates", "proportion"])


def write_back(cluster: Cluster, name: str) -> None:
    """The API server shows what was written of the PodGroup."""
    job = cluster.cache.jobs[f"default/{name}"]
    assert job.spec is not None
    cluster.cache.set_pod_group(replace(job.spec, phase=job.phase, conditions=job.conditions))


def test_a_gang_all_of_whose_members_run_is_running_whatever_was_said_before() -> None:
    """volcano#1859, volcano#153: it stayed Unknown, with a condition that was no longer true."""
    stale = (Condition("Unschedulable", status=True, reason="NotEnoughResources"),)
    group = replace(pod_group("g", 2, phase=Phase.UNKNOWN), conditions=stale)
    cluster = Cluster.of(node("n"), group, pods("g", 2, node="n"))
    cluster.cycle()
    assert cluster.phase("g") is Phase.RUNNING
    conditions = {each.type: each.status for each in cluster.cache.jobs["default/g"].conditions}
    assert conditions == {"Unschedulable": False, "Scheduled": True}


@pytest.mark.parametrize("status", [TaskStatus.SUCCEEDED, TaskStatus.FAILED])
def test_what_is_completed_is_not_admitted_again(status: TaskStatus) -> None:
    """volcano#2041."""
    least = resources(2)
    group = pod_group("g", 2, phase=Phase.COMPLETED, min_resources=least)
    cluster = Cluster.of(node("n"), group, pods("g", 2, node="n", status=status))
    for _ in range(3):
        cluster.cycle(10)
        write_back(cluster, "g")
        assert cluster.phase("g") is Phase.COMPLETED


def test_a_podgroup_without_a_phase_is_pending() -> None:
    """volcano#2657."""
    cluster = Cluster.of(node("n", 0), pod_group("g", 1, min_resources=resources(9)), pods("g", 1, 9))
    outcome = cluster.cycle()
    assert outcome.pod_groups["default/g"].phase is Phase.PENDING


@pytest.mark.parametrize("again", [1, 5])
def test_who_waits_says_so_once(again: int) -> None:
    """volcano#3123, volcano#1094, volcano#3750: no update and no event for what was said already."""
    cluster = Cluster.of(node("n", 1), gang("g", 2), gang("h", 1, 3))
    cluster.cycle()
    for name in ("g", "h"):
        write_back(cluster, name)
    for _ in range(again):
        outcome = cluster.cycle(1)
        assert not outcome.pod_groups
        assert not outcome.pods
        assert not outcome.queues


@pytest.mark.parametrize(
    ("conf", "specs", "unschedulable"),
    [
        pytest.param(None, [node("n", 1), gang("g", 1, 2)], True, id="no node is large enough"),
        pytest.param(None, [node("n", 2), gang("x", 2), gang("g", 1)], True, id="all nodes are full"),
        pytest.param(
            CAPPED,
            [node("n", 9), queue("q", capability=resources(1)), gang("g", 2, queue="q")],
            False,
            id="the queue's cap",
        ),
        pytest.param(
            CAPPED, [node("n", 9), pod_group("g", 3), *pods("g", 2)], False, id="members that do not exist yet"
        ),
        pytest.param(None, [node("n", 1), pod_group("g", 1), pod("g-w-0", "g", 9, gated=True)], False, id="gated"),
    ],
)
def test_cluster_autoscalers_hear_unschedulable_exactly_where_nodes_would_help(
    conf: SchedulerConfiguration | None, specs: list[Spec], *, unschedulable: bool
) -> None:
    """volcano#3976, volcano#4710 (false alarm), volcano#4030, volcano#3804 (silence)."""
    cluster = Cluster.of(*specs) if conf is None else Cluster.of(*specs, configuration=conf)
    outcomes = [cluster.cycle(), cluster.cycle(1)]
    said = {key: verdict.reason for outcome in outcomes for key, verdict in outcome.pods.items()}
    reasons = {reason for key, reason in said.items() if key.startswith("default/g-")}
    assert (reasons == {"Unschedulable"}) is unschedulable
    assert "Schedulable" not in said.values()


def test_a_refusal_names_its_cause_with_numbers() -> None:
    """volcano#4311, volcano#1094: `3 Unschedulable` said nothing."""
    cluster = Cluster.of(nodes("n", 2, cpu=1), gang("g", 3))
    cluster.cycle()
    reason = cluster.cache.jobs["default/g"].reason
    assert reason is not None
    assert (reason.resource, reason.requested, reason.limit) == ("cpu", 3000, 2000)
    full = pod("x", node="n-0", cpu=1, ours=False)
    cluster = Cluster.of(nodes("n", 3, cpu=1), full, pod_group("g", 3), pods("g", 3))
    cluster.cycle()
    reason = cluster.cache.jobs["default/g"].reason
    assert reason is not None
    assert (reason.resource, reason.requested, reason.have, reason.need) == ("cpu", 1000, 2, 3)
    assert dict(reason.nodes) == {"Insufficient cpu beside the gang's other members": 2, "Insufficient cpu": 1}


def test_overused_means_that_all_of_what_is_deserved_is_in_use() -> None:
    """volcano#479: a queue that is at its end in one dimension only goes on where another is asked for."""
    specs: list[Spec] = [node("n", 4, 8), queue("q", capability=resources(2, 8))]
    used: list[Spec] = [pod_group("old", 1, phase=Phase.RUNNING, queue="q"), pod("old-0", "old", 2, 1, node="n")]
    cluster = Cluster.of(*specs, used, gang("g", 1, 0, 1, queue="q"), configuration=CAPPED)
    assert len(cluster.cycle().bindings) == 1
