from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from muster.scheduler.plugins.usage import Usage
from muster.scheduler.specs import NodeUsage
from muster.testing import Cluster, bindings, configuration, gang, node, plugin, resources
from tests.scheduler.accounts import node_info

NOW = 1_000_000.0


def loaded(cpu: float, memory: float, age: float = 0.0) -> NodeUsage:
    return NodeUsage(cpu, memory, NOW - age)


def conf(arguments: dict[str, Any] | None = None, **flags: bool) -> Any:
    return configuration("enqueue, allocate", ["gang"], ["predicates", plugin("usage", arguments, **flags)])


def cluster_of(
    arguments: dict[str, Any] | None = None, /, *, flags: dict[str, bool] | None = None, **usage: NodeUsage
) -> Cluster:
    cluster = Cluster.of([node(name) for name in usage], gang("g", 1), configuration=conf(arguments, **(flags or {})))
    for name, figures in usage.items():
        cluster.cache.set_node_usage(name, figures)
    return cluster


@pytest.mark.parametrize(
    ("usage", "placed"),
    [
        pytest.param(loaded(81, 60), False, id="cpu above its threshold"),
        pytest.param(loaded(60, 81), False, id="memory above its threshold"),
        pytest.param(loaded(80, 79), True, id="at the threshold"),
        pytest.param(loaded(90, 81, age=360), True, id="figures older than five minutes say nothing"),
    ],
)
def test_a_busy_node_takes_no_pods(usage: NodeUsage, placed: bool) -> None:
    assert bindings(cluster_of(a=usage).cycle()) == ({"g-w-0": "a"} if placed else {})


def test_thresholds_can_be_set_and_the_filter_switched_off() -> None:
    assert bindings(cluster_of({"thresholds": {"cpu": 95}}, a=loaded(90, 50)).cycle()) == {"g-w-0": "a"}
    assert bindings(cluster_of({"thresholds": {"mem": 40}}, a=loaded(10, 50)).cycle()) == {}
    assert bindings(cluster_of(flags={"enablePredicate": False}, a=loaded(99, 99)).cycle()) == {"g-w-0": "a"}


@pytest.mark.parametrize(
    ("arguments", "cpu", "memory", "points"),
    [
        ({}, 20, 60, 300),
        ({"usage.weight": 1}, 20, 60, 60),
        ({"cpu.weight": 3}, 20, 60, 350),
        ({"memory.weight": 0}, 20, 60, 400),
    ],
)
def test_a_node_is_better_the_less_it_does(arguments: dict[str, Any], cpu: float, memory: float, points: int) -> None:
    found = node_info(resources(4, 4))
    assert found.spec is not None
    found.spec = replace(found.spec, usage=NodeUsage(cpu, memory, 0.0))
    assert Usage(arguments).score(found) == points


def test_pods_go_to_the_idlest_node() -> None:
    assert bindings(cluster_of(a=loaded(50, 50), b=loaded(10, 10), c=loaded(40, 40)).cycle()) == {"g-w-0": "b"}


def test_a_gang_that_waits_for_a_busy_node_is_placed_when_it_calms_down() -> None:
    cluster = cluster_of(a=loaded(90, 10))
    assert bindings(cluster.cycle()) == {}
    reason = cluster.cache.jobs["default/g"].reason
    assert reason is not None
    assert reason.nodes == (("node(s) whose CPU load exceeds the upper limit", 1),)
    cluster.cache.set_node_usage("a", NodeUsage(50, 10, NOW + 30))
    assert bindings(cluster.cycle(seconds=30)) == {"g-w-0": "a"}


def test_when_figures_grow_old_a_cycle_is_run_in_which_they_count_no_more() -> None:
    cluster = cluster_of(a=loaded(90, 10, age=10))
    assert cluster.cycle().wake_at == NOW + 290
    assert bindings(cluster.cycle(seconds=290)) == {"g-w-0": "a"}


def test_usage_outlives_a_change_of_the_node() -> None:
    cluster = cluster_of(a=loaded(90, 10))
    cluster.add(node("a", cpu=8))
    assert bindings(cluster.cycle()) == {}


def test_usage_of_an_unknown_node_is_passed_over() -> None:
    cluster = cluster_of(a=loaded(10, 10))
    cluster.cache.set_node_usage("b", loaded(90, 10))
    assert bindings(cluster.cycle()) == {"g-w-0": "a"}


def test_usage_of_a_node_that_is_gone_is_forgotten() -> None:
    cluster = cluster_of(a=loaded(90, 10))
    cluster.cache.remove_node("a")
    cluster.add(node("a"))
    assert bindings(cluster.cycle()) == {"g-w-0": "a"}


def test_no_weight_may_be_negative() -> None:
    with pytest.raises(ValueError, match=r"tiers.*arguments: no weight may be negative"):
        conf({"usage.weight": -1})
