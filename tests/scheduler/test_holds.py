"""P9: a gang that has waited too long is not overtaken any more, and nobody waits for it without need."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from muster.scheduler.outcome import Outcome
from muster.scheduler.reasons import Code, ReasonClass
from muster.scheduler.specs import Condition, Phase, PriorityClassSpec, TaskStatus, Wait
from muster.testing import Cluster, bindings, companion, gang, node, nodes, pod, pod_group, pods, queue, resources
from tests.scheduler.audit import audit
from tests.scheduler.worlds import CONFIGURATIONS

LONG = 601


def starving(*others: object, second: float = 4) -> Cluster:
    """Two nodes of 4 CPU, one half used by a pod without a stated end; a gang that needs both has waited long."""
    cluster = Cluster.of(
        node("n-0", cpu=4), node("n-1", cpu=second), pod("runs", "r", cpu=2, node="n-0"), pod_group("r")
    )
    cluster.add(gang("big", 2, cpu=4))
    cluster.cycle()
    cluster.now += LONG
    cluster.add(*others)  # type: ignore[arg-type]
    return cluster


def reason_of(cluster: Cluster, group: str) -> Code | None:
    reason = cluster.cache.jobs[f"default/{group}"].reason
    return reason.code if reason is not None else None


def test_before_the_time_small_gangs_go_ahead() -> None:
    cluster = starving()
    cluster.now -= LONG
    cluster.add(gang("small", 1, cpu=1))
    assert bindings(cluster.cycle()) != {}


def test_afterwards_nothing_is_started_where_the_gang_is_to_run() -> None:
    cluster = starving(gang("small", 1, cpu=1))
    outcome = cluster.cycle()
    assert bindings(outcome) == {}
    assert reason_of(cluster, "small") is Code.ROOM_RESERVED
    said = outcome.pod_groups["default/small"].reason
    assert said is not None
    assert said.reason_class is ReasonClass.RESERVED
    assert said.queue == "default"
    assert outcome.pods.get("default/small-w-0") is None or not outcome.pods["default/small-w-0"].reason
    audit(cluster.cache)


def test_a_gang_that_waits_only_for_a_leaving_pod_lets_the_scheduler_rest() -> None:
    """Its members have their places until the cycle ends, but they are not bound: what is held stays held."""
    group = pod_group("big", 2, companions=[companion(cpu=0.5)])
    old = pod("old", cpu=1, node="n")
    cluster = Cluster.of(node("n", cpu=4), old, group, pods("big", 2, 1.5), gang("small", 1, 3.5))
    cluster.cycle()
    cluster.cycle(seconds=LONG)
    cluster.change_pod("old", status=TaskStatus.RELEASING)
    for _ in range(3):
        assert cluster.cycle().wake_at != cluster.now
    assert {hold.job.key for hold in cluster.cache.holds} == {"default/big"}


def test_the_gang_is_placed_when_its_nodes_have_drained() -> None:
    cluster = starving(gang("small", 1, cpu=1))
    cluster.cycle()
    cluster.delete("runs")
    assert set(bindings(cluster.cycle())) == {"big-w-0", "big-w-1"}
    assert not cluster.cache.holds


def test_the_others_go_on_once_the_gang_has_its_place() -> None:
    cluster = starving(gang("small", 1, cpu=1))
    cluster.cycle()
    cluster.delete("runs")
    cluster.settle(cluster.cycle())
    cluster.delete("big-w-0", "big-w-1")
    cluster.cache.remove_pod_group("default/big")
    assert set(bindings(cluster.cycle())) == {"small-w-0"}


def test_the_others_go_on_at_once_when_the_gang_is_deleted() -> None:
    cluster = starving(gang("small", 1, cpu=1))
    cluster.cycle()
    cluster.delete("big-w-0", "big-w-1")
    cluster.cache.remove_pod_group("default/big")
    bound = {**bindings(cluster.cycle()), **bindings(cluster.cycle())}
    assert set(bound) == {"small-w-0"}


def test_nodes_that_the_gang_does_not_need_are_for_everybody() -> None:
    cluster = starving(node("n-2", cpu=1), pod_group("small"), pods("small", 1, cpu=1))
    assert bindings(cluster.cycle()) == {"small-w-0": "n-2"}


def test_what_is_over_on_a_node_that_is_free_already_is_for_everybody() -> None:
    cluster = starving(gang("small", 1, cpu=2), second=6)
    assert bindings(cluster.cycle()) == {"small-w-0": "n-1"}
    cluster.add(gang("next", 1, cpu=1))
    assert bindings(cluster.cycle()) == {}


@pytest.mark.parametrize(
    ("runtime", "starts"),
    [
        pytest.param(90, True, id="over before the gang can begin"),
        pytest.param(100, True, id="over just then"),
        pytest.param(101, False, id="a second too long"),
        pytest.param(None, False, id="says nothing"),
    ],
)
def test_what_ends_before_the_gang_can_begin_is_started_beside_it(runtime: float | None, *, starts: bool) -> None:
    cluster = starving()
    cluster.change_pod("runs", expected_runtime=100.0, started=cluster.now)
    cluster.add(pod_group("small"), replace(pod("s", "small", cpu=1), expected_runtime=runtime))
    assert bool(bindings(cluster.cycle())) is starts
    audit(cluster.cache)


def test_the_run_time_may_stand_on_the_pod_group() -> None:
    cluster = starving()
    cluster.change_pod("runs", expected_runtime=100.0, started=cluster.now)
    cluster.add(replace(pod_group("small"), expected_runtime=50.0), pods("small", 1))
    assert set(bindings(cluster.cycle())) == {"small-w-0"}


def test_a_pod_that_runs_longer_than_it_said_is_not_counted_on() -> None:
    cluster = starving()
    cluster.change_pod("runs", expected_runtime=100.0, started=cluster.now - 50)
    cluster.add(replace(pod_group("small"), expected_runtime=50.0), pods("small", 1, cpu=4))
    assert cluster.cycle().wake_at is not None
    cluster.add(replace(pod_group("late"), expected_runtime=1.0), pods("late", 1, cpu=1))
    outcome = cluster.cycle(seconds=50)
    assert bindings(outcome) == {}
    assert reason_of(cluster, "late") is Code.ROOM_RESERVED


def test_a_gang_of_higher_priority_is_not_kept_out() -> None:
    cluster = starving(PriorityClassSpec("high", 100), gang("urgent", 1, cpu=1, priority_class="high"))
    assert set(bindings(cluster.cycle())) == {"urgent-w-0"}


def test_the_time_is_the_queues_own_where_it_has_one() -> None:
    cluster = Cluster.of(nodes("n", 1, cpu=2), replace(queue("fast"), starvation_timeout=30.0))
    cluster.add(pod_group("r", queue="fast"), pod("runs", "r", cpu=1, node="n-0"), gang("big", 1, cpu=2, queue="fast"))
    cluster.cycle()
    cluster.now += 31
    cluster.add(gang("small", 1, cpu=1, queue="fast"))
    assert bindings(cluster.cycle()) == {}
    assert reason_of(cluster, "small") is Code.ROOM_RESERVED


@pytest.mark.parametrize("own", [None, 0.0])
def test_zero_switches_it_off(own: float | None) -> None:
    cluster = starving(replace(queue("default"), starvation_timeout=own), gang("small", 1, cpu=1))
    if own is None:
        cluster.configuration = replace(cluster.configuration, starvation_timeout=0.0)
    assert set(bindings(cluster.cycle())) == {"small-w-0"}


def test_the_cycle_that_begins_to_hold_comes_by_itself() -> None:
    cluster = Cluster.of(nodes("n", 1, cpu=4), pod_group("r"), pod("runs", "r", cpu=2, node="n-0"))
    cluster.add(gang("big", 1, cpu=4))
    outcome = cluster.cycle()
    assert outcome.wake_at is not None
    cluster.now = outcome.wake_at
    cluster.cycle()
    assert cluster.cache.holds
    assert cluster.cycle().wake_at is None


@pytest.mark.parametrize(
    ("group", "holds"),
    [
        pytest.param(pod_group("big", 2, creation=1_000_000 - 700), True, id="made long ago"),
        pytest.param(pod_group("big", 2, creation=1_000_000 - 500), False, id="made not so long ago"),
        pytest.param(replace(pod_group("big", 2), wait=Wait(999_000, for_room=True)), True, id="waits since long"),
        pytest.param(
            replace(pod_group("big", 2, creation=9e5), wait=Wait(999_900, for_room=True)), False, id="waits anew"
        ),
        pytest.param(
            replace(pod_group("big", 2), wait=Wait(999_000, for_room=False)), False, id="could not have been placed"
        ),
        pytest.param(
            replace(pod_group("big", 2, creation=9e5), conditions=(Condition("Scheduled", False, "", "", 999_900),)),
            False,
            id="ran until a short while ago",
        ),
    ],
)
def test_after_a_restart_the_wait_goes_on_from_what_is_stored(group: object, *, holds: bool) -> None:
    cluster = Cluster.of(nodes("n", 2, cpu=4), pod_group("r"), pod("runs", "r", cpu=2, node="n-0"))
    cluster.add(group, pods("big", 2, cpu=4), gang("small", 1, cpu=1))  # type: ignore[arg-type]
    cluster.cycle()
    assert bool(cluster.cache.holds) is holds
    assert (cluster.placed().get("small-w-0") is None) is holds


def test_time_spent_gated_is_no_wait_for_room() -> None:
    cluster = Cluster.of(nodes("n", 1, cpu=4), pod_group("r"), pod("runs", "r", cpu=2, node="n-0"))
    cluster.add(pod_group("big", 1), pod("b", "big", cpu=4, gated=True))
    cluster.cycle()
    cluster.cycle(seconds=LONG)
    cluster.change_pod("b", gated=False)
    cluster.add(gang("small", 1, cpu=1))
    assert set(bindings(cluster.cycle())) == {"small-w-0"}


def test_what_can_never_be_placed_holds_nothing() -> None:
    cluster = starving(gang("huge", 1, cpu=40), gang("small", 1, cpu=1))
    cluster.delete("big-w-0", "big-w-1")
    cluster.cache.remove_pod_group("default/big")
    cluster.cycle()
    cluster.now += LONG
    cluster.add(gang("small2", 1, cpu=1))
    assert "small2-w-0" in bindings(cluster.cycle())


def test_nodes_full_of_others_pods_are_not_held() -> None:
    """Whoever schedules those may put the next one there at once."""
    cluster = Cluster.of(nodes("n", 1, cpu=4), pod("theirs", cpu=2, ours=False, node="n-0"), gang("big", 1, cpu=4))
    cluster.cycle()
    cluster.add(gang("small", 1, cpu=1))
    assert set(bindings(cluster.cycle(seconds=LONG))) == {"small-w-0"}


def test_quota_is_held_too() -> None:
    """volcano#2052, #3095: small jobs overtake a large one of their queue for ever."""
    cluster = Cluster.of(nodes("n", 4, cpu=4), queue("q", capability=resources(4)))
    cluster.add(gang("runs", 1, cpu=2, queue="q"))
    cluster.settle(cluster.cycle())
    cluster.add(gang("big", 1, cpu=4, queue="q"))
    cluster.cycle()
    cluster.add(gang("small", 1, cpu=1, queue="q"), gang("elsewhere", 1, cpu=1))
    assert set(bindings(cluster.cycle(seconds=LONG))) == {"elsewhere-w-0"}
    assert reason_of(cluster, "small") is Code.ROOM_RESERVED
    cluster.delete("runs-w-0")
    cluster.cache.remove_pod_group("default/runs")
    assert set(bindings(cluster.cycle())) == {"big-w-0"}


