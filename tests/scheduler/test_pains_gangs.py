"""What users of Volcano suffered with gangs: fragments that stay, members counted wrong, objects that return."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muster.scheduler.reasons import Code
from muster.scheduler.specs import Phase, TaskStatus
from muster.testing import Cluster, bindings, evictions, gang, node, nodes, pod, pod_group, pods, queue, resources


def test_a_bind_that_fails_does_not_leave_the_gang_running_with_a_hole() -> None:
    """volcano#2684, volcano#4383: it is completed, or taken down in time."""
    cluster = Cluster.of(nodes("n", 2, cpu=1), gang("g", 2))
    outcome = cluster.cycle()
    failed, good = outcome.bindings
    cluster.cache.bind_failed(failed.task_uid)
    cluster.add(node(failed.node, 0))
    cluster.change_pod(good.pod, node=good.node, status=TaskStatus.RUNNING)
    cluster.cycle(1)
    assert cluster.phase("g") is not Phase.RUNNING
    assert evictions(cluster.cycle(61)) == {good.pod}


def test_newcomers_do_not_overtake_a_gang_that_lost_a_member() -> None:
    """volcano#5805, volcano#2865."""
    cluster = Cluster.of(nodes("n", 3, cpu=1), gang("g", 3))
    cluster.settle(cluster.cycle())
    cluster.delete("g-w-0")
    cluster.add(gang("new", 1), pods("g", 1, first=9))
    assert set(bindings(cluster.cycle())) == {"g-w-9"}


@pytest.mark.parametrize("room", [0, 1, 2])
def test_no_part_of_a_gang_starts_below_its_minimum(room: int) -> None:
    """volcano#2462."""
    cluster = Cluster.of(node("n", room), gang("g", 3))
    for _ in range(3):
        assert not cluster.cycle(30).bindings


def test_a_gang_that_grows_is_measured_by_its_new_minimum_at_once() -> None:
    """volcano#6010: a stale PodGroup started a part of what was asked for."""
    cluster = Cluster.of(node("n", 3), pod_group("g", 2), pods("g", 1))
    cluster.cycle()
    cluster.add(pod_group("g", 4, phase=Phase.INQUEUE), pods("g", 3, first=1))
    assert not cluster.cycle().bindings
    cluster.add(node("m", 1))
    assert len(cluster.cycle().bindings) == 4


def test_a_minimum_of_each_role_counts_not_their_sum() -> None:
    """volcano#2462 and its like: enough workers don't make up for a head that finds no place."""
    members = [pod("g-head", "g", cpu=9, role="head"), *pods("g", 3, role="worker")]
    cluster = Cluster.of(nodes("n", 2), pod_group("g", 3, roles={"head": 1, "worker": 2}), members)
    assert not cluster.cycle().bindings


def test_a_job_that_is_made_again_under_its_name_is_scheduled_as_a_new_one() -> None:
    """volcano#3968, volcano#3374, volcano#2044: the late word of the old one's end does not take the new one away."""
    cluster = Cluster.of(node("n"), gang("g", 1))
    cluster.settle(cluster.cycle())
    cluster.cache.remove_pod_group("default/g")
    cluster.add(replace(pod_group("g", 1), uid="uid-second"), replace(pod("g-w-0", "g"), uid="uid-new"))
    cluster.delete("g-w-0")
    assert len(cluster.cycle().bindings) == 1
    assert cluster.cache.jobs["default/g"].spec is not None


def test_a_podgroup_that_comes_after_its_pods_or_goes_before_them_loses_nobody() -> None:
    """volcano#2044, volcano#3374."""
    cluster = Cluster.of(node("n"), pods("g", 2))
    assert not cluster.cycle().bindings
    job = cluster.cache.jobs["default/g"]
    assert job.reason is not None
    assert job.reason.code is Code.POD_GROUP_MISSING
    cluster.add(pod_group("g", 2))
    assert len(cluster.cycle().bindings) == 2


def test_nothing_is_kept_of_jobs_that_are_gone() -> None:
    """volcano#3205, volcano#1947, volcano#2554: the cache does not grow with what has passed."""
    cluster = Cluster.of(node("n", 100), queue("q"))
    cluster.cycle()
    cache = cluster.cache
    for turn in range(5):
        name = f"g{turn}"
        cluster.add(gang(name, 3, 1 + turn / 10, queue="q"))
        cluster.settle(cluster.cycle(1))
        cluster.delete(*[f"{name}-w-{index}" for index in range(3)])
        cache.remove_pod_group(f"default/{name}")
        cluster.cycle(1)
    assert not cache.jobs
    assert not cache.tasks
    assert not cache.waiting
    assert not cache.changed
    assert not cache.unsettled
    assert not cache.lot.jobs
    assert not cache.nodes["n"].tasks
    assert not cache.queues["q"].jobs
    assert cache.used == resources()


@pytest.mark.parametrize("reservation", [None, resources(4)])
def test_a_gang_that_lacks_pods_is_refused_as_long_as_it_does(reservation: object) -> None:
    """volcano#5006: it starts when the last of them comes, and says until then how many are missing."""
    cluster = Cluster.of(node("n"), pod_group("g", 4, min_resources=reservation), pods("g", 3))  # type: ignore[arg-type]
    cluster.cycle()
    job = cluster.cache.jobs["default/g"]
    assert job.reason is not None
    assert (job.reason.code, job.reason.have, job.reason.need) == (Code.NOT_ENOUGH_PODS, 3, 4)
    cluster.add(pods("g", 1, first=3))
    assert len(cluster.cycle().bindings) == 4
