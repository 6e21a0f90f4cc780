from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from muster.scheduler.constraints import NodeGroups, PodConstraints
from muster.scheduler.plugins.nodegroup import NodeGrouping
from muster.scheduler.specs import QueueSpec
from muster.testing import (
    Cluster,
    Spec,
    bindings,
    companion,
    configuration,
    gang,
    node,
    plugin,
    pod_group,
    pods,
    queue,
    resources,
)
from tests.scheduler.accounts import node_info, shape

FIRST = NodeGroups(("group1", "group3"), ("group3",), ("group2", "group4"), ("group4",))
SECOND = NodeGroups(("group1",), ("group3",), ("group2",), ("group4",))
NONE: dict[str, Any] = {}
LOOSE = {"strict": False}
ORDERED = {"enablePreferredOrder": True}


@pytest.mark.parametrize(
    ("groups", "arguments", "admitted", "points"),
    [
        pytest.param(FIRST, NONE, "134", [100, 0, 150, -1, 0], id="preferred groups among the required ones"),
        pytest.param(SECOND, NONE, "134", [100, 0, 50, -1, 0], id="preferred groups beside the required ones"),
        pytest.param(None, NONE, "", [0, 0, 0, 0, 0], id="a queue that names none has no nodes"),
        pytest.param(None, LOOSE, "5", [0, 0, 0, 0, 0], id="unless it is not meant strictly: those in no group"),
        pytest.param(FIRST, LOOSE, "134", [100, 0, 150, -1, 0], id="a queue with groups never uses those in none"),
        pytest.param(NodeGroups((), ("group1", "group3")), ORDERED, "13", [50, 0, 25, 0, 0], id="in order"),
        pytest.param(NodeGroups((), ("group1", "group3")), NONE, "13", [50, 0, 50, 0, 0], id="not in order"),
        pytest.param(NodeGroups(forbidden=("group1",)), NONE, "", [0, 0, 0, 0, 0], id="forbidding allows nothing"),
        pytest.param(NodeGroups(("group1",), (), ("group1",)), NONE, "", [100, 0, 0, 0, 0], id="forbidden wins"),
        pytest.param(NodeGroups(), NONE, "", [0, 0, 0, 0, 0], id="an affinity that says nothing is none"),
    ],
)
def test_a_queues_groups_decide_which_nodes_it_uses(
    groups: NodeGroups | None, arguments: dict[str, Any], admitted: str, points: list[int]
) -> None:
    grouping = NodeGrouping(arguments)
    asked = shape(scheduling=PodConstraints(node_groups=groups))
    labels: list[dict[str, str]] = [{"volcano.sh/nodegroup-name": f"group{number}"} for number in range(1, 5)] + [{}]
    found = [node_info(resources(4, 4), labels=each, name=f"n{number}") for number, each in enumerate(labels, 1)]
    assert "".join(each.name[1:] for each in found if grouping.refusal(asked, each) is None) == admitted
    given = groups or NodeGroups()
    assert [grouping.score(given, each.labels.get("volcano.sh/nodegroup-name")) for each in found] == points


def conf(**flags: bool) -> Any:
    return configuration("enqueue, allocate", ["gang"], ["predicates", plugin("nodegroup", None, **flags)])


def grouped(name: str, group: str, cpu: float = 4) -> Spec:
    return node(name, cpu=cpu, labels={"volcano.sh/nodegroup-name": group})


def with_groups(spec: QueueSpec, *required: str) -> QueueSpec:
    return replace(spec, node_groups=NodeGroups(required))


def test_the_gangs_of_two_queues_use_their_own_nodes() -> None:
    cluster = Cluster.of(grouped("a", "one"), grouped("b", "two"), configuration=conf())
    cluster.add(with_groups(queue("q1"), "one"), with_groups(queue("q2"), "two"))
    cluster.add(gang("x", 2, queue="q2"), gang("y", 2, queue="q1"))
    assert bindings(cluster.cycle()) == {"x-w-0": "b", "x-w-1": "b", "y-w-0": "a", "y-w-1": "a"}


def test_pods_that_are_there_before_their_pod_group_use_the_nodes_of_its_queue() -> None:
    cluster = Cluster.of(grouped("a", "one"), grouped("b", "two"), configuration=conf())
    cluster.add(with_groups(queue("q2"), "two"), pods("x", 2))
    assert bindings(cluster.cycle()) == {}
    cluster.add(pod_group("x", 2, queue="q2"))
    assert bindings(cluster.cycle()) == {"x-w-0": "b", "x-w-1": "b"}


def test_a_gang_that_waits_is_placed_when_its_queue_gets_the_nodes() -> None:
    cluster = Cluster.of(grouped("a", "one"), with_groups(queue("q"), "two"), gang("x", 1, queue="q"))
    cluster.configuration = conf()
    assert bindings(cluster.cycle()) == {}
    reason = cluster.cache.jobs["default/x"].reason
    assert reason is not None
    assert reason.nodes == (("node(s) in node groups that are not the queue's", 1),)
    cluster.add(with_groups(queue("q"), "one"))
    assert bindings(cluster.cycle()) == {"x-w-0": "a"}


@pytest.mark.parametrize(("inherits", "expected"), [(True, {"x-w-0": "a"}), (False, {})])
def test_with_the_hierarchy_a_queue_inherits_from_the_nearest_ancestor(
    inherits: bool, expected: dict[str, str]
) -> None:
    cluster = Cluster.of(grouped("a", "one"), grouped("b", "two"), configuration=conf(enableHierarchy=inherits))
    cluster.add(with_groups(queue("top"), "two"), replace(with_groups(queue("mid"), "one"), parent="top"))
    cluster.add(replace(queue("leaf"), parent="mid"), gang("x", 1, queue="leaf"))
    assert bindings(cluster.cycle()) == expected


def test_queues_in_a_circle_inherit_nothing() -> None:
    cluster = Cluster.of(grouped("a", "one"), configuration=conf(enableHierarchy=True))
    cluster.add(replace(queue("p"), parent="q"), replace(queue("q"), parent="p"), gang("x", 1, queue="p"))
    assert bindings(cluster.cycle()) == {}


def test_room_for_a_companion_is_held_on_the_queues_nodes() -> None:
    cluster = Cluster.of(grouped("a", "one"), grouped("b", "two"), configuration=conf())
    cluster.add(with_groups(queue("q2"), "two"), gang("x", 1, queue="q2", companions=[companion()]))
    outcome = cluster.cycle()
    assert bindings(outcome) == {"x-w-0": "b"}
    assert outcome.pod_groups["default/x"].companions == {"submittergroup": "b"}


def test_a_configuration_without_it_lets_everybody_everywhere() -> None:
    cluster = Cluster.of(grouped("a", "one"), with_groups(queue("q"), "two"), gang("x", 1, queue="q"))
    cluster.configuration = conf()
    assert bindings(cluster.cycle()) == {}
    cluster.configuration = configuration("enqueue, allocate", ["gang"], ["predicates"])
    assert bindings(cluster.cycle()) == {"x-w-0": "a"}
