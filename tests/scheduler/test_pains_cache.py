"""What users of Volcano suffered where the scheduler's idea of the cluster and the cluster itself part."""

from __future__ import annotations

import pytest

from muster.scheduler.specs import TaskStatus
from muster.testing import Cluster, Spec, bindings, gang, node, nodes, pod, pods
from tests.scheduler.audit import audit


@pytest.mark.parametrize("status", [TaskStatus.BOUND, TaskStatus.RUNNING, TaskStatus.RELEASING])
def test_a_node_is_not_booked_twice_while_somebody_else_binds_pods_too(status: TaskStatus) -> None:
    """volcano#1052, volcano#1753, volcano#1106: OutOfcpu at the kubelet."""
    cluster = Cluster.of(nodes("n", 2, cpu=2), gang("a", 2))
    first = bindings(cluster.cycle())
    other = next(iter(set(first.values())))
    cluster.add(pod("foreign", cpu=1, node=other, status=status, ours=False))
    cluster.add(gang("b", 2))
    cluster.cycle()
    for each in cluster.cache.nodes.values():
        assert each.used.milli_cpu <= 2000
    audit(cluster.cache)


def test_a_pod_that_leaves_holds_its_place_until_it_is_gone() -> None:
    """volcano#1417, volcano#1106: its resources are not given away while it still runs."""
    cluster = Cluster.of(node("n", 1), gang("a", 1))
    cluster.settle(cluster.cycle())
    cluster.change_pod("a-w-0", status=TaskStatus.RELEASING)
    cluster.add(gang("b", 1))
    assert not cluster.cycle().bindings
    cluster.delete("a-w-0")
    assert len(cluster.cycle().bindings) == 1


def test_a_binding_on_its_way_is_not_undone_by_older_news_of_the_pod() -> None:
    """volcano#1753: the watch that lags behind shows the pod without a node once more."""
    cluster = Cluster.of(node("n", 1), gang("a", 1))
    cluster.cycle()
    cluster.change_pod("a-w-0", labels={"seen": "again"})
    cluster.add(gang("b", 1))
    assert not cluster.cycle().bindings
    audit(cluster.cache)


def test_a_node_that_goes_and_comes_back_still_knows_its_pods() -> None:
    """volcano#4888, volcano#1506, volcano#2999."""
    cluster = Cluster.of(node("n", 2), gang("a", 1))
    cluster.settle(cluster.cycle())
    cluster.cache.remove_node("n")
    cluster.cycle()
    cluster.add(node("n", 2), gang("b", 2))
    assert not cluster.cycle(1).bindings
    cluster.add(gang("c", 1))
    assert len(cluster.cycle(1).bindings) == 1
    audit(cluster.cache)


def test_a_node_that_shrinks_below_what_runs_there_takes_nobody_and_harms_nobody() -> None:
    """volcano#1506, volcano#3301."""
    cluster = Cluster.of(node("n", 4), gang("a", 3), gang("b", 1))
    cluster.settle(cluster.cycle())
    cluster.add(node("n", 2), gang("c", 1))
    outcome = cluster.cycle()
    assert not outcome.bindings
    assert not outcome.evictions
    cluster.add(node("n", 5))
    assert len(cluster.cycle().bindings) == 1
    audit(cluster.cache)


@pytest.mark.parametrize("late", ["node", "queue", "pods"])
def test_after_a_restart_nothing_is_placed_twice_whatever_is_heard_of_last(late: str) -> None:
    """volcano#5174: the pods that run already are on their nodes before anybody is placed beside them."""
    running = pods("a", 4, node="n")
    cluster = Cluster()
    parts: dict[str, list[Spec]] = {"node": [node("n", 4)], "queue": gang("b", 1), "pods": running}
    for name, specs in parts.items():
        if name != late:
            cluster.add(specs)
    cluster.add(parts[late])
    assert not cluster.cycle().bindings
    audit(cluster.cache)


def test_a_failed_bind_is_tried_again() -> None:
    """volcano#3518: nobody waits until the scheduler is restarted."""
    cluster = Cluster.of(node("n", 1), gang("a", 1))
    for _ in range(3):
        outcome = cluster.cycle(1)
        assert len(outcome.bindings) == 1
        cluster.cache.bind_failed(outcome.bindings[0].task_uid)
    assert len(cluster.cycle(60).bindings) == 1
