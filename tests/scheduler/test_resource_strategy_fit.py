from __future__ import annotations

from typing import Any

import pytest

from muster.scheduler.conf import load_configuration
from muster.scheduler.framework import ExtensionPoints, Tier
from muster.scheduler.plugins.resource_strategy_fit import ResourceStrategyFit
from muster.scheduler.resources import Resources
from muster.scheduler.task import Shape
from muster.testing import Cluster, bindings, configuration, gang, node, plugin, resources
from tests.scheduler.accounts import node_info, shape

NAME = "resource-strategy-fit"


def strategy(kind: str, weight: int = 1) -> dict[str, Any]:
    return {"type": kind, "weight": weight}


LEAST, MOST = strategy("LeastAllocated"), strategy("MostAllocated")


def points(arguments: dict[str, Any], asked: Shape, allocatable: Resources, used: Resources | None = None) -> float:
    document = {"actions": "allocate", "tiers": [{"plugins": [{"name": NAME, "arguments": arguments}]}]}
    tier = Tier()
    ResourceStrategyFit(dict(load_configuration(document).tiers[0][0].arguments)).register(ExtensionPoints(tier, {}))
    return sum(order(asked, node_info(allocatable, used)) for order in tier.node_orders)


USED = resources(2, 2)


@pytest.mark.parametrize(
    ("resources_", "asked", "allocatable", "expected"),
    [
        pytest.param({"cpu": LEAST, "memory": LEAST}, shape(1, 1), resources(5, 5), 400, id="spread"),
        pytest.param({"cpu": MOST, "memory": MOST}, shape(1, 1), resources(5, 5), 600, id="pack"),
        pytest.param(
            {"cpu": strategy("LeastAllocated", 2), "memory": MOST}, shape(1, 1), resources(5, 5), 466.667, id="weighted"
        ),
        pytest.param(
            {"cpu": LEAST, "memory": strategy("MostAllocated", 2)},
            shape(0, 1),
            resources(5, 5),
            600,
            id="cpu counts though nothing is asked for",
        ),
        pytest.param(
            {"cpu": LEAST, "memory": strategy("MostAllocated", 2)},
            shape(1, 1),
            resources(0, 4),
            500,
            id="a resource that the node has not",
        ),
        pytest.param(
            {"memory": strategy("MostAllocated", 2)}, shape(1, 1), resources(5, 5), 600, id="only what is named"
        ),
        pytest.param({"cpu": LEAST, "memory": LEAST}, shape(4, 1), resources(5, 5), 0, id="0 where one would overflow"),
        pytest.param(
            {"cpu": {"weight": 0}, "memory": {}}, shape(1, 1), resources(5, 5), 400, id="spread, weight 1 by default"
        ),
        pytest.param({"gpu": MOST}, shape(1, 1), resources(5, 5), 0, id="nothing that is asked for is named"),
    ],
)
def test_each_resource_is_spread_or_packed(
    resources_: dict[str, Any], asked: Shape, allocatable: Resources, expected: float
) -> None:
    assert points({"resources": resources_}, asked, allocatable, USED) == pytest.approx(expected, abs=0.001)


def test_without_arguments_cpu_and_memory_are_spread_with_weight_10() -> None:
    assert points({}, shape(1, 1), resources(5, 5), USED) == 400
    assert points({"resourceStrategyFitWeight": -1}, shape(1, 1), resources(5, 5), USED) == 400
    assert points({"resourceStrategyFitWeight": 3}, shape(1, 1), resources(5, 5), USED) == 120
    assert points({"resourceStrategyFitWeight": 0}, shape(1, 1), resources(5, 5), USED) == 0


def test_a_name_goes_before_a_pattern_and_the_longest_pattern_before_the_others() -> None:
    named = {"nvidia.com/gpu": MOST, "nvidia.com/*": LEAST}
    patterns = {"nvidia*": LEAST, "nvidia.com/*": MOST}
    asked, allocatable = shape(0, 0, gpu=1), resources(4, 4, gpu=4)
    assert points({"resources": named}, asked, allocatable) == 250
    assert points({"resources": patterns}, asked, allocatable) == 250
    assert points({"resources": {"nvidia*": LEAST}}, asked, allocatable) == 750


SCARCE = {"enable": True, "resources": "nvidia.com/gpu, example.com/foo", "weight": 10}


@pytest.mark.parametrize(
    ("sra", "allocatable", "asked", "expected"),
    [
        pytest.param(SCARCE, resources(4, 4, 110), shape(1, 1), 1000, id="a node without any scarce resource"),
        pytest.param(SCARCE, resources(4, 4, 110, gpu=1), shape(1, 1), 500, id="one of two"),
        pytest.param(
            {**SCARCE, "resourceWeight": {"nvidia.com/gpu": 3}},
            resources(4, 4, 110, gpu=1),
            shape(1, 1),
            250,
            id="weighted",
        ),
        pytest.param(
            {**SCARCE, "resourceWeight": {"nvidia.com/gpu": -3}},
            resources(4, 4, 110, gpu=1),
            shape(1, 1),
            500,
            id="a negative weight means 1",
        ),
        pytest.param(SCARCE, resources(4, 4, 110), shape(1, 1, gpu=1), 0, id="a node without what the pod asks for"),
        pytest.param({**SCARCE, "enable": False}, resources(4, 4, 110), shape(1, 1), 0, id="switched off"),
    ],
)
def test_pods_are_kept_away_from_scarce_resources(
    sra: dict[str, Any], allocatable: Resources, asked: Shape, expected: float
) -> None:
    assert points({"resourceStrategyFitWeight": 0, "sra": sra}, asked, allocatable) == pytest.approx(expected)


def proportional(**rates: float) -> Any:
    given = {"enable": True, "resources": "nvidia.com/gpu", "resourceProportion": rates}
    return configuration("allocate", ["gang"], [plugin(NAME, {"proportional": given})])


def test_cpu_and_memory_are_kept_for_the_gpus_that_are_free() -> None:
    conf = proportional(**{"nvidia.com/gpu.cpu": 4, "nvidia.com/gpu.memory": 1})
    cluster = Cluster.of(node("n", cpu=10, memory=64, gpu=2), configuration=conf)
    cluster.add(gang("fits", 2, cpu=1), gang("much", 1, cpu=1))
    assert sorted(bindings(cluster.cycle())) == ["fits-w-0", "fits-w-1"]
    reason = cluster.cache.jobs["default/much"].reason
    assert reason is not None
    assert reason.nodes == (("node(s) keep CPU and memory for their free nvidia.com/gpu", 1),)
    cluster.add(gang("gpu", 1, cpu=4, gpu=1))
    outcome = cluster.cycle()
    assert sorted(bindings(outcome)) == ["gpu-w-0"]


def test_memory_is_kept_in_gigabytes_for_each_free_unit() -> None:
    conf = proportional(**{"nvidia.com/gpu.cpu": 0, "nvidia.com/gpu.memory": 8})
    cluster = Cluster.of(node("n", cpu=10, memory=16, gpu=1), configuration=conf)
    cluster.add(gang("much", 1, cpu=1, memory=9), gang("fits", 1, cpu=1, memory=8))
    assert sorted(bindings(cluster.cycle())) == ["fits-w-0"]
