"""Pods that ask for nothing."""

from __future__ import annotations

import pytest

from muster.scheduler.constraints import PodConstraints
from muster.scheduler.specs import TaskStatus
from muster.testing import Cluster, Spec, bindings, configuration, node, nodes, pod, pod_group, pods

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
