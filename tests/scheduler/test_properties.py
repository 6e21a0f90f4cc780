"""P1 to P4 over random clusters, configurations and histories."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.scheduler.cache import SchedulerCache
from muster.scheduler.conf import SchedulerConfiguration
from muster.scheduler.cycle import _remember
from muster.scheduler.outcome import ROLLBACK, Outcome
from muster.scheduler.queue import limits
from muster.scheduler.repair import is_broken
from muster.scheduler.resources import total
from muster.scheduler.session import Session
from muster.scheduler.specs import Phase, TaskStatus
from muster.testing import Cluster
from tests.scheduler.audit import all_tasks, audit, snapshot
from tests.scheduler.audit_evictions import audited_evictions
from tests.scheduler.plain_predicates import Placed, objection
from tests.scheduler.worlds import STEPS, History, Step, World, crowded_worlds, worlds

PROFILE = settings(max_examples=60)


def assert_gangs_are_whole(cache: SchedulerCache, outcome: Outcome) -> None:
    """P1: whoever got a binding has all members of its minimum, each role's, and room for its companions."""
    for key in {binding.job for binding in outcome.bindings}:
        job = cache.jobs[key]
        if job.spec is None:
            continue
        has_node = [
            task
            for task in job.tasks.values()
            if task.role != "submittergroup" and (task.status.placed or task.status is TaskStatus.SUCCEEDED)
        ]
        assert len(has_node) >= job.min_member, key
        minimums = job.spec.min_task_member
        if sum(minimums.values()) <= job.min_member:
            for role, least in minimums.items():
                assert sum(task.role == role for task in has_node) >= least, key
        if job.min_member and not job.count(TaskStatus.SUCCEEDED):
            first = len([b for b in outcome.bindings if b.job == key]) == len(has_node)
            assert not first or all(task.node is not None for task in job.placeholders.values()), key


def assert_nothing_is_overcommitted(
    cache: SchedulerCache, outcome: Outcome, configuration: SchedulerConfiguration
) -> None:
    """P2: a node or queue that got something, on whatever level of the tree, has room for all that is on it."""
    tasks = all_tasks(cache)
    for name in {binding.node for binding in outcome.bindings}:
        node = cache.nodes[name]
        used = total(task.request for task in tasks if task.node == name and task.status.holds)
        added = total(cache.tasks[each.task_uid].request for each in outcome.bindings if each.node == name)
        for dimension in added.dimensions():
            # What a pod of ours does not ask for it can't exceed, whatever others have done there.
            assert not added.get(dimension) or used.get(dimension) <= node.allocatable.get(dimension), name
    options = [option for tier in configuration.tiers for option in tier if option.name == "capacity"]
    tree = any(option.flags.get("enableHierarchy") for option in options)
    for queue in cache.queues.values():
        # In a hierarchy a cap holds for all queues below, too.
        within = [each for each in cache.queues.values() if each is queue or (tree and queue in each.above)]
        held = total(
            task.request
            for task in tasks
            if task.job is not None
            and task.job.queue in within
            and task.node is not None
            and (task.status.charged or task.status is TaskStatus.RELEASING)
        )
        asked = [binding.task_uid for binding in outcome.bindings if cache.jobs[binding.job].queue in within]
        wanted = total(cache.tasks[uid].request for uid in asked)
        for dimension, limit in limits(queue.capability) if queue.capability else []:
            assert not wanted.get(dimension) or held.get(dimension) <= limit, (queue.name, dimension)
    for binding in outcome.bindings:
        assert cache.jobs[binding.job].queue.obstacle is None, binding


def assert_predicates_hold(cache: SchedulerCache, outcome: Outcome) -> None:
    """Each binding, one after the other, is one that Kubernetes' own rules allow, looked at without any count."""
    bound = {binding.task_uid for binding in outcome.bindings}
    nodes = {name: node.spec for name, node in cache.nodes.items() if node.spec is not None}
    placed = [
        Placed(task.spec, nodes[task.node], leaving=task.status is TaskStatus.RELEASING)
        for task in all_tasks(cache)
        if task.node in nodes and not task.status.finished and task.uid not in bound
    ]
    for binding in outcome.bindings:
        pod = cache.tasks[binding.task_uid].spec
        assert objection(pod, nodes[binding.node], placed, nodes.values()) is None, binding
        placed.append(Placed(pod, nodes[binding.node]))


