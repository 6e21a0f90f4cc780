"""A name that somebody else has is tried after longer and longer pauses."""

from __future__ import annotations

from muster.controllers.taken_names import FIRST_PAUSE, LONGEST_PAUSE, TakenNames
from muster.kube.objects import ObjectMeta
from tests.controllers.fake_clock import FakeClock

SOMEBODY = ObjectMeta(name="demo", namespace="team", uid="1")


async def test_the_pauses_grow_up_to_a_bound() -> None:
    clock = FakeClock()
    names = TakenNames(clock)
    pauses = []
    for _ in range(6):
        assert names.by("demo") is None
        names.found("demo", SOMEBODY)
        pause = 0.0
        while names.by("demo") is SOMEBODY:
            await clock.advance(1.0)
            pause += 1.0
        pauses.append(pause)
    assert pauses == [FIRST_PAUSE, 10.0, 20.0, 40.0, LONGEST_PAUSE, LONGEST_PAUSE]


async def test_a_name_that_was_not_tried_for_long_begins_anew_and_others_are_not_held_up() -> None:
    clock = FakeClock()
    names = TakenNames(clock)
    names.found("demo", SOMEBODY)
    assert names.by("other") is None
    await clock.advance(FIRST_PAUSE + LONGEST_PAUSE)
    names.found("demo", SOMEBODY)
    await clock.advance(FIRST_PAUSE)
    assert names.by("demo") is None
