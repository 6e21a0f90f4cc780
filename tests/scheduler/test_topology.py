from __future__ import annotations

import pytest

from muster.scheduler.specs import TaskTopology
from muster.scheduler.task import TaskInfo
from muster.scheduler.topology import TaskBuckets
from muster.testing import Cluster, node, pod, pod_group

Groups = tuple[tuple[str, ...], ...]


def job(*pods: str, cpu: float = 1) -> tuple[Cluster, list[TaskInfo]]:
    """Pods named `role-index` or, with a node, `role-index@node`."""
    cluster = Cluster.of(node("n", cpu=8), node("m", cpu=8), pod_group("g", 1))
    for text in pods:
        name, _, where = text.partition("@")
        cluster.add(pod(name, "g", cpu, role=name.rpartition("-")[0], node=where or None))
    return cluster, list(cluster.cache.jobs["default/g"].tasks.values())


def filled(topology: TaskTopology, tasks: list[TaskInfo]) -> list[list[str]]:
    return [[task.spec.name for task in bucket.tasks] for bucket in TaskBuckets(topology, tasks).buckets]


@pytest.mark.parametrize(
    ("near", "far", "pods", "expected"),
    [
        pytest.param(
            (("ps", "worker"),),
            (("ps",),),
            ["ps-0", "ps-1", "worker-0", "worker-1"],
            [["ps-0", "worker-0"], ["ps-1", "worker-1"]],
            id="one of each: apart from its own kind, together with the other",
        ),
        pytest.param(
            (("worker",),), (), ["worker-0", "worker-1", "worker-2"], [["worker-0", "worker-1", "worker-2"]], id="all"
        ),
        pytest.param((), (("ps",),), ["ps-0", "ps-1"], [["ps-0"], ["ps-1"]], id="each alone"),
        pytest.param((), (("a", "b"),), ["a-0", "a-1", "b-0"], [["a-0", "a-1"], ["b-0"]], id="two roles apart"),
        pytest.param((("a", "b"),), (), ["a-0", "c-0", "b-0"], [["a-0", "b-0"]], id="roles not named are in none"),
        pytest.param((("a",),), (), ["a-0", "a-1@n", "a-2@m"], [["a-2", "a-0"], ["a-1"]], id="a bucket for each node"),
    ],
)
def test_pods_are_put_together_and_kept_apart(
    near: Groups, far: Groups, pods: list[str], expected: list[list[str]]
) -> None:
    assert filled(TaskTopology(near, far), job(*pods)[1]) == expected


def test_of_buckets_that_it_likes_the_same_a_pod_goes_to_the_smallest() -> None:
    topology = TaskTopology((), (("ps",), ("worker",)), ("ps", "worker"))
    tasks = job("ps-0", "ps-1")[1] + job("worker-0", cpu=3)[1] + job("worker-1")[1]
    assert filled(topology, tasks) == [["ps-0", "worker-0"], ["ps-1", "worker-1"]]


def test_tasks_in_buckets_go_first_then_the_fullest_then_the_order_of_roles() -> None:
    topology = TaskTopology((("ps", "worker"),), (("ps",),), ("worker", "ps"))
    tasks = job("other-0", "ps-0", "worker-0", "worker-1", "worker-2")[1]
    buckets = TaskBuckets(topology, tasks)
    names = [task.spec.name for task in sorted(tasks, key=lambda task: (buckets.order(task), task.order))]
    assert names == ["worker-0", "worker-1", "worker-2", "ps-0", "other-0"]


def test_a_node_is_better_the_more_of_the_bucket_is_there_or_fits() -> None:
    cluster, tasks = job("worker-0", "worker-1", "worker-2@n", cpu=3)
    buckets = TaskBuckets(TaskTopology((("worker",),)), tasks)
    (first,) = [task for task in tasks if task.spec.name == "worker-0"]
    assert buckets.scores(first, [cluster.cache.nodes[name] for name in "nm"]) == [1 + 1, 2]


def test_a_node_is_worse_for_each_pod_of_the_job_that_is_disliked() -> None:
    cluster, tasks = job("ps-0", "ps-1@n")
    buckets = TaskBuckets(TaskTopology((), (("ps",),)), tasks)
    (first,) = [task for task in tasks if task.spec.name == "ps-0"]
    assert buckets.scores(first, [cluster.cache.nodes[name] for name in "nm"]) == [0, 1]