def assert_promises(cluster: Cluster, outcome: Outcome) -> None:
    assert_gangs_are_whole(cluster.cache, outcome)
    assert_nothing_is_overcommitted(cluster.cache, outcome, cluster.configuration)
    if any(option.name == "predicates" for tier in cluster.configuration.tiers for option in tier):
        assert_predicates_hold(cluster.cache, outcome)
    assert all(task.status not in (TaskStatus.ALLOCATED, TaskStatus.PIPELINED) for task in all_tasks(cluster.cache))
    audit(cluster.cache)


@PROFILE
@given(worlds() | crowded_worlds(), st.lists(STEPS, max_size=12))
def test_gangs_stay_whole_and_nothing_is_overcommitted_whatever_happens(world: World, steps: list[Step]) -> None:
    history = History(world.cluster())
    assert_promises(history.cluster, history.cluster.cycle())
    for step in steps:
        assert_promises(history.cluster, history.play(step))


@PROFILE
@given(worlds() | crowded_worlds(), st.lists(STEPS, max_size=8), st.randoms(use_true_random=False))
def test_a_decision_does_not_depend_on_the_order_of_events(
    world: World, steps: list[Step], shuffler: random.Random
) -> None:
    order = list(range(len(world.specs)))
    shuffler.shuffle(order)
    one, other = History(world.cluster()), History(world.cluster(order))
    assert one.cluster.cycle() == other.cluster.cycle()
    for step in steps:
        assert one.play(step) == other.play(step)


@PROFILE
@given(worlds(), st.data())
def test_a_discarded_statement_restores_every_account(world: World, data: st.DataObject) -> None:
    cluster = world.cluster()
    cluster.cycle()
    cache = cluster.cache
    before = snapshot(cache)
    session = Session(cache, _remember(cache, world.configuration).framework, world.configuration, cluster.now)
    statements = [session.statement() for _ in range(2)]
    nodes = [node for _, node in sorted(cache.nodes.items())]
    current = 0
    for _ in range(data.draw(st.integers(0, 6))):
        # A Statement is not touched any more once a later one has begun: only then can they be undone newest first.
        current = max(current, data.draw(st.integers(0, len(statements) - 1)))
        statement = statements[current]
        task = data.draw(st.sampled_from(sorted(all_tasks(cache), key=lambda task: task.uid)))
        if task.status is TaskStatus.PENDING and task.job is not None:
            verb = data.draw(st.sampled_from((statement.allocate, statement.pipeline)))
            verb(task, data.draw(st.sampled_from(nodes)))
        elif task.status.placed:
            statement.evict(task, "test")
    audit(cache)
    for statement in reversed(statements):
        statement.discard()
    assert snapshot(cache) == before
    audit(cache)


@PROFILE
@given(worlds() | crowded_worlds(), st.lists(STEPS, max_size=10))
def test_a_cycle_that_decides_nothing_leaves_the_model_as_it_was(world: World, steps: list[Step]) -> None:
    history = History(world.cluster())
    history.cluster.cycle()
    for step in steps:
        history.play(step)
    settle(history)
    before = snapshot(history.cluster.cache)
    outcome = history.cluster.cycle()
    assert outcome == Outcome(pipelined=outcome.pipelined, wake_at=outcome.wake_at)
    assert snapshot(history.cluster.cache) == before


@PROFILE
@given(worlds() | crowded_worlds(), st.lists(STEPS, max_size=10))
def test_no_parked_gang_could_be_placed(world: World, steps: list[Step]) -> None:
    history = History(world.cluster())
    history.cluster.cycle()
    for step in steps:
        history.play(step)
    settle(history)
    history.cluster.cache.relief.everything = True
    for job in history.cluster.cache.jobs.values():
        history.cluster.cache.touch(job)
    outcome = history.cluster.cycle()
    assert not outcome.bindings


@PROFILE
@given(worlds() | crowded_worlds(), st.lists(STEPS, max_size=10))
def test_parking_changes_no_decision(world: World, steps: list[Step]) -> None:
    """A scheduler that looks at every gang in every cycle binds and evicts the same."""
    parked, eager = History(world.cluster()), History(world.cluster())
    assert decisions(parked, parked.cluster.cycle()) == decisions(eager, eager.cluster.cycle(), eager=True)
    for step in steps:
        touch_all(eager)
        assert decisions(parked, parked.play(step)) == decisions(eager, eager.play(step), eager=True)


def decisions(history: History, outcome: Outcome, *, eager: bool = False) -> tuple[object, ...]:
    """What is decided until no further cycle is asked for at once: who is woken may be looked at in the next one."""
    bindings, evictions = set(outcome.bindings), set(outcome.evictions)
    for _ in range(5):
        if outcome.wake_at != history.cluster.now:
            break
        if eager:
            touch_all(history)
        outcome = history.cluster.cycle()
        bindings.update(outcome.bindings)
        evictions.update(outcome.evictions)
    return bindings, evictions, set(outcome.pipelined)


