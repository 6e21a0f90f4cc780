from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from muster.kube.background_turns import BackgroundTurns
from tests.engine.manual_clock import ManualClock, settle


class Turns:
    """Those who wait for a turn, and when they had it (seconds from the beginning)."""

    def __init__(self) -> None:
        self.clock = ManualClock(start=0.0)
        self.turns = BackgroundTurns(pause=1.0, clock=self.clock.now, sleep=self.clock.sleep)
        self.had: list[tuple[str, float]] = []

    def ask(self, name: str, then: Callable[[], None] = lambda: None) -> asyncio.Task[None]:
        async def wait() -> None:
            await self.turns.turn()
            self.had.append((name, self.clock.now()))
            then()

        return asyncio.create_task(wait())


async def test_while_nothing_urgent_is_under_way_all_go_at_once() -> None:
    made = Turns()
    for name in "abc":
        made.ask(name)
    await settle()
    assert made.had == [("a", 0), ("b", 0), ("c", 0)]


async def test_while_something_urgent_is_under_way_they_go_one_after_the_other() -> None:
    made = Turns()
    made.turns.begun(2)
    for name in "abc":
        made.ask(name)
    await made.clock.advance(0.9)
    assert made.had == []
    await made.clock.advance(10)
    assert made.had == [("a", 1), ("b", 2), ("c", 3)]


async def test_those_who_wait_go_when_the_last_urgent_write_has_ended() -> None:
    made = Turns()
    made.turns.begun(2)
    for name in "abc":
        made.ask(name)
    await made.clock.advance(0.5)
    made.turns.ended()
    await settle()
    assert made.had == []
    made.turns.ended()
    await settle(50)
    assert made.had == [("a", 0.5), ("b", 0.5), ("c", 0.5)]


async def test_what_is_urgent_holds_up_the_next_one_even_after_a_long_rest() -> None:
    made = Turns()
    await made.clock.advance(100)
    made.turns.begun()
    made.ask("a")
    await made.clock.advance(0.9)
    assert made.had == []
    await made.clock.advance(0.1)
    assert made.had == [("a", 101)]


async def test_one_that_is_given_up_holds_up_nobody() -> None:
    made = Turns()
    made.turns.begun()
    first, _ = made.ask("a"), made.ask("b")
    await settle()
    first.cancel()
    with suppress(asyncio.CancelledError):
        await first
    await made.clock.advance(1)
    assert made.had == [("b", 1)]


async def test_what_becomes_urgent_again_stops_those_who_have_not_gone() -> None:
    made = Turns()
    made.turns.begun()
    made.ask("a", then=made.turns.begun)
    made.ask("b")
    await made.clock.advance(0.5)
    made.turns.ended()
    await settle(50)
    assert made.had == [("a", 0.5)]
    await made.clock.advance(1)
    assert made.had == [("a", 0.5), ("b", 1.5)]
