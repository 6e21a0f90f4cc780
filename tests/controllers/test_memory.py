"""What a reconciler remembers of a cluster, and who waits for whom."""

from __future__ import annotations

from random import Random

from muster.controllers.interests import Interests
from muster.controllers.raycluster.memory import FORGET_SECONDS, IntendedNames, ReplacementPacing
from muster.kube.resource import PODS, QUEUES
from tests.controllers.fake_clock import FakeClock


def test_a_place_keeps_its_intended_name_until_the_pod_is_seen() -> None:
    names = IntendedNames(Random(1))
    first = names.name("c-workers-worker-", "workers", 0)
    assert names.name("c-workers-worker-", "workers", 0) == first
    assert names.name("c-workers-worker-", "workers", 1) != first
    names.seen(["unrelated", first])
    assert names.name("c-workers-worker-", "workers", 0) != first


def test_a_name_that_was_given_up_does_not_take_its_successor_along() -> None:
    names = IntendedNames(Random(1))
    first = names.name("c-", "workers", 0)
    names.discard(first)
    second = names.name("c-", "workers", 0)
    names.seen([first])
    assert names.name("c-", "workers", 0) == second


async def test_broken_pods_are_replaced_at_once_then_ever_more_slowly_and_all_is_forgiven_in_time() -> None:
    clock = FakeClock()
    pacing = ReplacementPacing(clock)
    waits = []
    for _ in range(9):
        waits.append(max(0.0, pacing.replace_at("workers") - clock.now()))
        await clock.advance(waits[-1])
        pacing.replaced("workers")
    assert waits == [0, 5, 10, 20, 40, 80, 160, 300, 300]
    assert pacing.replace_at("others") == 0
    await clock.advance(FORGET_SECONDS + 1)
    assert pacing.replace_at("workers") == 0


def test_an_interest_lasts_until_its_key_is_looked_at_again() -> None:
    interests = Interests()
    interests.add("ns/a", QUEUES, "q")
    interests.add("ns/b", QUEUES, "q")
    interests.add("ns/a", PODS, "q")
    assert interests.in_object(QUEUES, "q") == {"ns/a", "ns/b"}
    interests.clear("ns/a")
    assert interests.in_object(QUEUES, "q") == {"ns/b"}
    assert interests.in_object(PODS, "q") == set()
