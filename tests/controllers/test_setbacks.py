"""Which failures last long enough to be told."""

from __future__ import annotations

from muster.controllers.setbacks import LASTING_SECONDS, Setbacks
from tests.controllers.fake_clock import FakeClock


async def test_what_passes_is_not_told_and_what_lasts_is() -> None:
    clock = FakeClock()
    setbacks = Setbacks(clock)
    assert not setbacks.last("team/demo")
    await clock.advance(LASTING_SECONDS - 1)
    assert not setbacks.last("team/demo")
    assert not setbacks.last("team/other")
    await clock.advance(1)
    assert setbacks.last("team/demo")
    assert not setbacks.last("team/other")


async def test_a_look_that_goes_well_begins_the_time_anew() -> None:
    clock = FakeClock()
    setbacks = Setbacks(clock)
    setbacks.last("team/demo")
    await clock.advance(LASTING_SECONDS)
    setbacks.over("team/demo")
    assert not setbacks.last("team/demo")