def test_a_gang_that_is_refused_at_enqueue_for_too_long_is_admitted() -> None:
    """volcano#748: a large job never passes enqueue because small ones always do."""
    cluster = Cluster.of(nodes("n", 2, cpu=4), queue("q", capability=resources(6)))
    cluster.add(gang("runs", 1, cpu=2, queue="q"))
    cluster.settle(cluster.cycle())
    cluster.add(pod_group("big", 2, min_resources=resources(6), queue="q"), pods("big", 2, cpu=3))
    cluster.cycle()
    assert cluster.phase("big") is Phase.PENDING
    cluster.cycle(seconds=LONG)
    assert cluster.phase("big") is Phase.INQUEUE
    assert cluster.cache.queues["q"].inqueue == resources()
    audit(cluster.cache)


def test_of_two_starved_gangs_of_a_queue_the_first_gets_the_room() -> None:
    cluster = starving(gang("second", 2, cpu=4), gang("small", 1, cpu=1))
    cluster.cycle()
    cluster.cycle(seconds=LONG)
    assert [hold.job.key for hold in cluster.cache.holds] == ["default/big"]


def test_what_has_drained_stays_held_although_another_node_has_become_as_good() -> None:
    cluster = Cluster.of(nodes("n", 2, cpu=4), pod_group("r"))
    cluster.add(pod("a", "r", cpu=3, node="n-0"), pod("b", "r", cpu=2, node="n-1"), gang("big", 1, cpu=4))
    cluster.cycle()
    cluster.cycle(seconds=LONG)
    assert set(cluster.cache.holds[0].amounts) == {"n-1"}
    cluster.change_pod("a", status=TaskStatus.SUCCEEDED)
    cluster.add(pod("c", "r", cpu=2, node="n-0"))
    cluster.cycle()
    assert set(cluster.cache.holds[0].amounts) == {"n-1"}


