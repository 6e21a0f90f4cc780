"""The submitter is never starved by its own gang, nor by anybody else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from muster.scheduler.specs import Companion, Phase, PriorityClassSpec, TaskStatus
from muster.testing import (
    Cluster,
    Spec,
    bindings,
    companion,
    configuration,
    evictions,
    gang,
    node,
    nodes,
    pod,
    pod_group,
    pods,
    queue,
    resources,
)
from tests.scheduler.audit import audit

SUBMITTER = companion(cpu=0.5)


def submitter(name: str = "sub", cpu: float = 0.5) -> Spec:
    return pod(name, "g", cpu, role="submittergroup")


def started(cpu: float = 2.5) -> Cluster:
    """A gang of two 1-CPU pods on one node, with room for its submitter held."""
    cluster = Cluster.of(nodes("n", 1, cpu=cpu), gang("g", 2, companions=[SUBMITTER]))
    outcome = cluster.cycle()
    assert set(bindings(outcome)) == {"g-w-0", "g-w-1"}
    assert outcome.pod_groups["default/g"].companions == {"submittergroup": "n-0"}
    cluster.settle(outcome)
    cluster.cycle()
    return cluster


def test_a_gang_without_room_for_its_submitter_is_not_started() -> None:
    cluster = Cluster.of(nodes("n", 1, cpu=2.4), gang("g", 2, companions=[SUBMITTER]))
    outcome = cluster.cycle()
    assert not outcome.bindings
    assert outcome.pod_groups["default/g"].companions == {}
    audit(cluster.cache)


def test_nobody_takes_the_room_that_is_held_and_the_submitter_gets_it() -> None:
    cluster = started()
    cluster.add(gang("greedy", 1, 0.5))
    assert not cluster.cycle().bindings
    cluster.add(submitter())
    outcome = cluster.cycle()
    assert bindings(outcome) == {"sub": "n-0"}
    assert outcome.pod_groups["default/g"].companions == {}
    audit(cluster.cache)


def test_the_submitter_is_no_member_but_is_counted_among_the_running() -> None:
    cluster = started()
    cluster.add(submitter())
    cluster.settle(cluster.cycle())
    assert cluster.cycle().pod_groups["default/g"].running == 3
    cluster.delete("g-w-0")
    assert cluster.cycle().pod_groups["default/g"].broken_since == cluster.now


def test_a_submitter_that_failed_finds_its_place_again() -> None:
    cluster = started()
    cluster.add(submitter())
    cluster.settle(cluster.cycle())
    cluster.add(gang("greedy", 1, 0.5))
    cluster.change_pod("sub", status=TaskStatus.FAILED)
    outcome = cluster.cycle()
    assert not outcome.bindings
    assert outcome.pod_groups["default/g"].companions == {"submittergroup": "n-0"}
    cluster.add(submitter("sub-2"))
    assert bindings(cluster.cycle()) == {"sub-2": "n-0"}
    audit(cluster.cache)


def test_when_the_job_is_done_the_room_is_free() -> None:
    cluster = started()
    cluster.add(gang("greedy", 1, 0.5))
    cluster.add(pod_group("g", 0, companions=[SUBMITTER]))
    outcome = cluster.cycle()
    assert bindings(outcome) == {"greedy-w-0": "n-0"}
    audit(cluster.cache)


def somebody_waits_for_the_held_room() -> Cluster:
    """The gang is on n-0, room for its submitter is held on n-1, and a gang of another queue is parked for a node."""
    cluster = Cluster.of(
        nodes("n", 2, cpu=2),
        queue("q1"),
        queue("q2"),
        gang("g", 1, 2, queue="q1", companions=[companion(cpu=2)]),
        configuration=configuration("enqueue, allocate, backfill", ["priority", "gang"], ["predicates"]),
    )
    cluster.settle(cluster.cycle())
    cluster.add(gang("other", 1, 2, queue="q2"))
    assert not cluster.cycle().bindings
    assert not cluster.cycle().bindings
    return cluster


def regrouped(cluster: Cluster, **changes: object) -> None:
    spec = cluster.cache.jobs["default/g"].spec
    assert spec is not None
    cluster.cache.set_pod_group(replace(spec, **changes))  # type: ignore[arg-type]


def bound_by_others(cluster: Cluster) -> None:
    cluster.add(nodes("m", 1, cpu=1.5), submitter())
    cluster.change_pod("sub", node="m-0", status=TaskStatus.RUNNING)


@pytest.mark.parametrize(
    "happens",
    [
        pytest.param(lambda c: c.cache.remove_pod_group("default/g"), id="the PodGroup is deleted"),
        pytest.param(lambda c: regrouped(c, companions=()), id="no submitter is to come any more"),
        pytest.param(lambda c: regrouped(c, companions=(companion(cpu=9),)), id="one that fits nowhere is to come"),
        pytest.param(lambda c: regrouped(c, min_member=0), id="the job is done"),
        pytest.param(lambda c: c.add(submitter(cpu=9)), id="the submitter is larger than its room"),
        pytest.param(bound_by_others, id="the submitter was bound elsewhere"),
    ],
)
def test_who_is_parked_is_asked_again_when_held_room_is_given_up(happens: Callable[[Cluster], None]) -> None:
    cluster = somebody_waits_for_the_held_room()
    happens(cluster)
    assert bindings(cluster.cycle()) == {"other-w-0": "n-1"}
    audit(cluster.cache)


def test_quota_that_a_submitters_room_used_is_free_when_its_node_goes() -> None:
    cluster = Cluster.of(nodes("n", 1, cpu=2), nodes("m", 1, cpu=2), queue("q", capability=resources(4)))
    cluster.add(gang("g", 1, 2, queue="q", companions=[companion(cpu=2)]))
    cluster.settle(cluster.cycle())
    cluster.add(nodes("o", 1, cpu=1), gang("other", 1, 1, queue="q"))
    assert not cluster.cycle().bindings
    assert not cluster.cycle().bindings
    held = cluster.cache.jobs["default/g"].placeholders["submittergroup"].node
    assert held is not None
    cluster.cache.remove_node(held)
    assert bindings(cluster.cycle()) == {"other-w-0": "o-0"}
    audit(cluster.cache)


def restarted(*, nodes_cpu: float = 2, cap: float = 9, sub: Companion = SUBMITTER, at: str = "n-1") -> list[Spec]:
    """What a scheduler reads that starts while the gang runs, whose submitter has its room on n-1."""
    note = {sub.role: at}
    group = pod_group(
        "g", 2, queue="q", phase=Phase.RUNNING, companions=[sub], companion_nodes=note, running=2, creation=1.0
    )
    members = pods("g", 2, node="n-0", creation=1.0)
    return [queue("q", capability=resources(cap)), group, *members, *nodes("n", 2, cpu=nodes_cpu)]


def held(cluster: Cluster) -> dict[str, str | None]:
    """Where room is held for the gang's companions."""
    return {role: task.node for role, task in cluster.cache.jobs["default/g"].placeholders.items()}


