"""How many looks are under way at once, also while some are stuck."""

from __future__ import annotations

import asyncio

from muster.controllers.slots import Slots
from tests.controllers.fake_clock import FakeClock, settle


class Looks:
    """Begins looks as soon as it may; none ends by itself."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self.begun = 0

    async def run(self) -> None:
        while True:
            await self._slots.one_is_free()
            self._slots.take()
            self.begun += 1
            await asyncio.sleep(0)


async def test_while_looks_are_stuck_others_begin_one_by_one_up_to_a_bound() -> None:
    clock = FakeClock()
    slots = Slots(2, 4, clock=clock)
    looks = Looks(slots)
    task = asyncio.create_task(looks.run())
    await settle()
    assert looks.begun == 2
    await clock.advance(0.2)
    assert looks.begun == 2, "they may still end"
    await clock.advance(0.1)
    assert looks.begun == 3
    await clock.advance(60)
    assert looks.begun == 4, "no more than the bound"
    slots.give_back()
    await settle()
    assert looks.begun == 5
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_look_that_ends_makes_room_at_once() -> None:
    clock = FakeClock()
    slots = Slots(2, 4, clock=clock)
    looks = Looks(slots)
    task = asyncio.create_task(looks.run())
    await settle()
    slots.give_back()
    await settle()
    assert looks.begun == 3
    await clock.advance(0.2)
    assert looks.begun == 3, "the wait has begun anew"
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
