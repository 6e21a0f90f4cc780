from __future__ import annotations

from random import Random

import pytest

from muster.api.raycluster import RayCluster
from muster.controllers.raycluster.quota_turns import LONGEST_OF_THE_OLDEST, LONGEST_SECONDS, QuotaTurns
from muster.ray.cluster_conditions import ReplicaFailure
from tests.controllers.fake_clock import FakeClock

FAILURE = ReplicaFailure("FailedCreateWorkerPod", "exceeded quota")


def cluster(name: str = "demo", *, created: int = 0, generation: int = 1, namespace: str = "ns") -> RayCluster:
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{name}",
        "generation": generation,
        "creationTimestamp": f"2026-01-01T00:00:{created:02}Z",
    }
    return RayCluster.parse({"metadata": metadata, "spec": {"headGroupSpec": {"template": {}}}})


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def turns(clock: FakeClock) -> QuotaTurns:
    return QuotaTurns(clock, Random(1))


def pauses(turns: QuotaTurns, clock: FakeClock, one: RayCluster, number: int) -> list[float]:
    return [turns.refused(one, FAILURE).until - clock.now() for _ in range(number)]


def test_a_pause_grows_from_try_to_try_up_to_a_bound(turns: QuotaTurns, clock: FakeClock) -> None:
    found = pauses(turns, clock, cluster(), 12)
    assert 1.0 <= found[0] <= 1.5
    assert found[:3] == sorted(found[:3])
    assert all(LONGEST_OF_THE_OLDEST <= pause <= 1.5 * LONGEST_OF_THE_OLDEST for pause in found[4:])
    assert len(set(found)) == len(found)


def test_the_others_wait_longer_and_never_before_the_oldest(turns: QuotaTurns, clock: FakeClock) -> None:
    old, young = cluster("old", created=1), cluster("young", created=2)
    for _ in range(12):
        first = turns.refused(old, FAILURE).until
        assert turns.refused(young, FAILURE).until >= first + 1.0
    (long,) = pauses(turns, clock, young, 1)
    assert LONGEST_SECONDS <= long <= 1.5 * LONGEST_SECONDS


def test_of_two_that_were_made_in_one_second_one_is_the_older(turns: QuotaTurns) -> None:
    one, two = cluster("a"), cluster("b")
    later = turns.refused(two, FAILURE).until
    first = turns.refused(one, FAILURE).until
    assert turns.refused(two, FAILURE).until >= max(first + 1.0, later)


def test_namespaces_do_not_wait_for_each_other(turns: QuotaTurns, clock: FakeClock) -> None:
    pauses(turns, clock, cluster("old", created=1, namespace="a"), 12)
    (pause,) = pauses(turns, clock, cluster("young", created=2, namespace="b"), 1)
    assert pause <= 1.5


def test_who_asks_for_something_else_need_not_wait(turns: QuotaTurns) -> None:
    turn = turns.refused(cluster(), FAILURE)
    assert turns.of(cluster()) is turn
    assert turns.of(cluster(generation=2)) is None
    again = turns.refused(cluster(generation=2), FAILURE)
    assert again.tries == 1


def test_who_has_its_pods_is_forgotten_and_holds_up_nobody(turns: QuotaTurns, clock: FakeClock) -> None:
    old, young = cluster("old", created=1), cluster("young", created=2)
    pauses(turns, clock, old, 12)
    turns.forget("ns/old")
    turns.forget("ns/never-was")
    assert turns.of(old) is None
    (pause,) = pauses(turns, clock, young, 1)
    assert pause <= 1.5
