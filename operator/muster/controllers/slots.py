"""How many looks may be under way at once, and how one that waits for somebody's answer makes room meanwhile.

Few at once bring one object after the other to its end, where many bring all of them there late: their writes wait for
each other at the API server. But looks may be stuck, at a webhook in one namespace, say: so when none ends for a while,
another one begins beside them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from muster.controllers.clock import Clock, SystemClock

_PATIENCE: Final = 0.25
"""Seconds without the end of a look after which one more may begin."""


class Slots:
    """`bound` looks at once, and up to `at_most` while they are stuck. One that steps out comes back without a wait, so
    that for the rest of it, which is short, there may be more.
    """

    def __init__(self, bound: int, at_most: int | None = None, *, clock: Clock | None = None) -> None:
        self._bound = bound
        self._limit = bound
        """How many there may be now: more than `bound` while so many are stuck."""
        self._at_most = max(bound, at_most or bound)
        self._clock = clock or SystemClock()
        self._taken = 0
        self._given_back = asyncio.Event()

    async def one_is_free(self) -> None:
        """Return as soon as another look may begin."""
        while self._taken >= self._limit:
            self._given_back.clear()
            if self._limit >= self._at_most:
                await self._given_back.wait()
            elif not await self._is_given_back_soon():
                self._limit += 1

    async def _is_given_back_soon(self) -> bool:
        timer = asyncio.ensure_future(self._clock.sleep(_PATIENCE))
        given_back = asyncio.ensure_future(self._given_back.wait())
        try:
            await asyncio.wait((timer, given_back), return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            given_back.cancel()
        return self._given_back.is_set()

    def take(self) -> None:
        """A look begins; `give_back` must follow."""
        self._taken += 1

    def give_back(self) -> None:
        """A look is over."""
        self._taken -= 1
        if self._taken < self._bound:
            self._limit = self._bound
        self._given_back.set()

    @contextmanager
    def outside(self) -> Iterator[None]:
        """Wait for somebody, in a look that has a slot, without keeping others from theirs."""
        self.give_back()
        try:
            yield
        finally:
            self.take()
