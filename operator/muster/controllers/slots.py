"""How many looks may be under way at once, and how one that waits for somebody's answer makes room meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Slots:
    """`bound` looks at once. One that steps out comes back without a wait, so that for the rest of it, which is short,
    there may be more.
    """

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._taken = 0
        self._given_back = asyncio.Event()

    async def one_is_free(self) -> None:
        """Return as soon as another look may begin."""
        while self._taken >= self._bound:
            self._given_back.clear()
            await self._given_back.wait()

    def take(self) -> None:
        """A look begins; `give_back` must follow."""
        self._taken += 1

    def give_back(self) -> None:
        """A look is over."""
        self._taken -= 1
        self._given_back.set()

    @contextmanager
    def outside(self) -> Iterator[None]:
        """Wait for somebody, in a look that has a slot, without keeping others from theirs."""
        self.give_back()
        try:
            yield
        finally:
            self.take()
