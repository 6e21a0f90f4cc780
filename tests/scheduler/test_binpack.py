from __future__ import annotations

from typing import Any

import pytest

from muster.scheduler.conf import load_configuration
from muster.scheduler.plugins.binpack import Binpack
from muster.scheduler.resources import Resources
from muster.testing import Cluster, bindings, configuration, gang, node, nodes, plugin, pod, resources
from tests.scheduler.accounts import node_info, shape


def binpack(**arguments: Any) -> Binpack:
    dotted = {f"binpack.{key}": value for key, value in arguments.items()}
    document = {"actions": "allocate", "tiers": [{"plugins": [{"name": "binpack", "arguments": dotted}]}]}
    option = load_configuration(document).tiers[0][0]
    return Binpack(dict(option.arguments))


GPUS = {"resources": "nvidia.com/gpu, example.com/foo", "resources.nvidia.com/gpu": 7, "resources.example.com/foo": -3}


@pytest.mark.parametrize(
    ("arguments", "asked", "allocatable", "used", "points"),
    [
        pytest.param({}, shape(1, 1), resources(4, 4), resources(1, 1), 50, id="both resources count the same"),
        pytest.param({}, shape(1, 2), resources(4, 4), None, 37.5, id="the mean of what is asked for"),
        pytest.param({}, shape(1), resources(4, 4), resources(1, 4), 50, id="memory does not count if not asked for"),
        pytest.param({}, shape(), resources(4, 4), resources(1, 1), 0, id="nothing asked for"),
        pytest.param({"weight": 10}, shape(1, 1), resources(4, 4), None, 250, id="the weight of the plugin"),
        pytest.param({"cpu": 3}, shape(1, 2), resources(4, 4), None, 31.25, id="weights of resources"),
        pytest.param({"cpu": 0}, shape(1, 2), resources(4, 4), None, 50, id="a weight of 0"),
        pytest.param({"cpu": -5}, shape(1, 2), resources(4, 4), None, 37.5, id="a negative weight means 1"),
        pytest.param({}, shape(2, 1), resources(4, 4), resources(3, 0), 0, id="0 where one would overflow"),
        pytest.param({}, shape(1, 2), resources(0, 4), None, 25, id="a resource the node has not counts as empty"),
        pytest.param({}, shape(1, gpu=1), resources(4, 4, gpu=1), None, 25, id="scalars only when named"),
        pytest.param(GPUS, shape(1, gpu=1), resources(4, 4, gpu=2), None, 100 * (0.25 + 3.5) / 8, id="a named scalar"),
        pytest.param(
            GPUS,
            shape(0, 0, None, **{"example.com/foo": 2}),
            resources(4, 4, None, **{"example.com/foo": 4}),
            None,
            50,
            id="a negative weight of a scalar means 1",
        ),
        pytest.param(
            {"resources": "cpu"}, shape(1, 2), resources(4, 4), None, 37.5, id="cpu keeps its own weight when named"
        ),
    ],
)
def test_a_node_is_better_the_fuller_it_would_be(
    arguments: dict[str, Any], asked: Any, allocatable: Resources, used: Resources | None, points: float
) -> None:
    assert binpack(**arguments).score(asked, node_info(allocatable, used)) == pytest.approx(points)


def packed(*tier: Any) -> Any:
    return configuration("enqueue, allocate", ["gang"], ["predicates", *tier])


def test_pods_go_to_the_fullest_node_that_holds_them() -> None:
    cluster = Cluster.of(
        nodes("n", 3, cpu=4),
        pod("there", cpu=1, node="n-1", ours=False),
        gang("a", 4, cpu=1),
        configuration=packed("binpack"),
    )
    assert sorted(bindings(cluster.cycle()).values()) == ["n-0", "n-1", "n-1", "n-1"]


def test_less_than_one_point_still_tells_two_nodes_apart() -> None:
    cluster = Cluster.of(
        node("a", cpu=512), node("b", cpu=512), pod("there", cpu=1, node="b", ours=False), gang("g", 1, cpu=1)
    )
    cluster.configuration = packed(plugin("binpack", {"binpack.memory": 0}))
    assert bindings(cluster.cycle()) == {"g-w-0": "b"}


@pytest.mark.parametrize("switch", [plugin("binpack", {"binpack.weight": 0}), plugin("binpack", enableNodeOrder=False)])
def test_it_can_be_switched_off(switch: dict[str, Any]) -> None:
    cluster = Cluster.of(nodes("n", 2, cpu=4), pod("there", cpu=1, node="n-1", ours=False), gang("a", 1, cpu=1))
    cluster.configuration = packed(switch)
    assert bindings(cluster.cycle()) == {"a-w-0": "n-0"}