@pytest.mark.parametrize("order", [1, -1], ids=["the PodGroup is read first", "the PodGroup is read last"])
@pytest.mark.parametrize("exists", [False, True], ids=["the submitter comes later", "the submitter waits already"])
def test_the_place_is_found_again_after_a_restart(order: int, *, exists: bool) -> None:
    """Whatever is read first, and however much others want the room."""
    specs = restarted(cap=2.5)
    cluster = Cluster.of(PriorityClassSpec("high", 10), [*specs, *[submitter()] * exists][::order])
    cluster.add(gang("greedy", 1, 2, priority_class="high"), gang("thrifty", 1, 0.5, queue="q", priority_class="high"))
    assert bindings(cluster.cycle()) == ({"sub": "n-1"} if exists else {})
    assert exists or held(cluster) == {"submittergroup": "n-1"}
    if not exists:
        cluster.add(submitter())
        assert bindings(cluster.cycle()) == {"sub": "n-1"}
    audit(cluster.cache)


@pytest.mark.parametrize(
    ("specs", "place"),
    [
        pytest.param(restarted(sub=companion(cpu=1000), cap=9999), None, id="more than the node has"),
        pytest.param(restarted(cap=2), None, id="more than the queue may use"),
        pytest.param([*restarted(), pod("theirs", cpu=2, node="n-1", ours=False)], None, id="the node is full by now"),
        pytest.param([*restarted(), node("n-1", cpu=2, unschedulable=True)], None, id="the node takes no pods"),
        pytest.param(restarted(at="nowhere"), "n-1", id="the node does not exist, another does"),
    ],
)
def test_nobody_holds_more_than_there_is_by_noting_a_place_while_muster_is_down(
    specs: list[Spec], place: str | None
) -> None:
    cluster = Cluster.of(specs)
    outcome = cluster.cycle()
    assert held(cluster) == {"submittergroup": place}
    assert outcome.pod_groups["default/g"].companions == ({"submittergroup": place} if place else {})
    assert all(each.idle.milli_cpu >= 0 for each in cluster.cache.nodes.values())
    audit(cluster.cache)


