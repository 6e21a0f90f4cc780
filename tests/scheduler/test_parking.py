"""A cycle costs what has changed: parked gangs are not looked at, and what could help one wakes it."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import replace

import pytest

from muster.scheduler.constraints import PodConstraints
from muster.scheduler.job import JobInfo
from muster.scheduler.parking import Group
from muster.scheduler.placement import ShapeView
from muster.scheduler.specs import PriorityClassSpec, QueueState, TaskStatus
from muster.scheduler.task import Shape
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
ZONE_A = PodConstraints(node_selector=(("zone", "a"),))


def parked(cluster: Cluster) -> set[str]:
    return {key.partition("/")[2] for key in cluster.cache.lot.jobs}


def test_a_refused_gang_is_parked_and_not_looked_at_again() -> None:
    cluster = Cluster.of(nodes("n", 1, cpu=1), gang("a", 2), gang("b", 2), configuration=BASE)
    cluster.cycle()
    assert parked(cluster) == {"a", "b"}
    assert not cluster.cache.waiting
    cluster.add(gang("c", 1))
    assert bindings(cluster.cycle()) == {"c-w-0": "n-0"}
    assert parked(cluster) == {"a", "b"}


def test_a_gang_that_was_deleted_and_made_again_is_parked_with_its_like_again() -> None:
    """Both name PodGroups that do not exist: one group, and an order in which the old and the new one are equal."""
    cluster = Cluster.of(nodes("n", 1))
    cluster.add(*(dated(pod(f"{name}-0", name), 5.0) for name in ("a", "b")))
    cluster.cycle()
    assert group_of(cluster, "a") is group_of(cluster, "b")
    for _ in range(3):
        cluster.delete("a-0")
        cluster.add(dated(pod("a-0", "a"), 5.0))
        cluster.cycle()
        assert parked(cluster) == {"a", "b"}
    cluster.add(pod_group("a", 1))
    assert bindings(cluster.cycle()) == {"a-0": "n-0"}


def group_of(cluster: Cluster, name: str) -> Group:
    group = cluster.cache.jobs[f"default/{name}"].group
    assert group is not None
    return group


def test_what_is_kept_of_parked_gangs_does_not_grow_with_events() -> None:
    cluster = Cluster.of(nodes("n", 1, cpu=1), gang("a", 2), gang("b", 2), configuration=BASE)
    cluster.cycle()
    for _ in range(100):
        cluster.cache.touch(cluster.cache.jobs["default/b"])
        cluster.cycle()
    assert parked(cluster) == {"a", "b"}
    assert len(group_of(cluster, "b")._heap) <= 20


def test_a_group_that_shrinks_gives_its_memory_back() -> None:
    cluster = Cluster.of(nodes("n", 1, cpu=1), *[gang(f"g{index:02}", 2) for index in range(60)], configuration=BASE)
    cluster.cycle()
    for index in range(2, 60):
        cluster.cache.remove_pod_group(f"default/g{index:02}")
        cluster.delete(f"g{index:02}-w-0", f"g{index:02}-w-1")
    cluster.cycle()
    assert parked(cluster) == {"g00", "g01"}
    assert len(group_of(cluster, "g01")._heap) <= 20


def test_a_gang_that_is_gone_is_not_kept_for_its_place_in_the_lot() -> None:
    names = ("first", "second", "ephemeral")
    cluster = Cluster.of(nodes("n", 1, cpu=1), *(gang(name, 2) for name in names), configuration=BASE)
    cluster.cycle()
    cluster.cache.remove_pod_group("default/ephemeral")
    cluster.delete("ephemeral-w-0", "ephemeral-w-1")
    cluster.cycle()
    gc.collect()
    assert not [each for each in gc.get_objects() if isinstance(each, JobInfo) and each.key == "default/ephemeral"]


def waiting() -> Cluster:
    """One gang waits for room for a pod of 2 CPU in zone a, on a node where others use 3 of 4."""
    cluster = Cluster.of(
        node("n", labels={"zone": "a"}),
        node("elsewhere", cpu=1),
        pod("small", node="n", cpu=1, ours=False),
        pod("large", node="n", cpu=2, ours=False),
        queue("q", capability=resources(8)),
        gang("g", 1, 2, queue="q", scheduling=ZONE_A),
        configuration=BASE,
    )
    cluster.cycle()
    assert parked(cluster) == {"g"}
    return cluster


@pytest.mark.parametrize(
    ("happens", "wakes"),
    [
        pytest.param(lambda c: c.delete("large"), True, id="enough is freed"),
        pytest.param(lambda c: c.change_pod("large", status=TaskStatus.SUCCEEDED), True, id="a pod finishes"),
        pytest.param(lambda c: c.change_pod("large", status=TaskStatus.RELEASING), True, id="a pod is leaving"),
        pytest.param(lambda c: c.add(node("m", labels={"zone": "a"})), True, id="a node comes"),
        pytest.param(lambda c: c.add(node("n", cpu=9, labels={"zone": "a"})), True, id="the node grows"),
        pytest.param(lambda c: c.add(node("elsewhere", cpu=9, labels={"zone": "a"})), True, id="a node is relabelled"),
        pytest.param(lambda c: c.add(pod("g-w-0", "g", 0.5)), True, id="the pod changes"),
        pytest.param(lambda c: c.add(pod_group("g", 1)), True, id="the PodGroup changes"),
        pytest.param(lambda c: c.delete("small"), True, id="just enough together with what is idle"),
        pytest.param(lambda c: c.add(node("m", cpu=1, labels={"zone": "a"})), False, id="a node too small comes"),
        pytest.param(lambda c: c.add(node("m", cpu=9)), False, id="a node elsewhere comes"),
        pytest.param(lambda c: c.add(gang("other", 1, 0.5)), False, id="another gang comes"),
        pytest.param(lambda c: c.add(pod("more", node="elsewhere", cpu=1, ours=False)), False, id="a pod is bound"),
    ],
)
def test_a_parked_gang_wakes_for_what_could_help_it(happens: Callable[[Cluster], None], wakes: bool) -> None:
    cluster = waiting()
    tried = cluster.cache.jobs["default/g"]
    happens(cluster)
    before = tried.parked
    cluster.cycle()
    assert (tried.parked is not before or before is None) is wakes


def test_a_gang_short_of_quota_wakes_when_its_queue_frees_some() -> None:
    cluster = Cluster.of(nodes("n", 2), queue("q", capability=resources(2)), configuration=BASE)
    cluster.add(gang("a", 1, queue="q"), gang("g", 2, queue="q"))
    cluster.settle(cluster.cycle())
    cluster.cycle()
    assert parked(cluster) == {"g"}
    cluster.delete("a-w-0")
    assert len(cluster.cycle().bindings) == 2


def test_a_gang_short_of_quota_wakes_when_the_cap_rises() -> None:
    cluster = Cluster.of(
        nodes("n", 2), queue("q", capability=resources(1)), gang("g", 2, queue="q"), configuration=BASE
    )
    cluster.cycle()
    cluster.add(replace(queue("q", capability=resources(2)), creation=9.0))
    assert len(cluster.cycle().bindings) == 2


def test_a_gang_that_waits_for_admission_wakes_when_the_cluster_frees_resources() -> None:
    cluster = Cluster.of(node("n", cpu=10), pod("x", node="n", cpu=10, ours=False), gang("g", 3))
    cluster.cycle()
    assert parked(cluster) == {"g"}
    cluster.delete("x")
    assert len(cluster.cycle().bindings) == 3


def test_a_gang_for_which_too_few_could_be_evicted_wakes_when_somebody_leaves() -> None:
    """What is free then is not enough for it, but it is together with what may be evicted."""
    cluster = Cluster.of(
        PriorityClassSpec("high", 10),
        node("n", cpu=4),
        pod("small", node="n", cpu=1, ours=False),
        pod("large", node="n", cpu=2, ours=False),
        [pod_group("low", 0), pod("victim", "low", node="n", cpu=1)],
        gang("g", 1, 3, priority_class="high"),
        configuration=configuration("allocate, preempt", ["priority", "gang"], ["predicates"]),
    )
    assert not cluster.cycle().evictions
    cluster.delete("large")
    assert [each.pod for each in cluster.cycle().evictions] == ["victim"]


def test_a_new_configuration_wakes_everybody() -> None:
    cluster = Cluster.of(nodes("n", 1), pod_group("g", 1), pods("g", 1, 0), configuration=BASE)
    cluster.cycle()
    cluster.configuration = configuration("allocate, backfill", ["gang"])
    assert len(cluster.cycle().bindings) == 1


def test_a_changed_priority_class_is_believed() -> None:
    cluster = Cluster.of(nodes("n", 1, cpu=1), PriorityClassSpec("p", 1), configuration=BASE)
    cluster.add(gang("old", 1, 2), gang("g", 1, 2, priority_class="p"))
    cluster.cycle()
    cluster.add(PriorityClassSpec("p", 5))
    assert cluster.cache.jobs["default/g"].priority == 5
    cluster.cache.remove_priority_class("p")
    assert cluster.cache.jobs["default/g"].priority == 0
    cluster.add(PriorityClassSpec("usual", 3, global_default=True))
    assert cluster.cache.jobs["default/old"].priority == 3


def test_gangs_of_one_shape_are_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster.of(nodes("n", 1, cpu=1), *[gang(f"g{index}", 2) for index in range(20)], configuration=BASE)
    asked: list[Shape] = []
    survey = cluster.cache.index.view

    def note(shape: Shape) -> ShapeView:
        asked.append(shape)
        return survey(shape)

    monkeypatch.setattr(cluster.cache.index, "view", note)
    cluster.cycle()
    assert len(parked(cluster)) == 20
    assert len(asked) <= 5, "two placements, one look at all nodes and one at those that they may use"


def test_an_idle_cycle_looks_at_no_gang(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster.of(nodes("n", 1, cpu=1), *[gang(f"g{index}", 2) for index in range(20)], configuration=BASE)
    cluster.cycle()
    monkeypatch.setattr(cluster.cache.index, "view", lambda shape: pytest.fail(f"looked for {shape}"))
    assert not cluster.cycle().pod_groups


def test_a_gang_kept_out_by_another_ones_held_room_is_asked_again_when_that_goes_elsewhere() -> None:
    leaving = pod("old", node="n-1", cpu=4, status=TaskStatus.RELEASING, ours=False)
    cluster = Cluster.of(nodes("n", 2), leaving, gang("big", 2, 3), gang("late", 1, 3), configuration=BASE)
    assert not cluster.cycle().bindings
    assert parked(cluster) == {"late"}
    cluster.add(nodes("m", 2, cpu=8))
    assert bindings(cluster.cycle()).keys() == {"big-w-0", "big-w-1", "late-w-0"}


def keeping(*specs: list[Spec]) -> Cluster:
    """`big` has a place on n-0 and waits for `old` to leave n-1; `late` would fit on n-0."""
    leaving = pod("old", node="n-1", cpu=4, status=TaskStatus.RELEASING, ours=False)
    cluster = Cluster.of(nodes("n", 2), leaving, gang("big", 2, 4), gang("late", 1, 3), *specs, configuration=BASE)
    assert not cluster.cycle().bindings
    assert not cluster.cycle().bindings
    return cluster


def test_room_that_is_kept_as_before_wakes_nobody() -> None:
    """While a gang waits for a pod to leave, others wait for what could help them, not for every event."""
    cluster = keeping(*(gang(f"g{number}", 1, 3 + number / 10) for number in range(5)), nodes("p", 1, cpu=1))
    jobs = cluster.cache.jobs
    before = {key: job.parked for key, job in jobs.items() if key != "default/big"}
    assert len(before) == 6
    assert all(before.values())
    cluster.add(gang("small", 1, 1))
    assert bindings(cluster.cycle()) == {"small-w-0": "p-0"}
    cluster.delete("small-w-0")
    assert not cluster.cycle().bindings
    assert not [key for key, parking in before.items() if jobs[key].parked is not parking]


def gives_up(cluster: Cluster, what: str) -> None:
    if what == "the gang goes elsewhere":
        cluster.add(nodes("m", 2))
    elif what == "the pod stays":
        cluster.change_pod("old", status=TaskStatus.RUNNING)
    elif what == "its queue is closed":
        cluster.add(queue("default", state=QueueState.CLOSED))
    elif what == "a member is gone":
        cluster.delete("big-w-1")
    else:
        cluster.cache.remove_node("n-1")


@pytest.mark.parametrize(
    ("what", "placed"),
    [
        ("the gang goes elsewhere", {"big-w-0": "m-0", "big-w-1": "m-1", "late-w-0": "n-0"}),
        ("the pod stays", {"late-w-0": "n-0"}),
        ("its queue is closed", {"late-w-0": "n-0"}),
        ("a member is gone", {"late-w-0": "n-0"}),
        ("the node is gone", {"late-w-0": "n-0"}),
    ],
)
def test_room_that_is_kept_no_more_goes_to_who_was_kept_out_first(what: str, placed: dict[str, str]) -> None:
    """In the same cycle, and before a newcomer that comes after him."""
    cluster = keeping([queue("q")], gang("after", 1, 3, queue="q"))
    spec = cluster.cache.jobs["default/late"].spec
    assert spec is not None
    cluster.cache.set_pod_group(replace(spec, queue="q"))
    assert not cluster.cycle().bindings
    cluster.add(gang("newcomer", 1, 3, queue="q"))
    gives_up(cluster, what)
    assert bindings(cluster.cycle()) == placed


def test_room_that_is_kept_for_a_submitter_wakes_nobody_until_it_goes_elsewhere() -> None:
    """The gang runs already, its submitter waits for a pod to leave."""
    cluster = Cluster.of(nodes("n", 2), gang("g", 1, 4), configuration=BASE)
    cluster.settle(cluster.cycle())
    leaving = pod("old", node="n-1", cpu=2, status=TaskStatus.RELEASING, ours=False)
    cluster.add(leaving, pod_group("g", 1, companions=[companion(cpu=3)]))
    cluster.cycle()
    cluster.add(gang("late", 1, 2), nodes("p", 1, cpu=1.5))
    assert not cluster.cycle().bindings
    before = cluster.cache.jobs["default/late"].parked
    assert before is not None
    cluster.add(gang("small", 1, 1.5))
    assert bindings(cluster.cycle()) == {"small-w-0": "p-0"}
    assert cluster.cache.jobs["default/late"].parked is before
    cluster.add(node("m", cpu=3, labels={"zone": "b"}))
    assert bindings(cluster.cycle()) == {"late-w-0": "n-1"}
    assert {task.node for task in cluster.cache.jobs["default/g"].placeholders.values()} == {"m"}


def test_a_newcomer_wakes_nobody() -> None:
    cluster = Cluster.of(node("n", cpu=10), pod("x", node="n", cpu=10, ours=False), queue("q"), gang("g", 3, queue="q"))
    cluster.cycle()
    before = cluster.cache.jobs["default/g"].parked
    assert before is not None
    cluster.add(gang("new", 3))
    cluster.cycle()
    assert cluster.cache.jobs["default/g"].parked is before
    cluster.cache.remove_pod_group("default/new")
    cluster.cycle()
    assert parked(cluster) == {"g", "new"}


def test_a_gang_that_could_not_evict_enough_is_asked_again_when_a_node_is_gone() -> None:
    """Of the two that low can spare one was on n-0, where that is not enough beside what others have there."""
    cluster = Cluster.of(
        PriorityClassSpec("high", 10),
        nodes("n", 2, cpu=2),
        pod("other", node="n-0", ours=False),
        [pod_group("low", 2), *(pod(f"low-{index}", "low", node=f"n-{index // 2}") for index in range(4))],
        gang("g", 2, priority_class="high"),
        configuration=configuration("allocate, preempt", ["priority", "gang"], ["predicates"]),
    )
    assert not cluster.cycle().evictions
    assert not cluster.cycle().evictions
    cluster.cache.remove_node("n-0")
    assert {each.pod for each in cluster.cycle().evictions} == {"low-2", "low-3"}


def test_a_gang_that_could_evict_nobody_is_asked_again_when_nothing_protects_the_others_any_more() -> None:
    cluster = Cluster.of(
        PriorityClassSpec("high", 10),
        nodes("n", 1, cpu=2),
        [pod_group("low", 2), *(pod(f"low-{index}", "low", node="n-0") for index in range(2))],
        gang("g", 1, priority_class="high"),
        configuration=configuration("allocate, preempt", ["priority", "gang"], ["predicates"]),
    )
    assert not cluster.cycle().evictions
    assert not cluster.cycle().evictions
    cluster.cache.remove_pod_group("default/low")
    assert len(cluster.cycle().evictions) == 1


def test_a_gang_that_may_take_too_little_back_is_asked_again_when_its_queue_uses_less() -> None:
    reclaiming = configuration("enqueue, allocate, reclaim", ["gang"], ["predicates", "proportion"])
    cluster = Cluster.of(nodes("n", 3, cpu=2), queue("mine", weight=2), configuration=reclaiming)
    cluster.add(pod_group("runs", 0, queue="mine"), pod("runs", "runs", node="n-0"), pod_group("theirs", 0))
    cluster.add(*(pod(f"theirs-{index}", "theirs", node=f"n-{index // 2}") for index in range(1, 6)))
    cluster.add(gang("wants", 2, cpu=2, queue="mine"))
    assert not cluster.cycle().evictions
    assert not cluster.cycle().evictions
    cluster.delete("runs")
    # There is room for none of the gang yet, but it may take more now than it uses less.
    assert len(cluster.cycle().evictions) == 3


@pytest.mark.parametrize("actions", ["allocate, preempt", "preempt, allocate"])
def test_who_follows_one_that_found_room_and_could_evict_nobody_is_asked_again_too(actions: str) -> None:
    cluster = Cluster.of(
        PriorityClassSpec("high", 10),
        nodes("n", 1, cpu=2),
        nodes("m", 1, cpu=2),
        pod("other", node="n-0", cpu=2, ours=False),
        [pod_group("low", 2), *(pod(f"low-{index}", "low", node="m-0") for index in range(2))],
        *(gang(name, 1, 2, priority_class="high") for name in ("first", "second")),
        configuration=configuration(actions, ["priority", "gang"], ["predicates"]),
    )
    cluster.run()
    assert parked(cluster) == {"first", "second"}
    cluster.delete("other")
    assert bindings(cluster.run()[0]) == {"first-w-0": "n-0"}
    assert parked(cluster) == {"second"}
    cluster.cache.remove_pod_group("default/low")
    assert len(cluster.cycle().evictions) == 2
