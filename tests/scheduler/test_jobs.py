"""Jobs and their roles: minimums that ask too much or nothing, changes of a live gang, gates of others, failures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muster.scheduler.outcome import Outcome
from muster.scheduler.reasons import Code
from muster.scheduler.specs import Phase, TaskStatus
from muster.testing import Cluster, Spec, bindings, evictions, gang, nodes, pod, pod_group, pods, resources


def bound(*specs: Spec | list[Spec], cpu: float = 4, count: int = 1) -> set[str]:
    return set(bindings(Cluster.of(nodes("n", count, cpu=cpu), *specs).cycle()))


HEAD = pod("head", "g", 1, role="head")
WORKERS: list[Spec] = [pod(f"w-{index}", "g", 1, role="worker", priority=9) for index in range(3)]


@pytest.mark.parametrize(
    ("roles", "minimum", "cpu", "placed"),
    [
        pytest.param({}, 2, 4, {"w-0", "w-1", "w-2", "head"}, id="without roles in the order of priority"),
        pytest.param({"head": 1}, 2, 3, {"w-0", "w-1", "head"}, id="the role's member although others go first"),
        pytest.param({"head": 1, "worker": 2}, 3, 3, {"w-0", "w-1", "head"}, id="each role its minimum"),
        pytest.param({"head": 1, "worker": 3}, 3, 3, {"w-0", "w-1", "w-2"}, id="more than the whole: no role counts"),
        pytest.param({"head": 2}, 2, 4, set(), id="a role that is short of pods"),
        pytest.param({"head": 0}, 2, 4, {"w-0", "w-1", "w-2", "head"}, id="a minimum of 0 asks nothing"),
        pytest.param({"other": 1}, 2, 4, set(), id="a role without any pod"),
    ],
)
def test_a_gang_starts_with_the_minimum_of_each_role(
    roles: dict[str, int], minimum: int, cpu: float, placed: set[str]
) -> None:
    assert bound(pod_group("g", minimum, roles=roles), HEAD, WORKERS, cpu=cpu) == placed


def test_a_role_that_finds_no_node_keeps_the_whole_gang_waiting() -> None:
    head = replace(HEAD, request=resources(9, pods=1), init_request=resources(9))
    assert bound(pod_group("g", 2, roles={"head": 1}), head, WORKERS) == set()


@pytest.mark.parametrize(
    ("minimum", "placed", "code"),
    [
        pytest.param(0, 3, None, id="nothing: one by one"),
        pytest.param(-5, 3, None, id="negative counts as nothing"),
        pytest.param(3, 3, None, id="all"),
        pytest.param(4, 0, Code.NOT_ENOUGH_PODS, id="more than there are"),
        pytest.param(2**31, 0, Code.NOT_ENOUGH_PODS, id="enormous"),
    ],
)
def test_whatever_min_member_says(minimum: int, placed: int, code: Code | None) -> None:
    cluster = Cluster.of(nodes("n", 1, cpu=4), pod_group("g", minimum), pods("g", 3))
    assert len(cluster.cycle().bindings) == placed
    reason = cluster.cache.jobs["default/g"].reason
    assert (reason.code if reason else None) is code


def test_a_gang_of_ten_thousand_is_placed_in_one_decision() -> None:
    cluster = Cluster.of(nodes("n", 100, cpu=100), gang("g", 10_000, cpu=1))
    assert len(cluster.cycle().bindings) == 10_000


def test_a_gang_of_ten_thousand_that_lacks_one_place_binds_nobody() -> None:
    cluster = Cluster.of(nodes("n", 99, cpu=101), pod_group("g", 10_000), pods("g", 10_000))
    assert not cluster.cycle().bindings


def test_a_minimum_that_falls_lets_the_gang_start() -> None:
    cluster = Cluster.of(nodes("n", 1, cpu=2), gang("g", 3))
    assert not cluster.cycle().bindings
    cluster.add(pod_group("g", 2, min_resources=resources(2)))
    assert len(cluster.cycle().bindings) == 2


def test_resources_that_are_asked_for_anew_are_reserved_anew() -> None:
    cluster = Cluster.of(nodes("n", 2, cpu=4), pod_group("g", 1, min_resources=resources(2)))
    cluster.cycle()
    assert cluster.cache.promised == resources(2)
    cluster.add(pod_group("g", 1, min_resources=resources(3)))
    cluster.cycle()
    assert cluster.cache.promised == resources(3)


def test_pods_that_were_there_before_their_pod_group_are_placed_when_it_comes() -> None:
    cluster = Cluster.of(nodes("n", 1, cpu=4), pods("g", 2))
    cluster.cycle()
    assert cluster.cache.jobs["default/g"].reason == cluster.cache.jobs["default/g"].reason
    cluster.add(pod_group("g", 2))
    assert len(cluster.cycle().bindings) == 2


def test_a_gang_waits_for_the_gates_of_others_and_is_woken_when_they_go() -> None:
    cluster = Cluster.of(nodes("n", 1, cpu=4), pod_group("g", 2), pods("g", 1), pod("late", "g", gated=True))
    outcome = cluster.cycle()
    said = outcome.pod_groups["default/g"].reason
    assert said is not None
    assert said.code is Code.PODS_GATED
    assert cluster.cycle() == Outcome()
    cluster.change_pod("late", gated=False)
    assert len(cluster.cycle().bindings) == 2


@pytest.mark.parametrize(
    ("lost", "replaced", "rolled_back"),
    [
        pytest.param(True, False, True, id="the kubelet had no room for it (OutOfcpu): it never ran"),
        pytest.param(False, False, False, id="it ran and failed: the gang is ending"),
        pytest.param(False, True, True, id="it failed, and what replaces it finds no place"),
    ],
)
def test_a_member_that_failed(lost: bool, replaced: bool, rolled_back: bool) -> None:
    cluster = Cluster.of(nodes("n", 2, cpu=1), gang("g", 2))
    cluster.run()
    cluster.change_pod("g-w-1", status=TaskStatus.FAILED, lost=lost)
    cluster.add(pod("other", cpu=1, node="n-1", ours=False))
    if replaced:
        cluster.add(pod("g-w-2", "g"))
    cluster.cycle()
    assert (evictions(cluster.cycle(seconds=60)) == {"g-w-0"}) is rolled_back


def test_a_gang_that_goes_up_and_down_never_flaps_between_phases() -> None:
    cluster = Cluster.of(nodes("n", 2, cpu=1), gang("g", 2))
    seen = [cluster.phase("g")]
    for _ in range(2):
        outcome = cluster.cycle()
        seen.append(cluster.phase("g"))
        cluster.settle(outcome)
    for name in ("g-w-0", "g-w-1"):
        cluster.change_pod(name, status=TaskStatus.SUCCEEDED)
        cluster.cycle()
        seen.append(cluster.phase("g"))
    assert seen == [Phase.PENDING, Phase.INQUEUE, Phase.RUNNING, Phase.RUNNING, Phase.COMPLETED]
