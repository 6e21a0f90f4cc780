"""Pods that ask for nothing."""

from __future__ import annotations

import pytest

from muster.scheduler.constraints import PodConstraints
from muster.scheduler.specs import TaskStatus
from muster.testing import Cluster, Spec, bindings, configuration, gang, node, nodes, pod, pod_group, pods

BOTH = configuration("enqueue, allocate, backfill", ["gang"], ["predicates", "nodeorder"])


@pytest.mark.parametrize(
    ("specs", "placed"),
    [
        pytest.param([node("n"), pod_group("g", 3), *pods("g", 3, 0)], 3, id="a gang of them"),
        pytest.param([node("n", pods=2), pod_group("g", 3), *pods("g", 3, 0)], 0, id="whole or not at all"),
        pytest.param([node("n", pods=2), pod_group("g", 1), *pods("g", 3, 0)], 2, id="as many as pod slots"),
        pytest.param([node("n", cpu=0.001), pod_group("g", 1), *pods("g", 1, 0)], 1, id="a full node will do"),
        pytest.param(
            [node("n", cpu=1), pod("x", node="n", cpu=3, ours=False), pod_group("g", 1), *pods("g", 1, 0)],
            1,
            id="an overcommitted node too",
        ),
        pytest.param([node("n", unschedulable=True), pod_group("g", 1), *pods("g", 1, 0)], 0, id="a cordoned one not"),
        pytest.param([node("n", cpu=1), pod_group("g", 2), pod("a", "g", 1), pod("b", "g", 0)], 2, id="mixed"),
        pytest.param([node("n", cpu=1, pods=1), pod_group("g", 2), pod("a", "g", 1), pod("b", "g", 0)], 0, id="P1"),
        pytest.param([node("n", cpu=1), pod_group("g", 2), pod("a", "g", 2), pod("b", "g", 0)], 0, id="P1 again"),
    ],
)
def test_pods_that_ask_for_nothing_are_placed_beside_the_others(specs: list[Spec], placed: int) -> None:
    assert len(Cluster.of(specs, configuration=BOTH).cycle().bindings) == placed


@pytest.mark.parametrize(
    ("asking", "light", "minimum", "placed"),
    [
        pytest.param(3, 1, 3, {"g-w-0", "g-w-1", "light-0"}, id="one of them saves one that asks for something"),
        pytest.param(2, 2, 2, {"g-w-0", "light-0", "light-1"}, id="one that asks for something goes all the same"),
        pytest.param(1, 2, 3, {"g-w-0", "light-0", "light-1"}, id="all"),
    ],
)
def test_pods_that_ask_for_nothing_count_towards_the_minimum(
    asking: int, light: int, minimum: int, placed: set[str]
) -> None:
    """What the gang takes beyond its minimum waits for its turn: another gang goes before."""
    members: list[Spec] = [*pods("g", asking), *(pod(f"light-{index}", "g", 0) for index in range(light))]
    other = gang("other", 4 - len(placed & {f"g-w-{index}" for index in range(asking)}))
    cluster = Cluster.of(node("n", cpu=4), pod_group("g", minimum), members, other, configuration=BOTH)
    assert set(bindings(cluster.cycle())) == placed | {f"other-w-{index}" for index in range(len(other) - 1)}


def test_a_gang_that_lacks_only_pods_that_ask_for_nothing_lets_others_start_before_it_grows() -> None:
    group: list[Spec] = [pod_group("g", 1), pod("g-w-0", "g", 2), pod("light", "g", 0)]
    cluster = Cluster.of(node("n", cpu=2), group, gang("other", 1, 2), configuration=BOTH)
    assert set(bindings(cluster.cycle())) == {"other-w-0", "light"}


def test_without_backfill_they_wait() -> None:
    cluster = Cluster.of(nodes("n", 1), pod_group("g", 1), pods("g", 1, 0))
    cluster.configuration = configuration("enqueue, allocate", ["gang"])
    assert not cluster.cycle().bindings


def test_extra_ones_join_a_running_gang() -> None:
    cluster = Cluster.of(nodes("n", 1), pod_group("g", 1), pod("a", "g", 1, node="n-0", status=TaskStatus.RUNNING))
    cluster.add(pods("g", 2, 0))
    assert len(cluster.cycle().bindings) == 2


def test_who_waits_for_the_same_follows_a_gang_of_which_only_a_part_was_placed() -> None:
    nowhere = PodConstraints(node_selector=(("zone", "nowhere"),))
    jobs: list[list[Spec]] = [
        [pod_group(name, 0), pod(f"{name}-0", name, 0, scheduling=nowhere), pod(f"{name}-1", name, 0)]
        for name in ("one", "two")
    ]
    cluster = Cluster.of(*jobs)
    assert not cluster.cycle().bindings
    cluster.add(nodes("n", 1))
    assert set(bindings(cluster.cycle())) == {"one-1", "two-1"}
