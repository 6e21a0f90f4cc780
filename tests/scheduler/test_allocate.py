"""Who gets nodes, in which order, and who waits."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from muster.scheduler.outcome import Outcome
from muster.scheduler.reasons import Code
from muster.scheduler.resources import Resources
from muster.scheduler.specs import Phase, PriorityClassSpec, TaskStatus
from muster.testing import (
    Cluster,
    Spec,
    bindings,
    companion,
    configuration,
    dated,
    gang,
    node,
    nodes,
    pod,
    pod_group,
    pods,
    queue,
    resources,
)

BASE = configuration("allocate", ["priority", "gang"], ["predicates", "nodeorder"])
HIGH, LOW = PriorityClassSpec("high", 1000), PriorityClassSpec("low", 10)


def members(outcome: Outcome) -> dict[str, int]:
    """How many pods each gang got."""
    count: dict[str, int] = {}
    for binding in outcome.bindings:
        name = binding.job.partition("/")[2]
        count[name] = count.get(name, 0) + 1
    return count


@pytest.mark.parametrize(
    ("specs", "placed"),
    [
        pytest.param([*nodes("n", 3, cpu=2), *gang("g", 3, 2)], {"g": 3}, id="a gang that just fits"),
        pytest.param([*nodes("n", 2, cpu=2), *gang("g", 3, 2)], {}, id="one member too many"),
        pytest.param([*nodes("n", 3, cpu=2), *gang("a", 2, 2), *gang("b", 2, 2)], {"a": 2}, id="two, one fits"),
        pytest.param([*nodes("n", 3, cpu=2), *gang("a", 4, 2), *gang("b", 2, 2)], {"b": 2}, id="the later one fits"),
        pytest.param([*nodes("n", 2, cpu=2), *gang("g", 3, 2, min_member=1)], {"g": 2}, id="elastic, as many as fit"),
        pytest.param([*nodes("n", 1, cpu=2), *gang("g", 2, 2, min_member=0)], {"g": 1}, id="without a minimum"),
        pytest.param([*nodes("n", 1, cpu=9, pods=2), *gang("g", 3)], {}, id="the number of pods is a limit"),
        pytest.param([*nodes("n", 1, cpu=9, pods=3), *gang("g", 3)], {"g": 3}, id="and just suffices"),
        pytest.param([*nodes("n", 2, gpu=1), *gang("g", 2, gpu=1)], {"g": 2}, id="scalars"),
        pytest.param([*nodes("n", 1, gpu=1), *gang("g", 2, gpu=1)], {}, id="too few scalars"),
        pytest.param(
            [
                LOW,
                HIGH,
                *nodes("n", 2),
                *gang("l", 2, 4, priority_class="low"),
                *gang("h", 2, 4, priority_class="high"),
            ],
            {"h": 2},
            id="the higher priority goes first",
        ),
        pytest.param(
            [
                LOW,
                HIGH,
                *nodes("n", 2),
                *gang("h", 3, 4, priority_class="high"),
                *gang("l", 2, 4, priority_class="low"),
            ],
            {"l": 2},
            id="a high gang that does not fit does not hold a low one that does",
        ),
        pytest.param(
            [
                *nodes("n", 1),
                pod_group("g", 2, roles={"a": 1, "b": 1}),
                *pods("g", 2, role="a"),
                pod("b", "g", role="b"),
            ],
            {"g": 3},
            id="every role has its minimum",
        ),
        pytest.param(
            [*nodes("n", 1), pod_group("g", 2, roles={"a": 1, "b": 1}), *pods("g", 3, role="a")],
            {},
            id="a role is short",
        ),
        pytest.param(
            [*nodes("n", 1), pod_group("g", 2, roles={"a": 2, "b": 2}), *pods("g", 2, role="a")],
            {"g": 2},
            id="roles that ask for more than the gang are passed over",
        ),
        pytest.param(
            [*nodes("n", 1, cpu=2), pod_group("g", 2), *pods("g", 1), pod("held", "g", gated=True)],
            {},
            id="a pod held by a foreign gate is not placed and does not count",
        ),
        pytest.param(
            [*nodes("n", 1), pod_group("g", 1), *pods("g", 1), pod("held", "g", gated=True)],
            {"g": 1},
            id="an extra pod held by a gate holds up nobody",
        ),
    ],
)
def test_gangs_are_placed_whole_or_not_at_all(specs: list[Spec], placed: dict[str, int]) -> None:
    cluster = Cluster.of(specs, configuration=BASE)
    assert members(cluster.cycle()) == placed
    assert not cluster.cycle().bindings


def test_a_gang_is_placed_whole_also_without_the_gang_plugin() -> None:
    bare = configuration("allocate", ["predicates"])
    assert not Cluster.of(nodes("n", 2, cpu=2), gang("g", 3, 2), configuration=bare).cycle().bindings
    assert len(Cluster.of(nodes("n", 3, cpu=2), gang("g", 3, 2), configuration=bare).cycle().bindings) == 3


def test_with_the_default_plugins_the_older_of_two_equal_gangs_goes_first() -> None:
    cluster = Cluster.of(nodes("n", 3, cpu=2), gang("b", 3, 2), gang("a", 3, 2))
    assert members(cluster.cycle()) == {"b": 3}


def test_of_equal_age_the_lower_uid_goes_first_whatever_came_first() -> None:
    one, other = gang("a", 1, 4), gang("b", 1, 4)
    same = [dated(spec, 7.0) for spec in (*other, *one)]
    assert members(Cluster.of(nodes("n", 1), same, configuration=BASE).cycle()) == {"a": 1}


def test_inside_a_gang_priority_then_the_number_in_the_name_decide() -> None:
    last = pod("g-w-9", "g", priority=5)
    cluster = Cluster.of(nodes("n", 1, cpu=2), pod_group("g", 1), pods("g", 3)[::-1], last, configuration=BASE)
    assert set(bindings(cluster.cycle())) == {"g-w-9", "g-w-0"}


@pytest.mark.parametrize(
    ("names", "first"),
    [
        pytest.param(["head", "g-w-1", "g-w-0"], ["head", "g-w-0"], id="the older goes before the numbered"),
        pytest.param(["g-w-1", "g-w-0", "head"], ["g-w-0", "g-w-1"], id="the younger goes after them"),
        pytest.param(["g-w-3", "head", "g-w-4"], ["g-w-3", "head"], id="in between"),
        pytest.param(["g-b", "g-a", "g-w"], ["g-a", "g-b"], id="without any number by age alone"),
    ],
)
def test_a_member_without_a_number_in_its_name_takes_the_place_of_its_age(names: list[str], first: list[str]) -> None:
    members = [pod(name, "g") for name in names]
    assert set(bindings(Cluster.of(node("n", cpu=2), pod_group("g", 1), members).cycle())) == set(first)


def test_members_above_the_minimum_take_turns_with_other_gangs() -> None:
    cluster = Cluster.of(nodes("n", 1, cpu=4), gang("a", 4, min_member=1), gang("b", 4, min_member=1))
    assert members(cluster.cycle()) == {"a": 2, "b": 2}


def test_small_shapes_complete_a_gang_whose_large_member_finds_no_node() -> None:
    big = pod("big", "g", 8)
    cluster = Cluster.of(nodes("n", 1), pod_group("g", 2), big, pods("g", 2), configuration=BASE)
    assert set(bindings(cluster.cycle())) == {"g-w-0", "g-w-1"}


@pytest.mark.parametrize("capability", [None, resources(4)], ids=["nodes", "quota"])
def test_a_large_member_that_leaves_no_room_for_the_minimum_stands_back(capability: Resources | None) -> None:
    """Volcano takes the large one, fails, and may start the others in the next cycle if the room has shrunk by then."""
    size = 4 if capability is None else 9
    cluster = Cluster.of(
        node("n", cpu=size),
        queue("q", capability=capability),
        pod_group("g", 2, queue="q"),
        pod("g-w-0", "g", cpu=4, priority=9),
        pods("g", 3, cpu=1, first=1),
        configuration=BASE,
    )
    assert set(bindings(cluster.cycle())) == {"g-w-1", "g-w-2", "g-w-3"}


def test_a_gang_waits_for_leaving_pods_without_binding_any_member() -> None:
    leaving = pod("old", node="n-1", cpu=4, status=TaskStatus.RELEASING, ours=False)
    cluster = Cluster.of(nodes("n", 2), leaving, gang("g", 2, 3), gang("late", 1, 3), configuration=BASE)
    outcome = cluster.cycle()
    assert not outcome.bindings, "neither the gang's first member nor the latecomer that would take its room"
    assert {each.node for each in outcome.pipelined} == {"n-1"}
    reason = cluster.cache.jobs["default/g"].reason
    assert reason is not None
    assert reason.code is Code.WAITING_FOR_RELEASE
    assert cluster.cache.nodes["n-0"].idle.milli_cpu == 4000, "promises end with the cycle"
    cluster.delete("old")
    assert members(cluster.cycle()) == {"g": 2}


def test_the_room_of_a_waiting_gang_that_goes_away_is_free_for_others() -> None:
    leaving = pod("old", node="n-1", cpu=4, status=TaskStatus.RELEASING, ours=False)
    cluster = Cluster.of(nodes("n", 2), leaving, gang("g", 2, 3), gang("late", 1, 3), configuration=BASE)
    cluster.cycle()
    cluster.cache.remove_pod_group("default/g")
    cluster.delete("g-w-0", "g-w-1")
    assert members(cluster.cycle()) == {"late": 1}


def test_nothing_fits_on_a_node_that_others_have_overcommitted() -> None:
    theirs = [pod(f"x{index}", node="n-0", cpu=3, ours=False) for index in range(2)]
    cluster = Cluster.of(nodes("n", 1), theirs, gang("g", 1, 0, memory=1), configuration=BASE)
    assert cluster.cache.nodes["n-0"].idle.milli_cpu == -2000
    assert not cluster.cycle().bindings


@pytest.mark.parametrize(
    ("capability", "placed"),
    [(resources(2), 2), (resources(1.5), 1), (resources(9, pods=1), 1), (resources(0, 3), 4), (resources(gpu=1), 4)],
)
def test_a_queue_never_uses_more_than_its_capability_whatever_plugins_run(capability: Resources, placed: int) -> None:
    cluster = Cluster.of(
        nodes("n", 1, cpu=8),
        queue("q", capability=capability),
        gang("g", 4, 1, 0.5, min_member=1, queue="q"),
        configuration=BASE,
    )
    assert len(cluster.cycle().bindings) == placed


def test_leaving_pods_count_against_the_capability_until_they_are_gone() -> None:
    leaving = pod("old", "g", node="n-0", status=TaskStatus.RELEASING)
    cluster = Cluster.of(
        nodes("n", 2), queue("q", capability=resources(1)), pod_group("g", 1, queue="q"), leaving, pods("g", 1)
    )
    cluster.configuration = BASE
    outcome = cluster.cycle()
    assert not outcome.bindings
    assert {each.pod for each in outcome.pipelined} == {"g-w-0"}, "it waits for the quota that they free"
    cluster.delete("old")
    assert members(cluster.cycle()) == {"g": 1}


def test_without_enqueue_a_pending_gang_is_admitted_on_the_way() -> None:
    cluster = Cluster.of(nodes("n", 1), gang("g", 1), configuration=BASE)
    cluster.cycle()
    assert cluster.phase("g") is Phase.INQUEUE


def queue_turns(specs: Iterable[Spec]) -> list[str]:
    proportional = configuration("allocate", ["gang"], ["predicates", "proportion"])
    outcome = Cluster.of(specs, configuration=proportional).cycle()
    return [binding.job.partition("/")[2] for binding in outcome.bindings]


def test_the_queue_of_higher_priority_goes_first() -> None:
    specs = [
        *nodes("n", 2, cpu=1),
        queue("a"),
        queue("b", priority=1),
        *gang("x", 1, queue="a"),
        *gang("y", 1, queue="b"),
    ]
    assert queue_turns(specs) == ["y", "x"]


def test_queues_take_turns_by_share() -> None:
    specs = [
        node("n", cpu=4),
        queue("a"),
        queue("b"),
        *[spec for index in range(3) for spec in gang(f"a{index}", 1, queue="a")],
        *[spec for index in range(3) for spec in gang(f"b{index}", 1, queue="b")],
    ]
    assert queue_turns(specs) == ["a0", "b0", "a1", "b1"]


@pytest.mark.parametrize(
    ("specs", "where"),
    [
        pytest.param(
            [node("a", cpu=4), node("b", cpu=2), pod_group("g", 2), pod("head", "g", 2), pod("worker", "g", 4)],
            {"head": "b", "worker": "a"},
            id="the head would spread to the only node that holds the worker",
        ),
        pytest.param(
            [*nodes("n", 2), pod_group("g", 4), pod("a", "g", 1), pod("b", "g", 1), pod("c", "g", 3), pod("d", "g", 3)],
            {"a": "n-0", "b": "n-1", "c": "n-0", "d": "n-1"},
            id="two small and two large fill two nodes",
        ),
        pytest.param(
            [node("a", cpu=2), node("b", cpu=2), *gang("g", 2, 1, companions=[companion(cpu=2)])],
            {"g-w-0": "b", "g-w-1": "b"},
            id="the submitter too",
        ),
    ],
)
def test_a_gang_that_just_fits_is_placed(specs: list[Spec], where: dict[str, str]) -> None:
    outcome = Cluster.of(specs, configuration=BASE).cycle()
    assert bindings(outcome).keys() == where.keys()
    assert sorted(bindings(outcome).values()) == sorted(where.values())
