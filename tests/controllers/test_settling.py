"""What a status says on the way is written when it has stood for a moment, or has changed for long."""

from __future__ import annotations

from muster.controllers.settling import LONGEST_SETTLING, SETTLING, Settling
from tests.controllers.fake_clock import FakeClock


async def test_what_is_new_has_to_stand_first() -> None:
    clock = FakeClock()
    settling = Settling(clock)
    assert settling.rest("a", "one") == SETTLING
    await clock.advance(SETTLING / 2)
    assert settling.rest("a", "one") == SETTLING / 2
    await clock.advance(SETTLING / 2)
    assert settling.rest("a", "one") == 0.0


async def test_what_changes_begins_anew_but_not_for_ever() -> None:
    clock = FakeClock()
    settling = Settling(clock)
    waited = 0.0
    for said in range(100):
        if settling.rest("a", said) == 0.0:
            break
        await clock.advance(SETTLING / 2)
        waited += SETTLING / 2
    assert waited == LONGEST_SETTLING


async def test_what_has_been_written_is_forgotten_and_others_are_not() -> None:
    clock = FakeClock()
    settling = Settling(clock)
    settling.rest("a", "one")
    settling.rest("b", "one")
    await clock.advance(SETTLING)
    settling.over("a")
    settling.over("unknown")
    assert settling.rest("a", "one") == SETTLING
    assert settling.rest("b", "one") == 0.0