def touch_all(history: History) -> None:
    for job in history.cluster.cache.jobs.values():
        history.cluster.cache.touch(job)


@PROFILE
@given(worlds() | crowded_worlds(), st.lists(STEPS, max_size=10))
def test_no_fragment_outlives_the_time_for_repair_and_no_reservation_the_time_for_admission(
    world: World, steps: list[Step]
) -> None:
    """P1 and P7: whatever happened, when it is quiet for long enough nothing is held in vain."""
    history = History(world.cluster())
    history.cluster.cycle()
    for step in steps:
        history.play(step)
    settle(history)
    for _ in range(len(history.cluster.cache.jobs) + 1):  # each that gives up lets the next one be admitted
        history.cluster.now += 301
        settle(history)
    for job in history.cluster.cache.jobs.values():
        assert not is_broken(job), job.key
        if not job.is_ready() and job.phase is Phase.INQUEUE:
            assert job.contribution.inqueue.is_empty(), job.key
            assert job.contribution.promised.is_empty(), job.key
    audit(history.cluster.cache)


@PROFILE
@given(crowded_worlds(), st.lists(STEPS, max_size=12))
def test_nobody_is_evicted_unless_who_gains_by_it_ends_with_all_that_it_needs(world: World, steps: list[Step]) -> None:
    """volcano#5026, volcano#5010: an eviction that helps nobody is never sent.

    A victim need not be where the gang goes: it may hold the quota that the gang lacks. So what each is needed for is
    looked up when the eviction is decided (`audited_evictions`).
    """
    history = History(world.cluster())
    with audited_evictions():
        assert_evictions_help(history.cluster, history.cluster.cycle())
        for step in steps:
            assert_evictions_help(history.cluster, history.play(step))


def assert_evictions_help(cluster: Cluster, outcome: Outcome) -> None:
    for eviction in outcome.evictions:
        if eviction.reason == ROLLBACK:
            continue
        job = cluster.cache.jobs[eviction.by]
        promised = {each.task_uid: each.node for each in outcome.pipelined if each.job == eviction.by}
        assert job.ready + len(promised) >= job.min_member, eviction
        kept = {task.uid: task.nominated for task in job.tasks.values() if task.nominated is not None}
        assert kept, eviction
        assert kept.items() <= promised.items(), "the room is kept for who gains by it"
        assert job.is_ready() or all(task.node or task.nominated for task in job.placeholders.values()), eviction


@PROFILE
@given(crowded_worlds(), st.lists(STEPS, max_size=10))
def test_an_outcome_that_is_applied_leaves_nothing_to_decide(world: World, steps: list[Step]) -> None:
    """A fixed point, while the victims are leaving and when they are gone."""
    history = History(world.cluster())
    history.cluster.cycle()
    for step in steps:
        history.play(step)
    settle(history, victims_leave=False)
    assert_nothing_is_decided(history.cluster)
    settle(history)
    assert_nothing_is_decided(history.cluster)


def assert_nothing_is_decided(cluster: Cluster) -> None:
    for job in cluster.cache.jobs.values():
        cluster.cache.touch(job)
    outcome = cluster.cycle()
    assert not outcome.bindings
    assert not outcome.evictions


@PROFILE
@given(crowded_worlds(), st.lists(STEPS, max_size=6))
def test_evictions_come_to_an_end_though_every_victim_comes_back(world: World, steps: list[Step]) -> None:
    """volcano#377, volcano#4947: nobody wins its room back from who evicted it."""
    history = History(world.cluster())
    history.cluster.cycle()
    for step in steps:
        history.play(step)
    for _ in range(60):
        evicted = [task for task in history.cluster.cache.tasks.values() if task.evicted is not None]
        history.confirm()
        for task in evicted:
            history.reborn += 1
            name = f"reborn-{history.reborn}"
            again = replace(task.spec, uid=f"uid-{name}", name=name, status=TaskStatus.PENDING, node=None)
            history.cluster.add(again)
        outcome = history.cluster.cycle()
        if not outcome.bindings and not outcome.evictions and outcome.wake_at != history.cluster.now:
            return
    raise AssertionError("the scheduler evicts for ever")


def settle(history: History, *, victims_leave: bool = True) -> None:
    """Confirm what was decided until nothing is decided any more and no cycle is due."""
    for _ in range(30):
        history.confirm(victims_leave=victims_leave)
        outcome = history.cluster.cycle()
        if not outcome.bindings and not outcome.evictions and outcome.wake_at != history.cluster.now:
            return
    raise AssertionError("the scheduler does not come to rest")