def test_its_own_reason_says_that_room_is_held() -> None:
    cluster = starving()
    outcome = cluster.cycle()
    said = outcome.pod_groups["default/big"].reason
    assert said is not None
    assert said.detail == "room is being held for it"
    assert cluster.cycle() == Outcome(), "once"


def test_members_above_the_minimum_wait_too() -> None:
    cluster = starving(pod_group("r", 1), pod("more", "r", cpu=1))
    assert bindings(cluster.cycle()) == {}
    assert reason_of(cluster, "r") is Code.ROOM_RESERVED


SITES = st.fixed_dictionaries(
    {
        "nodes": st.integers(1, 4),
        "cpu": st.integers(2, 4),
        "members": st.integers(1, 4),
        "size": st.integers(1, 4),
        "quota": st.booleans(),
        "configuration": st.sampled_from(CONFIGURATIONS),
        "lives": st.lists(st.integers(1, 5), min_size=1, max_size=6),
        "stated": st.booleans(),
        "small": st.integers(1, 2),
        "queues": st.sampled_from((1, 2)),
    }
)


@settings(max_examples=60)
@given(SITES)
def test_no_gang_that_fits_the_empty_cluster_is_overtaken_for_ever(site: dict[str, Any]) -> None:
    """P9: a stream of small gangs that never ends, each of which runs for some rounds of a minute."""
    whole = site["nodes"] * site["cpu"]
    assume(site["size"] <= site["cpu"] and site["members"] <= site["nodes"] * (site["cpu"] // site["size"]))
    # Where shares are by weight a queue may have no right to the whole cluster.
    assume(
        site["queues"] == 1 or not any(option.name == "proportion" for option in sum(site["configuration"].tiers, ()))
    )
    capability = resources(max(whole - 1, site["members"] * site["size"])) if site["quota"] else None
    cluster = Cluster.of(
        nodes("n", site["nodes"], cpu=site["cpu"]),
        queue("q", capability=capability),
        configuration=site["configuration"],
    )
    ends: dict[str, int] = {}
    smalls = itertools.count()

    def a_minute(round_: int) -> None:
        for name in [name for name, end in ends.items() if end <= round_]:
            del ends[name]
            cluster.delete(f"{name}-w-0")
            cluster.cache.remove_pod_group(f"default/{name}")
        waiting = sum(not job.is_ready() for job in cluster.cache.jobs.values())
        for _ in range(max(0, whole - waiting)):
            number = next(smalls)
            life = site["lives"][number % len(site["lives"])]
            group = pod_group(f"s{number}", queue="q" if site["queues"] == 1 or number % 2 else "default")
            runtime = life * 60.0 if site["stated"] else None
            cluster.add(replace(group, expected_runtime=runtime), pods(f"s{number}", 1, cpu=site["small"]))
        outcome = cluster.cycle(seconds=60)
        for binding in outcome.bindings:
            spec = cluster.cache.tasks[binding.task_uid].spec
            cluster.add(replace(spec, status=TaskStatus.RUNNING, node=binding.node, started=cluster.now))
            name = binding.job.removeprefix("default/")
            if name != "big":
                ends[name] = round_ + site["lives"][int(name[1:]) % len(site["lives"])]

    for round_ in range(5):
        a_minute(round_)
    cluster.add(gang("big", site["members"], cpu=site["size"], queue="q"))
    for round_ in range(5, 60):
        a_minute(round_)
        if cluster.cache.jobs["default/big"].is_ready():
            return
    raise AssertionError("the gang waits for ever")


def test_nothing_is_held_for_a_gang_that_has_its_minimum_though_more_of_it_wait() -> None:
    cluster = Cluster.of(node("n-0", cpu=4), pod("runs", "r", cpu=2, node="n-0"), pod_group("r"))
    cluster.add(gang("big", 2, cpu=4, min_member=1))
    cluster.cycle()
    cluster.now += LONG
    cluster.cycle()
    assert [hold.job.key for hold in cluster.cache.holds] == ["default/big"]
    cluster.delete("runs")
    assert len(bindings(cluster.cycle())) == 1
    cluster.add(node("n-1", cpu=3.5), gang("small", 1, cpu=1))
    assert bindings(cluster.cycle()) == {"small-w-0": "n-1"}
    assert not cluster.cache.holds


def test_room_is_held_for_the_role_that_is_missing_though_there_are_members_enough() -> None:
    cluster = Cluster.of(node("n-0", cpu=4), node("n-1", cpu=0.5), pod("runs", "r", cpu=2, node="n-0"), pod_group("r"))
    cluster.add(pod_group("big", 2, roles={"head": 1}))
    for name in ("w-0", "w-1"):
        cluster.add(pod(name, "big", cpu=1, role="worker", node="n-1", status=TaskStatus.SUCCEEDED))
    cluster.add(pod("h-0", "big", cpu=4, role="head"))
    cluster.cycle()
    cluster.now += LONG
    cluster.add(gang("small", 1, cpu=1))
    assert bindings(cluster.cycle()) == {}
    assert [(hold.job.key, list(hold.amounts)) for hold in cluster.cache.holds] == [("default/big", ["n-0"])]
