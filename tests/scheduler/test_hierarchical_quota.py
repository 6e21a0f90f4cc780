"""No queue of a tree, on whatever level, is ever given more than what those above and beside it leave to it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.scheduler.cache import SchedulerCache
from muster.scheduler.outcome import Outcome
from muster.scheduler.queue import ROOT, QueueInfo
from muster.testing import Cluster, Spec, bindings, configuration, gang, node, nodes, plugin, queue, resources
from tests.scheduler.audit import all_tasks, requests
from tests.scheduler.worlds import STEPS, History, Step, World, worlds

TREE = plugin("capacity", enableHierarchy=True)
TREES = (
    configuration("enqueue, allocate, backfill", ["priority", "gang"], ["predicates", TREE]),
    configuration("enqueue, allocate, reclaim", ["priority", "gang"], ["predicates", TREE]),
    configuration("allocate, gangreclaim, preempt", ["priority"], ["predicates", TREE, "nodeorder"]),
    configuration("reclaim, allocate", [plugin("capacity", {"ancestorReclaimLevel": 2}, enableHierarchy=True)]),
)
PROFILE = settings(max_examples=60)
DIMENSIONS = ("cpu", "memory")


def left_to(level: QueueInfo, dimension: str, cache: SchedulerCache) -> int | None:
    """What the queue may use at most, None without a limit: worked out from the specs alone, from the root down."""
    assert level.spec is not None
    own = level.spec.capability.get(dimension) or None
    if level.name == ROOT:
        return own
    above = left_to(level.above[0], dimension, cache)
    if above is None:
        return own
    beside = [each for each in cache.queues.values() if each.above[:1] == level.above[:1] and each is not level]
    above = max(0, above - sum(each.guarantee.get(dimension) for each in (level, *beside)))
    above += level.guarantee.get(dimension)
    return above if own is None else min(own, above)


def assert_no_level_is_exceeded(cluster: Cluster, outcome: Outcome) -> None:
    cache = cluster.cache
    for leaf in {cache.jobs[each.job].queue.name: cache.jobs[each.job].queue for each in outcome.bindings}.values():
        for level in (leaf, *leaf.above):
            below = [each for each in cache.queues.values() if each is level or level in each.above]
            given = [cache.tasks[each.task_uid] for each in outcome.bindings if cache.jobs[each.job].queue in below]
            there = (task for task in all_tasks(cache) if task.status.charged and task.job is not None)
            used = requests(task for task in there if task.job is not None and task.job.queue in below)
            for dimension in DIMENSIONS:
                most = left_to(level, dimension, cache)
                asked = any(task.request.get(dimension) for task in given)
                assert most is None or not asked or used.get(dimension) <= most, (level.name, dimension)


@st.composite
def families(draw: st.DrawFn) -> World:
    """A full tree, its leaves crowded with gangs, on a cluster with room enough."""
    parents = {"a": "", "b": "", "a1": "a", "a2": "a", "b1": "b", "b2": "b", "a11": "a1", "a12": "a1"}
    amount = st.none() | st.builds(resources, st.integers(1, 6))
    little = st.none() | st.builds(resources, st.integers(1, 2))
    specs: list[Spec] = [node("n", cpu=24)]
    specs += [queue(name, 1, draw(amount), draw(little), parent=parent) for name, parent in parents.items()]
    specs.append(queue(ROOT, capability=draw(amount)))
    for index in range(draw(st.integers(2, 8))):
        leaf = draw(st.sampled_from(("a11", "a12", "a2", "b1", "b2")))
        least = draw(st.integers(0, 2))
        specs += gang(f"g{index}", least + draw(st.integers(1, 3)), min_member=least, queue=leaf)
    return World(specs, draw(st.sampled_from(TREES)))


@PROFILE
@given(worlds(TREES) | families(), st.lists(STEPS, max_size=12))
def test_no_level_of_the_tree_is_given_more_than_it_may_have(world: World, steps: list[Step]) -> None:
    history = History(world.cluster())
    assert_no_level_is_exceeded(history.cluster, history.cluster.cycle())
    for step in steps:
        assert_no_level_is_exceeded(history.cluster, history.play(step))


@pytest.mark.parametrize(
    ("queues", "placed"),
    [
        pytest.param([queue("q", parent="p"), queue("p", capability=resources(3))], 3, id="the parent's cap"),
        pytest.param(
            [queue("q", parent="p"), queue("p", parent="g"), queue("g", capability=resources(2))],
            2,
            id="the grandparent's cap",
        ),
        pytest.param(
            [
                queue("q", parent="p"),
                queue("s", guarantee=resources(2), parent="p"),
                queue("p", capability=resources(5)),
            ],
            3,
            id="the sister's guarantee",
        ),
        pytest.param(
            [
                queue("q", parent="p"),
                queue("p", parent="g"),
                queue("aunt", guarantee=resources(4), parent="g"),
                queue("g", capability=resources(6)),
            ],
            2,
            id="the guarantee of the parent's sister",
        ),
        pytest.param([queue("q"), queue("root", capability=resources(1))], 1, id="the root's cap"),
    ],
)
def test_every_level_above_binds(queues: list[Spec], placed: int) -> None:
    cluster = Cluster.of(
        nodes("n", 2, cpu=4),
        queues,
        gang("g", 8, min_member=1, queue="q"),
        configuration=TREES[0],
    )
    assert len(bindings(cluster.cycle())) == placed


def test_members_of_two_branches_count_together() -> None:
    cluster = Cluster.of(
        node("n", cpu=8),
        queue("p", capability=resources(3)),
        queue("a", parent="p"),
        queue("b", parent="p"),
        gang("x", 4, min_member=1, queue="a"),
        gang("y", 4, min_member=1, queue="b"),
        configuration=TREES[0],
    )
    assert len(bindings(cluster.cycle())) == 3
