"""What is worked out about a waiting gang for who asks: place in the queue, holders of the room, a smaller change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.engine.amounts import resources as translated
from muster.quantities import units
from muster.scheduler.constraints import PodConstraints, SelectorTerm
from muster.scheduler.inquiry import Inquiry
from muster.scheduler.outcome import Outcome
from muster.scheduler.reasons import Advice, Code, Holder, Reason, describe
from muster.scheduler.resources import Resources
from muster.scheduler.selectors import Operator, Requirement
from muster.scheduler.specs import Phase, PodGroupSpec, PriorityClassSpec
from muster.scheduler.suggestion import Trials, suggest
from muster.testing import Cluster, configuration, gang, node, nodes, pod, pod_group, pods, queue, resources
from muster.testing_company import constraints, far, zone_nodes
from tests.scheduler.audit import audit, snapshot
from tests.scheduler.worlds import STEPS, History, Step, World, worlds

PLAIN = configuration("enqueue, allocate, backfill", ["priority", "gang"], ["predicates", "nodeorder"])


def ask(cluster: Cluster, group: str) -> Reason:
    reason = Inquiry(cluster.cache, cluster.configuration, cluster.now).full_reason(
        cluster.cache.jobs[f"default/{group}"]
    )
    assert reason is not None
    return reason


def full() -> Cluster:
    """Two nodes of 4 CPU, three quarters of each in use."""
    cluster = Cluster.of(nodes("n", 2, cpu=4), gang("runs", 2, cpu=3), configuration=PLAIN)
    cluster.settle(cluster.cycle())
    return cluster


def test_the_position_is_the_place_in_the_order_of_the_queue() -> None:
    cluster = full()
    cluster.add(PriorityClassSpec("high", 10), queue("other"), gang("a", 1, cpu=4), gang("b", 1, cpu=4))
    cluster.add(gang("c", 1, cpu=4, priority_class="high"), gang("d", 1, cpu=4, queue="other"))
    cluster.cycle()
    assert [ask(cluster, name).position for name in "abcd"] == [2, 3, 1, 1]
    assert [ask(cluster, name).ahead for name in "abcd"] == [1, 2, 0, 0]


def test_who_could_not_be_placed_anyway_is_nobodys_predecessor() -> None:
    cluster = full()
    cluster.add(pod_group("gated"), pod("g", "gated", gated=True), gang("a", 1, cpu=4))
    cluster.cycle()
    assert ask(cluster, "gated").position is None
    assert ask(cluster, "a").position == 1


def test_the_time_waited_is_counted_from_what_is_stored() -> None:
    cluster = full()
    cluster.add(pod_group("a", creation=cluster.now - 42), pods("a", 1, cpu=4))
    cluster.cycle()
    assert ask(cluster, "a").waited == 42
    outcome = cluster.cycle(seconds=60)
    assert outcome == Outcome(wake_at=outcome.wake_at), "nothing is written as it grows"
    assert ask(cluster, "a").waited == 102


def test_the_holders_of_nodes_are_named_the_largest_first_and_others_pods_last() -> None:
    cluster = full()
    cluster.add(pod("theirs", cpu=0.5, node="n-0", ours=False), pod_group("s"), pod("s", "s", cpu=1, node="n-1"))
    cluster.add(gang("a", 1, cpu=4))
    cluster.cycle()
    assert ask(cluster, "a").holders == (
        Holder("default/runs", "default", 6000, reclaimable=False),
        Holder("default/s", "default", 1000, reclaimable=False),
        Holder("", "", 500, reclaimable=False),
    )


def test_who_is_on_nodes_that_the_pod_would_not_take_anyway_is_not_in_its_way() -> None:
    cluster = Cluster.of(node("n", cpu=4), node("away", cpu=4, unschedulable=True), configuration=PLAIN)
    cluster.add(
        pod_group("r"), pod("here", "r", cpu=2, node="n"), pod_group("q"), pod("there", "q", cpu=4, node="away")
    )
    cluster.add(gang("a", 1, cpu=4))
    cluster.cycle()
    assert [each.pod_group for each in ask(cluster, "a").holders] == ["default/r"]


def test_the_holders_of_quota_are_the_queues_own() -> None:
    cluster = Cluster.of(nodes("n", 4, cpu=4), queue("q", capability=resources(4)), gang("other", 1, cpu=4))
    cluster.add(gang("mine", 1, cpu=3, queue="q"))
    cluster.settle(cluster.cycle())
    cluster.add(gang("a", 1, cpu=2, queue="q"))
    cluster.cycle()
    reason = ask(cluster, "a")
    assert reason.code is Code.QUEUE_QUOTA
    assert reason.holders == (Holder("default/mine", "q", 3000, reclaimable=False),)


def test_what_is_promised_to_others_counts_where_a_gang_asks_to_be_admitted() -> None:
    cluster = Cluster.of(nodes("n", 1, cpu=8), queue("q", capability=resources(4)))
    cluster.add(promised("mine", 3), pod_group("a", 1, queue="q", min_resources=resources(2)))
    cluster.add(pod("a", "a", cpu=2))
    cluster.cycle()
    reason = ask(cluster, "a")
    assert reason.code is Code.QUEUE_QUOTA
    assert reason.holders == (Holder("default/mine", "q", 3000, held=True),)


def too_large(*others: Any, nodes_of: float = 32) -> Cluster:
    """A head of half a CPU and eight workers of one, in a queue of 6.5 CPU and beside these."""
    cluster = Cluster.of(nodes("n", 1, cpu=nodes_of), queue("q", capability=resources(6.5)), configuration=SHARED)
    cluster.add(queue("default", capability=resources(0.1)), *others)
    cluster.settle(cluster.cycle())
    cluster.add(pod_group("a", 9, queue="q", roles={"head": 1, "worker": 8}, min_resources=resources(8.5)))
    cluster.add(pod("a-head", "a", cpu=0.5, role="head"), pods("a", 8, cpu=1, role="worker"))
    cluster.cycle()
    return cluster


SHARED = configuration("enqueue, allocate", ["priority", "gang"], ["predicates", "proportion", "nodeorder"])


def promised(name: str, cpu: float, namespace: str = "default") -> PodGroupSpec:
    """A gang that has been admitted to the queue and has no pods yet."""
    group = pod_group(name, 1, queue="q", phase=Phase.INQUEUE, min_resources=resources(cpu))
    return replace(group, namespace=namespace)


def test_who_is_larger_than_the_queue_is_told_how_much_of_it_it_could_have() -> None:
    reason = ask(too_large(), "a")
    assert (reason.code, reason.used, reason.free) == (Code.LARGER_THAN_QUEUE, 0, 6500)
    assert describe(reason) == "queue q can never hold it: asks for cpu 8500m, the queue may use at most cpu 6500m"
    suggestion = reason.suggestion
    assert suggestion is not None
    assert suggestion.words == "with 7 members instead of 9 it would be placed now; more its queue can never hold"


def test_and_what_others_hold_of_it_now() -> None:
    reason = ask(too_large(promised("other", 4), gang("small", 1, cpu=0.5, queue="q")), "a")
    assert (reason.used, reason.free) == (4500, 2000)
    assert describe(reason).endswith(
        "the queue may use at most cpu 6500m, of which others hold cpu 4500m (the most PodGroup default/other)"
    )
    suggestion = reason.suggestion
    assert suggestion is not None
    assert suggestion.change["minTaskMember"] == {"head": 1, "worker": 1}
    assert suggestion.words == (
        "with 2 members instead of 9 it would be placed now; "
        "with 7 members its queue could hold it once others give back what they hold"
    )
    assert suggestion.at_most is not None
    assert suggestion.at_most.change["minTaskMember"] == {"head": 1, "worker": 6}


def test_what_is_promised_to_others_is_not_in_the_way_of_who_need_not_be_admitted() -> None:
    cluster = too_large(promised("other", 4))
    cluster.add(pod_group("a", 9, queue="q", roles={"head": 1, "worker": 8}))
    cluster.cycle()
    reason = ask(cluster, "a")
    assert reason.used == 0
    assert reason.suggestion is not None
    assert reason.suggestion.change["minMember"] == 7


def test_gangs_of_other_namespaces_are_not_named() -> None:
    reason = ask(too_large(promised("secret", 4, "elsewhere"), promised("other", 1)), "a")
    assert describe(reason).endswith("of which others hold cpu 5 (the most gangs of other namespaces)")
    assert "secret" not in repr(reason)


def test_where_no_form_of_it_fits_now_it_is_told_what_would_fit_at_all() -> None:
    suggestion = ask(too_large(promised("other", 6.5)), "a").suggestion
    assert suggestion is not None
    assert (suggestion.words, suggestion.change) == (
        "with 7 members instead of 9 its queue could hold it once others give back what they hold",
        {},
    )


FAIR = ["priority", "gang", "conformance"], ["predicates", "proportion", "nodeorder"]
GANGS = ["priority", "gang", "conformance"], ["predicates", "capacity", "nodeorder"]


def two_queues(actions: str, *, of_theirs: bool = True) -> Cluster:
    """`theirs` uses 8 CPU, in its own queue or in that of `a`, which is of higher priority and needs a node of 5 twice.

    So it waits whoever is evicted.
    """
    made = Cluster.of(nodes("n", 2, cpu=4), PriorityClassSpec("high", 10), queue("q", deserved=resources(10)))
    made.add(queue("theirs", deserved=resources(4)))
    made.configuration = configuration("enqueue, allocate", *FAIR[:1], ["predicates"])
    made.add(pod_group("theirs", 1, queue="theirs" if of_theirs else "q"), pods("theirs", 8, cpu=1))
    made.settle(made.cycle())
    made.configuration = configuration(actions, *(GANGS if "gang" in actions else FAIR))
    made.add(node("big", cpu=5), pod("x", cpu=5, node="big", ours=False))
    made.add(gang("a", 2, cpu=5, queue="q", priority_class="high"))
    return made


@pytest.mark.parametrize(
    ("actions", "of_theirs", "taken"),
    [
        ("enqueue, allocate, backfill", True, False),
        ("enqueue, allocate, backfill", False, False),
        ("enqueue, allocate, preempt", True, False),
        ("enqueue, allocate, preempt", False, True),
        ("enqueue, allocate, reclaim", True, True),
        ("enqueue, allocate, reclaim", False, False),
        ("enqueue, allocate, gangpreempt", True, False),
        ("enqueue, allocate, gangpreempt", False, True),
        ("enqueue, allocate, gangreclaim", True, True),
        ("enqueue, allocate, gangreclaim", False, False),
    ],
)
def test_room_can_be_taken_back_where_an_action_that_is_configured_may(
    actions: str, *, of_theirs: bool, taken: bool
) -> None:
    made = two_queues(actions, of_theirs=of_theirs)
    made.cycle()
    assert {each.pod_group: each.reclaimable for each in ask(made, "a").holders}["default/theirs"] is taken


def test_what_may_not_be_taken_for_one_may_be_for_another() -> None:
    made = two_queues("enqueue, allocate, preempt", of_theirs=False)
    made.add(gang("low", 1, cpu=5, queue="q"))
    made.cycle()
    holders = {name: ask(made, name).holders for name in ("a", "low")}
    assert [next(iter(found)).reclaimable for found in holders.values()] == [True, False]


def test_a_gang_that_is_kept_out_learns_for_whom() -> None:
    cluster = full()
    cluster.add(gang("big", 2, cpu=4))
    cluster.cycle()
    cluster.add(gang("small", 1, cpu=1))
    cluster.cycle(seconds=601)
    reason = ask(cluster, "small")
    assert reason.code is Code.ROOM_RESERVED
    assert reason.holders == (Holder("default/big", "default", 8000, held=True),)
    assert (reason.resource, reason.requested) == ("cpu", 1000)


def test_the_numbers_of_the_roomiest_node_are_all_there() -> None:
    cluster = full()
    cluster.add(gang("a", 1, cpu=4))
    cluster.cycle()
    reason = ask(cluster, "a")
    assert (reason.requested, reason.used, reason.free, reason.limit) == (4000, 3000, 1000, 4000)


@pytest.mark.parametrize(
    ("cluster", "change"),
    [
        pytest.param(
            Cluster.of(nodes("n", 3, cpu=4), gang("a", 5, cpu=4), configuration=PLAIN), {"minMember": 3}, id="fewer"
        ),
        pytest.param(
            Cluster.of(nodes("n", 3, cpu=4), gang("a", 3, cpu=5), configuration=PLAIN),
            {"member": "a-w-0", "requests": {"cpu": "4"}},
            id="smaller than every node",
        ),
        pytest.param(
            Cluster.of(node("n", cpu=4), node("m", cpu=3.5), gang("a", 2, cpu=4), configuration=PLAIN),
            {"member": "a-w-0", "requests": {"cpu": "3500m"}},
            id="smaller rather than half as many",
        ),
        pytest.param(
            Cluster.of(
                nodes("n", 3, cpu=4), queue("q", capability=resources(4)), queue("r"), gang("a", 2, cpu=3, queue="q")
            ),
            {"queue": "default"},
            id="another queue",
        ),
        pytest.param(
            Cluster.of(nodes("n", 3, cpu=4), queue("default", capability=resources(6)), gang("a", 4, cpu=2)),
            {"minMember": 3, "minResources": {"cpu": "6"}},
            id="fewer within the quota",
        ),
        pytest.param(
            Cluster.of(nodes("n", 1, cpu=4), pod_group("r"), pod("r", "r", cpu=4, node="n-0"), gang("a", 1, cpu=1)),
            None,
            id="nothing helps",
        ),
        pytest.param(
            Cluster.of(nodes("n", 1, gpu=2, cpu=4), pod_group("a"), pod("a", "a", gpu=3), configuration=PLAIN),
            {"member": "a", "requests": {"nvidia.com/gpu": "2"}},
            id="whole GPUs",
        ),
    ],
)
def test_the_smallest_change_that_would_have_it_placed(cluster: Cluster, change: Mapping[str, Any] | None) -> None:
    cluster.cycle()
    suggestion = ask(cluster, "a").suggestion
    assert (suggestion.change if suggestion else None) == change


def test_what_is_suggested_is_true() -> None:
    cluster = full()
    cluster.add(gang("a", 4, cpu=1, memory=1))
    cluster.cycle()
    assert ask(cluster, "a").suggestion is not None
    cluster.add(pod_group("a", 2, min_resources=resources(2, 2)))
    cluster.delete("a-w-2", "a-w-3")
    assert len(cluster.cycle().bindings) == 2


def change(cluster: Cluster, key: str, wanted: Mapping[str, Any]) -> None:
    """Do to a gang what was suggested for it, and nothing else."""
    cache = cluster.cache
    if "member" in wanted:
        ((resource, quantity),) = wanted["requests"].items()
        pending = cache.jobs[key].pending
        like = next(task.shape for task in pending.values() if task.spec.name == wanted["member"])
        for spec in [task.spec for task in pending.values() if task.shape is like]:
            limited = [lowered(each, resource, units(quantity, resource)) for each in (spec.request, spec.init_request)]
            cache.set_task(replace(spec, request=limited[0], init_request=limited[1]))
    group = cache.jobs[key].spec
    assert group is not None
    minimum = wanted.get("minResources")
    amounts = {name: units(text, name) for name, text in minimum.items()} if minimum is not None else {}
    cache.set_pod_group(
        replace(
            group,
            min_member=wanted.get("minMember", group.min_member),
            min_task_member=wanted.get("minTaskMember", group.min_task_member),
            queue=wanted.get("queue", group.queue),
            min_resources=group.min_resources if minimum is None else translated(amounts),
        )
    )


def lowered(request: Resources, resource: str, amount: int) -> Resources:
    less = request.clone()
    if resource == "cpu":
        less.milli_cpu = min(less.milli_cpu, amount)
    elif resource == "memory":
        less.memory = min(less.memory, amount)
    else:
        less.scalars[resource] = min(less.scalars[resource], amount)
    return less


def test_a_smaller_pod_is_suggested_to_each_gang_by_the_name_of_its_own() -> None:
    cluster = Cluster.of(nodes("n", 3, cpu=4), gang("a", 3, cpu=5), gang("b", 3, cpu=5), configuration=PLAIN)
    cluster.cycle()
    inquiry = Inquiry(cluster.cache, cluster.configuration, cluster.now)
    for name in "ab":
        reason = inquiry.full_reason(cluster.cache.jobs[f"default/{name}"])
        assert reason is not None
        assert reason.suggestion is not None
        assert reason.suggestion.change["member"] == f"{name}-w-0"
        assert f"{name}-w-0" in reason.suggestion.text


def test_what_helps_a_gang_that_is_admitted_need_not_help_one_like_it_that_is_not() -> None:
    """Both need a place for 3 CPU, and one for 2 is there; but the queue has no quota for what the other reserves."""
    cluster = Cluster.of(node("n", cpu=4), pod("x", cpu=2, node="n", ours=False), queue("q", capability=resources(4)))
    for name, phase in (("in", Phase.INQUEUE), ("out", Phase.PENDING)):
        least = resources(3)
        cluster.add(pod_group(name, 1, min_resources=least, queue="q", phase=phase), pods(name, 1, cpu=3))
    cluster.cycle()
    assert [cluster.phase(name) for name in ("in", "out")] == [Phase.INQUEUE, Phase.PENDING]
    inquiry = Inquiry(cluster.cache, cluster.configuration, cluster.now)
    trials = Trials(inquiry.session, 100)
    lacks = Reason(Code.NOT_ENOUGH_NODES, resource="cpu")
    found = {name: suggest(trials, cluster.cache.jobs[f"default/{name}"], lacks) for name in ("in", "out")}
    assert found["in"] is not None
    assert found["in"].change == {"member": "in-w-0", "requests": {"cpu": "2"}}
    assert found["out"] is None or "minResources" in found["out"].change


def test_a_smaller_pod_keeps_away_from_its_like_as_before() -> None:
    apart = constraints(far("zone", app="a"))
    cluster = Cluster.of(zone_nodes("ab"), pod("x", cpu=4, node="b-0", ours=False), configuration=PLAIN)
    cluster.add(gang("a", 2, cpu=3, scheduling=apart, labels={"app": "a"}))
    cluster.cycle()
    suggestion = ask(cluster, "a").suggestion
    assert suggestion is not None
    assert suggestion.change["minMember"] == 1, "two smaller ones may not be on one node either"


def test_a_gang_is_not_told_to_do_without_its_head() -> None:
    cluster = Cluster.of(nodes("n", 2, cpu=4), pod_group("a", 3, roles={"head": 1, "worker": 2}), configuration=PLAIN)
    cluster.add(pod("a-head", "a", cpu=4, role="head"), pods("a", 2, cpu=3, role="worker", priority=9))
    cluster.cycle()
    suggestion = ask(cluster, "a").suggestion
    assert suggestion is not None
    assert suggestion.change == {"minMember": 2, "minTaskMember": {"head": 1, "worker": 1}}


def test_where_it_is_what_the_gang_reserves_that_is_too_much_less_of_that_is_suggested_too() -> None:
    cluster = Cluster.of(nodes("n", 2, cpu=4), queue("q", capability=resources(6)))
    cluster.add(gang("a", 4, cpu=2, queue="q"), queue("default", capability=resources(1)))
    cluster.cycle()
    suggestion = ask(cluster, "a").suggestion
    assert suggestion is not None
    assert suggestion.change == {"minMember": 3, "minResources": {"cpu": "6"}}


@settings(max_examples=40)
@given(worlds(), st.lists(STEPS, max_size=4))
def test_who_does_what_is_suggested_is_placed_at_once(world: World, steps: list[Step]) -> None:
    def after() -> Cluster:
        history = History(world.cluster())
        for step in steps:
            history.play(step)
        for _ in range(2):
            history.cluster.cycle()
        return history.cluster

    asked = after()
    inquiry = Inquiry(asked.cache, asked.configuration, asked.now)
    for key, reason in [(job.key, inquiry.full_reason(job)) for job in asked.cache.jobs.values()]:
        if reason is None or reason.suggestion is None:
            continue
        if reason.suggestion.change:
            obedient = after()
            change(obedient, key, reason.suggestion.change)
            assert key in {each.job for each in obedient.cycle().bindings}, reason.suggestion.text
        if reason.suggestion.at_most is not None:
            smaller = after()
            change(smaller, key, reason.suggestion.at_most.change)
            smaller.cycle()
            still = smaller.cache.jobs[key].reason
            assert still is None or still.code is not Code.LARGER_THAN_QUEUE, reason.suggestion.words


def daemon(place: str, cpu: float) -> Any:
    field = SelectorTerm(fields=(Requirement("metadata.name", Operator.IN, (place,)),))
    return pod(f"daemon-{place}", cpu=cpu, node=place, ours=False, scheduling=PodConstraints(required=(field,)))


def test_a_gang_that_waits_for_what_can_not_come_is_told_so() -> None:
    """Two of 1.5 CPU and two of 1 need three nodes of 2.5, whatever is counted of each kind alone."""
    cluster = Cluster.of(nodes("n", 2, cpu=2.5), pod_group("runs", 1), pod("r", "runs", cpu=2, node="n-0"))
    cluster.add(pod_group("g", 4), pod("a", "g", cpu=1.4), pod("b", "g", cpu=1.4), pod("c", "g", cpu=1.2))
    cluster.add(pod("d", "g", cpu=0.9))
    cluster.cycle()
    reason = ask(cluster, "g")
    assert (reason.code, reason.have_if_empty, reason.need) == (Code.NOT_ENOUGH_NODES, 3, 4)
    assert reason.advice is Advice.CHANGE


@pytest.mark.parametrize(("cpu", "waits"), [(0.5, True), (1, False)])
def test_pods_of_daemon_sets_stay_on_a_node_that_is_thought_empty(cpu: float, *, waits: bool) -> None:
    cluster = Cluster.of(nodes("n", 2, cpu=2.5), daemon("n-0", cpu), daemon("n-1", 0), configuration=PLAIN)
    cluster.add(pod("x", cpu=2, node="n-0", ours=False), gang("g", 2, cpu=2))
    cluster.cycle()
    reason = ask(cluster, "g")
    assert (reason.have_if_empty, reason.advice) == ((None, Advice.WAIT) if waits else (1, Advice.CHANGE))


@settings(max_examples=60)
@given(worlds())
def test_who_is_told_that_waiting_does_not_help_has_no_place_on_empty_nodes(world: World) -> None:
    cluster = world.cluster()
    cluster.cycle()
    inquiry = Inquiry(cluster.cache, cluster.configuration, cluster.now)
    for job in list(cluster.cache.jobs.values()):
        told = inquiry.full_reason(job)
        if told is None or told.have_if_empty is None:
            continue
        alone = world.cluster()
        for task in [each for each in alone.cache.tasks.values() if each.job is None or each.job.key != job.key]:
            alone.cache.remove_task(task.uid)
        assert job.key not in {each.job for each in alone.cycle().bindings}


def test_no_more_is_tried_than_was_asked_for() -> None:
    cluster = full()
    for number in range(30):
        cluster.add(gang(f"g{number}", 2, cpu=3 + number / 10))
    cluster.cycle()
    inquiry = Inquiry(cluster.cache, cluster.configuration, cluster.now, work=0)
    found = [inquiry.full_reason(cluster.cache.jobs[f"default/g{number}"]) for number in range(30)]
    said = [reason is not None and reason.suggestion is not None for reason in found]
    assert said[0]
    assert not said[-1]


@settings(max_examples=40)
@given(worlds(), st.lists(STEPS, max_size=6))
def test_asking_changes_nothing(world: World, steps: list[Step]) -> None:
    asked, other = History(world.cluster()), History(world.cluster())
    assert asked.cluster.cycle() == other.cluster.cycle()
    for step in steps:
        cache = asked.cluster.cache
        before = snapshot(cache)
        inquiry = Inquiry(cache, asked.cluster.configuration, asked.cluster.now)
        for job in cache.jobs.values():
            inquiry.full_reason(job)
        assert snapshot(cache) == before
        audit(cache)
        assert asked.play(step) == other.play(step)


def test_pods_above_the_minimum_get_no_suggestion() -> None:
    cluster = full()
    cluster.add(pods("runs", 1, cpu=4, first=2))
    cluster.cycle()
    assert ask(cluster, "runs").suggestion is None