def greedy_group(name: str = "g", uid: str = "uid-g") -> Spec:
    greed = [companion("s1", cpu=1000), companion("s2", cpu=1000)]
    group = pod_group(name, 2, queue="q", companions=greed, companion_nodes={"s1": "n-0", "s2": "n-1"})
    return replace(group, uid=uid)


def made_again(cluster: Cluster) -> None:
    cluster.cache.remove_pod_group("default/g")
    cluster.add(greedy_group(uid="another"))


@pytest.mark.parametrize(
    "happens",
    [
        pytest.param(lambda c: c.add(greedy_group()), id="into a PodGroup that is known"),
        pytest.param(made_again, id="into a PodGroup that takes its place"),
        pytest.param(lambda c: c.add(greedy_group("h", "uid-h")), id="into a new PodGroup"),
    ],
)
def test_nobody_holds_a_node_by_writing_its_name(happens: Callable[[Cluster], None]) -> None:
    cluster = Cluster.of(nodes("n", 2, cpu=4), queue("q", capability=resources(2)), gang("g", 2, queue="q"))
    cluster.run()
    happens(cluster)
    cluster.add(gang("other", 2))
    assert set(bindings(cluster.cycle())) == {"other-w-0", "other-w-1"}
    assert cluster.cache.queues["q"].allocated.milli_cpu == 2000
    audit(cluster.cache)


def test_a_place_that_was_noted_by_hand_counts_for_nothing_though_it_is_free() -> None:
    """Room is given in order: a note written into a new PodGroup is no way past a gang that goes first."""
    cluster = Cluster.of(PriorityClassSpec("high", 10), nodes("n", 2, cpu=2), gang("g", 2))
    cluster.run()
    cluster.cache.remove_pod_group("default/g")
    group = pod_group("g", 2, companions=[SUBMITTER], companion_nodes={"submittergroup": "n-1"})
    cluster.add(replace(group, uid="another"), nodes("o", 1, cpu=9))
    cluster.cycle()
    assert held(cluster) == {"submittergroup": "o-0"}


@pytest.mark.parametrize(
    "ends",
    [
        pytest.param(lambda c: c.change_pod("sub", status=TaskStatus.FAILED), id="failed"),
        pytest.param(lambda c: c.delete("sub"), id="deleted"),
    ],
)
def test_the_place_of_a_submitter_is_kept_for_the_next_but_not_more_than_that(ends: Callable[[Cluster], None]) -> None:
    def ended(next_cpu: float) -> Cluster:
        cluster = started()
        cluster.add(submitter())
        cluster.settle(cluster.cycle())
        cluster.add(gang("greedy", 1, 0.5), nodes("o", 1, cpu=0.4))
        regrouped(cluster, companions=(companion(cpu=next_cpu),))
        ends(cluster)
        return cluster

    cluster = ended(0.3)
    assert not cluster.cycle().bindings, "greedy has to wait, though o-0 is emptier"
    assert held(cluster) == {"submittergroup": "n-0"}
    audit(cluster.cache)
    cluster = ended(1000)
    assert bindings(cluster.cycle()) == {"greedy-w-0": "n-0"}
    assert held(cluster) == {"submittergroup": None}
    audit(cluster.cache)


