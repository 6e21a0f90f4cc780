"""Preemption on the node where it hurts least."""

from __future__ import annotations

from typing import Any

import pytest

from muster.scheduler.conf import ConfigurationError, load_configuration
from muster.scheduler.specs import Phase, PriorityClassSpec
from muster.scheduler.topology_aware import Sampling
from muster.testing import Cluster, evictions, node, pod, pod_group, pods


def careful(**arguments: Any) -> Any:
    return load_configuration(
        {
            "actions": "enqueue, allocate, preempt",
            "tiers": [{"plugins": [{"name": name} for name in ("priority", "gang", "predicates")]}],
            "configurations": [{"name": "preempt", "arguments": {"enableTopologyAwarePreemption": True, **arguments}}],
        }
    )


def cluster_of(*victims: Any, cpu: float = 2, wants: float = 2, **arguments: Any) -> Cluster:
    """Nodes `a`, `b`, … each with the victims given for it: (cpu, priority, creation)."""
    cluster = Cluster.of(
        [PriorityClassSpec("high", 100), PriorityClassSpec("low", 1)],
        pod_group("low", 0, phase=Phase.RUNNING, priority_class="low"),
        configuration=careful(**arguments),
    )
    for letter, those in zip("abcdefgh", victims, strict=False):
        cluster.add(node(letter, cpu))
        for index, (size, priority, creation) in enumerate(those):
            name = f"low-{letter}-{index}"
            cluster.add(pod(name, "low", size, priority=priority, node=letter, creation=creation))
    cluster.add(pod_group("high", 1, phase=Phase.INQUEUE, priority_class="high"), pods("high", 1, wants))
    return cluster


@pytest.mark.parametrize(
    ("victims", "chosen"),
    [
        (([(2, 5, 1)], [(2, 3, 1)]), {"low-b-0"}),
        (([(1, 3, 1), (1, 3, 1)], [(1, 3, 1), (1, 2, 1)]), {"low-b-0", "low-b-1"}),
        (([(1, 3, 1), (1, 3, 1)], [(2, 3, 1)]), {"low-b-0"}),
        (([(2, 3, 5)], [(2, 3, 9)]), {"low-b-0"}),
        (([(2, 3, 5)], [(2, 3, 5)]), {"low-a-0"}),
    ],
    ids=["the most important victim", "the sum of priorities", "their number", "how young they are", "the first node"],
)
def test_the_node_is_chosen_by(victims: tuple[Any, ...], chosen: set[str]) -> None:
    assert evictions(cluster_of(*victims, minCandidateNodesAbsolute=8).cycle()) == chosen


def test_the_most_important_of_the_needless_victims_are_spared_first() -> None:
    cluster = cluster_of([(1, 1, 1), (1, 2, 2), (2, 3, 3)], cpu=4)
    assert evictions(cluster.cycle()) == {"low-a-0", "low-a-1"}


def test_only_so_many_candidate_nodes_are_tried() -> None:
    many = [[(2, 9, 1)], [(2, 1, 1)]]
    few = cluster_of(*many, minCandidateNodesPercentage=0, maxCandidateNodesAbsolute=1)
    assert evictions(few.cycle()) == {"low-a-0"}
    both = cluster_of(*many, minCandidateNodesAbsolute=2)
    assert evictions(both.cycle()) == {"low-b-0"}


@pytest.mark.parametrize(
    ("nodes", "count"), [(0, 0), (1, 1), (5, 1), (100, 10), (5000, 100)], ids=["no", "one", "few", "more", "many"]
)
def test_a_tenth_of_the_nodes_is_tried_but_at_least_one_and_at_most_a_hundred(nodes: int, count: int) -> None:
    assert Sampling().count(nodes) == count


def test_an_argument_that_is_not_known_is_refused() -> None:
    with pytest.raises(ConfigurationError):
        careful(minCandidates=3)
