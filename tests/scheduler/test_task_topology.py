from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

import pytest

from muster.scheduler.outcome import Outcome
from muster.scheduler.specs import TaskTopology
from muster.testing import Cluster, Spec, bindings, configuration, nodes, plugin, pod, pod_group

NODEORDER = plugin("nodeorder")
SPREAD = TaskTopology((("ps", "worker"),), (("ps",),))


def conf(weight: int = 10) -> Any:
    return configuration(
        "enqueue, allocate",
        ["gang"],
        ["predicates", NODEORDER, plugin("task-topology", {"task-topology.weight": weight})],
    )


def job(topology: TaskTopology | None, *roles: str, cpu: float = 1) -> list[Spec]:
    """A gang with so many pods of each role (`ps:2`)."""
    members: list[Spec] = []
    for text in roles:
        role, _, count = text.partition(":")
        members += [pod(f"j-{role}-{index}", "j", cpu, role=role) for index in range(int(count))]
    return [replace(pod_group("j", len(members)), topology=topology), *members]


def together(outcome: Outcome) -> list[set[str]]:
    """The pods of each node, without the name of the job."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for name, node in bindings(outcome).items():
        found[node].add(name.removeprefix("j-"))
    return sorted(found.values(), key=sorted)


def test_roles_that_belong_together_share_nodes_and_others_are_kept_apart() -> None:
    cluster = Cluster.of(nodes("n", 4, cpu=4), job(SPREAD, "ps:2", "worker:4"), configuration=conf())
    assert together(cluster.cycle()) == [{"ps-0", "worker-0", "worker-2"}, {"ps-1", "worker-1", "worker-3"}]


def test_without_a_wish_or_without_the_plugin_pods_are_spread() -> None:
    cluster = Cluster.of(nodes("n", 4, cpu=4), job(None, "ps:2", "worker:2"), configuration=conf())
    assert [len(pods) for pods in together(cluster.cycle())] == [1, 1, 1, 1]
    cluster = Cluster.of(nodes("n", 4, cpu=4), job(SPREAD, "ps:2", "worker:2"))
    assert [len(pods) for pods in together(cluster.cycle())] == [1, 1, 1, 1]


def test_a_bucket_goes_where_most_of_it_fits() -> None:
    cluster = Cluster.of(nodes("small", 3, cpu=2), nodes("z-large", 1, cpu=4), configuration=conf())
    cluster.add(job(TaskTopology((("worker",),)), "worker:4"))
    assert set(bindings(cluster.cycle()).values()) == {"z-large-0"}


def test_a_member_that_comes_later_joins_the_others() -> None:
    cluster = Cluster.of(nodes("n", 4, cpu=4), job(TaskTopology((("worker",),)), "worker:2"), configuration=conf())
    outcome = cluster.cycle()
    cluster.settle(outcome)
    cluster.add(pod("j-worker-2", "j", role="worker"))
    (home,) = set(bindings(outcome).values())
    assert bindings(cluster.cycle()) == {"j-worker-2": home}


def test_the_order_of_roles_decides_who_is_placed_first() -> None:
    cluster = Cluster.of(nodes("n", 1, cpu=1), configuration=conf())
    group, *members = job(TaskTopology((("ps", "worker"),), (), ("worker", "ps")), "ps:1", "worker:1")
    cluster.add(replace(pod_group("j", 1), topology=TaskTopology((("ps", "worker"),), (), ("worker", "ps"))), members)
    assert list(bindings(cluster.cycle())) == ["j-worker-0"]
    assert group is not None


@pytest.mark.parametrize("topology", [TaskTopology((("ps", "nobody"),)), TaskTopology((), (), ("nobody",))])
def test_a_role_without_pods_makes_all_of_it_void(topology: TaskTopology) -> None:
    cluster = Cluster.of(nodes("n", 4, cpu=4), job(topology, "ps:2", "worker:2"), configuration=conf())
    assert [len(pods) for pods in together(cluster.cycle())] == [1, 1, 1, 1]


def test_pods_that_are_there_before_their_pod_group_are_brought_together_too() -> None:
    group, *members = job(TaskTopology((("worker",),)), "worker:3")
    cluster = Cluster.of(nodes("n", 4, cpu=4), members, configuration=conf())
    cluster.cycle()
    cluster.add(group)
    assert len(set(bindings(cluster.cycle()).values())) == 1


def test_two_jobs_of_one_kind_each_stay_together() -> None:
    topology = TaskTopology((("worker",),))
    cluster = Cluster.of(nodes("n", 4, cpu=4), job(topology, "worker:2"), configuration=conf())
    cluster.add(replace(pod_group("k", 2), topology=topology), [pod(f"k-{i}", "k", role="worker") for i in range(2)])
    placed = bindings(cluster.cycle())
    assert placed["j-worker-0"] == placed["j-worker-1"] != placed["k-0"] == placed["k-1"]
