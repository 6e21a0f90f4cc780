from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from muster.scheduler.outcome import Outcome
from muster.scheduler.specs import Phase, PodGroupSpec
from muster.testing import Cluster, Spec, bindings, configuration, gang, nodes, plugin, pod_group, pods, resources

SLA = plugin("sla", {"sla-waiting-time": "5m"})
OVERCOMMITTED = plugin("overcommit", {"overcommit-factor": 1})


def waiting(specs: list[Spec], seconds: float | None, creation: float) -> list[Spec]:
    """The gang with a waiting time of its own, made at this time."""
    group, *members = specs
    assert isinstance(group, PodGroupSpec)
    return [replace(group, sla_waiting_time=seconds, creation=creation), *members]


def bound(outcome: Outcome) -> set[str]:
    return {name.partition("-")[0] for name in bindings(outcome)}


@pytest.mark.parametrize(
    ("first", "second", "winner"),
    [
        pytest.param((600, 10), (60, 20), "b", id="the earlier of creation and waiting time"),
        pytest.param((None, 10), (600, 20), "b", id="a waiting time goes before none"),
        pytest.param((None, 10), (None, 20), "a", id="without one the older goes first"),
        pytest.param((70, 10), (60, 20), "a", id="the same moment: the older goes first"),
    ],
)
def test_who_has_to_start_sooner_goes_first(first: Any, second: Any, winner: str) -> None:
    cluster = Cluster.of(
        nodes("n", 1, cpu=2),
        waiting(gang("a", 1, cpu=2), *first),
        waiting(gang("b", 1, cpu=2), *second),
        configuration=configuration("enqueue, allocate", ["sla", "gang"], ["predicates"]),
    )
    cluster.now = 30
    assert bound(cluster.cycle()) == {winner}


@pytest.mark.parametrize(
    ("own", "winner"),
    [
        pytest.param(3600, "b", id="it may wait an hour"),
        pytest.param(60, "a", id="it was to start long ago"),
    ],
)
def test_a_gang_does_not_starve_before_the_time_that_it_gave_itself(own: float, winner: str) -> None:
    """P9 holds room for who has waited too long: not for who said that it may wait longer, before who may not."""
    cluster = Cluster.of(
        nodes("n", 1, cpu=2),
        waiting(gang("a", 1, cpu=2), own, 1000),
        waiting(gang("b", 1, cpu=2), 600, 1300),
        configuration=configuration("enqueue, allocate", ["sla", "gang"], ["predicates"]),
    )
    cluster.now = 1000 + 605
    assert bound(cluster.cycle()) == {winner}


def test_who_may_wait_is_looked_at_again_when_it_starves() -> None:
    cluster = Cluster.of(
        nodes("n", 1, cpu=2),
        waiting(gang("a", 1, cpu=2), 3600, 1000),
        waiting(gang("b", 1, cpu=2), 600, 1300),
        configuration=configuration("enqueue, allocate", ["sla", "gang"], ["predicates"]),
    )
    cluster.now = 1700.0
    cluster.run()
    times = [cluster.now]
    while not cluster.cache.starved:
        wake_at = cluster.cycle().wake_at
        assert wake_at is not None
        times.append(wake_at)
        cluster.now = wake_at
        cluster.cycle()
    assert times[-1] == 4600
    assert set(cluster.cache.starved) == {"default/a"}


def test_the_plugins_time_holds_for_gangs_that_state_none() -> None:
    cluster = Cluster.of(
        nodes("n", 1, cpu=2),
        waiting(gang("a", 1, cpu=2), None, 10),
        waiting(gang("b", 1, cpu=2), 60, 20),
        configuration=configuration("enqueue, allocate", [SLA, "gang"], ["predicates"]),
    )
    cluster.now = 30
    assert bound(cluster.cycle()) == {"b"}


def admitted(tiers: list[list[Any]], seconds: float) -> Cluster:
    """A gang of 8 CPU on a cluster of 4, that many seconds after it was made."""
    cluster = Cluster.of(
        nodes("n", 2, cpu=2),
        replace(pod_group("big", 2, min_resources=resources(8)), creation=1000.0),
        configuration=configuration("enqueue, allocate", *tiers),
    )
    cluster.now = 1000.0 + seconds
    return cluster


@pytest.mark.parametrize(
    ("tiers", "seconds", "phase"),
    [
        pytest.param([["gang", SLA], [OVERCOMMITTED]], 299, Phase.PENDING, id="not before its time"),
        pytest.param([["gang", SLA], [OVERCOMMITTED]], 300, Phase.INQUEUE, id="when its time is up"),
        pytest.param([["gang", SLA, OVERCOMMITTED]], 300, Phase.PENDING, id="a plugin of the same tier may object"),
        pytest.param([[OVERCOMMITTED], ["gang", SLA]], 300, Phase.PENDING, id="one of an earlier tier too"),
    ],
)
def test_a_gang_is_admitted_when_its_time_is_up(tiers: list[list[Any]], seconds: float, phase: Phase) -> None:
    cluster = admitted(tiers, seconds)
    cluster.cycle()
    assert cluster.phase("big") is phase


def test_a_parked_gang_is_admitted_at_the_second_although_nothing_happens() -> None:
    cluster = admitted([["gang", SLA], [OVERCOMMITTED]], 10)
    assert cluster.cycle().wake_at == 1300.0
    assert cluster.phase("big") is Phase.PENDING
    cluster.now = 1300.0
    cluster.cycle()
    assert cluster.phase("big") is Phase.INQUEUE


@pytest.mark.parametrize(("tiers", "held"), [([["sla"], ["gang"]], True), ([["gang"], ["sla"]], False)])
def test_the_room_that_a_gang_finds_is_held_for_it_when_its_time_is_up(tiers: list[list[str]], held: bool) -> None:
    cluster = Cluster.of(
        nodes("n", 3, cpu=2),
        [replace(pod_group("big", 4), sla_waiting_time=60.0, creation=1000.0), *pods("big", 4, cpu=2)],
        gang("small", 1, cpu=1),
        configuration=configuration("enqueue, allocate", *tiers, ["predicates"]),
    )
    cluster.now = 1030.0
    assert bound(cluster.cycle()) == {"small"}
    cluster.add(gang("tiny", 1, cpu=1), gang("late", 1, cpu=2))
    cluster.now = 1061.0
    assert bound(cluster.cycle()) == ({"tiny"} if held else {"tiny", "late"})
    assert cluster.cache.jobs["default/big"].ready == 0


def test_what_is_held_is_bound_as_soon_as_the_rest_is_there() -> None:
    cluster = Cluster.of(
        nodes("n", 3, cpu=2),
        [replace(pod_group("big", 4), sla_waiting_time=60.0, creation=1000.0), *pods("big", 4, cpu=2)],
        configuration=configuration("enqueue, allocate", ["sla"], ["gang"], ["predicates"]),
    )
    cluster.now = 1061.0
    assert bindings(cluster.cycle()) == {}
    cluster.add(gang("late", 1, cpu=2))
    assert bindings(cluster.cycle()) == {}
    cluster.add(nodes("m", 1, cpu=2))
    assert bound(cluster.cycle()) == {"big"}
