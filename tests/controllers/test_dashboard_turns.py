"""Turns at dashboards: bounded for each namespace and in all, and outside of the looks' slots."""

from __future__ import annotations

import asyncio
from collections import Counter

from muster.controllers.dashboard_turns import DashboardTurns
from muster.controllers.slots import Slots
from tests.controllers.fake_clock import settle


class Talks:
    """Talks that go on until they are told to end."""

    def __init__(self, slots: Slots, of_one_namespace: int, at_all: int) -> None:
        self._slots = slots
        self.turns = DashboardTurns(slots, of_one_namespace, at_all)
        self.active: Counter[str] = Counter()
        self.end = asyncio.Event()

    async def talk(self, namespace: str) -> None:
        self._slots.take()
        async with self.turns.turn(namespace):
            self.active[namespace] += 1
            try:
                await self.end.wait()
            finally:
                self.active[namespace] -= 1
        self._slots.give_back()


async def test_a_namespace_has_its_share_and_leaves_others_theirs() -> None:
    talks = Talks(Slots(100), of_one_namespace=2, at_all=100)
    tasks = [asyncio.create_task(talks.talk(namespace)) for namespace in ["slow"] * 5 + ["other"]]
    await settle()
    assert talks.active == {"slow": 2, "other": 1}
    talks.end.set()
    await asyncio.gather(*tasks)
    assert talks.active.total() == 0


async def test_all_together_have_no_more_than_the_bound() -> None:
    talks = Talks(Slots(100), of_one_namespace=2, at_all=3)
    tasks = [asyncio.create_task(talks.talk(f"team-{number % 4}")) for number in range(8)]
    await settle()
    assert talks.active.total() == 3
    talks.end.set()
    await asyncio.gather(*tasks)


async def test_a_talk_that_is_cancelled_gives_its_turn_back() -> None:
    slots = Slots(1)
    talks = Talks(slots, of_one_namespace=1, at_all=1)
    first = asyncio.create_task(talks.talk("team"))
    second = asyncio.create_task(talks.talk("team"))
    await settle()
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await settle()
    assert talks.active == {"team": 1}, "the second has its turn"
    talks.end.set()
    await second


async def test_who_talks_holds_no_slot() -> None:
    slots = Slots(1)
    talks = Talks(slots, of_one_namespace=1, at_all=1)
    task = asyncio.create_task(talks.talk("team"))
    await settle()
    await asyncio.wait_for(slots.one_is_free(), 5)
    talks.end.set()
    await task