def test_a_submitter_that_was_evicted_leaves_its_place_to_who_it_was_evicted_for() -> None:
    preempting = configuration("enqueue, allocate, preempt", ["priority"], ["predicates"])
    cluster = Cluster.of(PriorityClassSpec("high", 10), nodes("n", 1, cpu=2), configuration=preempting)
    cluster.add(gang("g", 1, 1, companions=[companion(cpu=1)]))
    cluster.settle(cluster.cycle())
    cluster.add(submitter(cpu=1))
    cluster.settle(cluster.cycle())
    cluster.change_pod("g-w-0", preemptable=False)
    cluster.add(gang("urgent", 1, 1, priority_class="high"))
    assert evictions(cluster.cycle()) == {"sub"}
    cluster.change_pod("sub", status=TaskStatus.RELEASING)
    cluster.cycle()
    cluster.change_pod("sub", status=TaskStatus.FAILED)
    assert bindings(cluster.cycle()) == {"urgent-w-0": "n-0"}
    audit(cluster.cache)


def test_a_gang_that_was_rolled_back_holds_no_room_for_its_submitter() -> None:
    cluster = started()
    cluster.add(gang("greedy", 1, 0.5))
    cluster.delete("g-w-0", "g-w-1")
    assert bindings(cluster.cycle()) == {"greedy-w-0": "n-0"}
    audit(cluster.cache)


def test_a_submitter_that_exists_already_is_placed_with_its_gang() -> None:
    specs = [*nodes("n", 1, cpu=2.4), *gang("g", 2, companions=[SUBMITTER]), submitter()]
    cluster = Cluster.of(specs)
    assert not cluster.cycle().bindings
    cluster.add(nodes("m", 1, cpu=0.5))
    assert bindings(cluster.cycle()) == {"g-w-0": "n-0", "g-w-1": "n-0", "sub": "m-0"}


def test_a_submitter_larger_than_the_place_waits_for_another() -> None:
    cluster = started()
    cluster.add(submitter(cpu=1.5))
    assert not cluster.cycle().bindings
    cluster.add(nodes("m", 1, cpu=2))
    assert bindings(cluster.cycle()) == {"sub": "m-0"}
    audit(cluster.cache)


def test_the_held_room_counts_in_the_queue() -> None:
    cluster = Cluster.of(
        nodes("n", 1), queue("q", capability=resources(2.4)), gang("g", 2, queue="q", companions=[SUBMITTER])
    )
    assert not cluster.cycle().bindings
    cluster.add(replace(queue("q", capability=resources(2.5)), creation=1.0))
    assert len(cluster.cycle().bindings) == 2
    assert cluster.cache.queues["q"].allocated.milli_cpu == 2500


def test_a_node_that_goes_takes_the_held_room_along_and_another_is_found() -> None:
    cluster = Cluster.of(nodes("n", 1, cpu=2), nodes("m", 1, cpu=0.5), gang("g", 2, companions=[SUBMITTER]))
    cluster.settle(cluster.cycle())
    cluster.cycle()
    cluster.cache.remove_node("m-0")
    assert cluster.cycle().pod_groups["default/g"].companions == {}
    cluster.add(nodes("o", 1, cpu=1))
    assert cluster.cycle().pod_groups["default/g"].companions == {"submittergroup": "o-0"}
    audit(cluster.cache)


def test_a_gang_that_is_evicted_whole_holds_no_room_for_its_submitter_from_then_on() -> None:
    """Who evicted it may need no more than that."""
    cluster = Cluster.of(
        PriorityClassSpec("high", 10),
        node("n", 3),
        gang("low", 1, 2, companions=[companion(cpu=0.5)]),
        configuration=configuration("allocate, preempt", ["priority"], ["predicates"]),
    )
    cluster.settle(cluster.cycle())
    cluster.add(gang("high", 1, 1, priority_class="high"))
    outcome = cluster.cycle()
    assert (evictions(outcome), outcome.wake_at) == ({"low-w-0"}, cluster.now)
    assert bindings(cluster.cycle()) == {"high-w-0": "n"}
    audit(cluster.cache)
