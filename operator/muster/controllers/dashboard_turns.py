"""Who may talk to a dashboard at the moment.

A dashboard runs what its users please, and may take as long with an answer as its time-out allows. So a look that talks
to one holds no slot of the reconciler's; what it holds, a connection, is bounded apart: in all, and for each namespace,
so that one tenant's slow dashboards keep the others neither from their looks nor from their dashboards.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from muster.controllers.slots import Slots

OF_ONE_NAMESPACE: Final = 50
AT_ALL: Final = 500


@dataclass(slots=True)
class _Lane:
    turns: asyncio.Semaphore
    users: int = 0


class DashboardTurns:
    """Turns at dashboards, in the order in which they are asked for."""

    def __init__(self, slots: Slots, of_one_namespace: int = OF_ONE_NAMESPACE, at_all: int = AT_ALL) -> None:
        self._slots = slots
        self._of_one_namespace = of_one_namespace
        self._at_all = asyncio.Semaphore(at_all)
        self._lanes: dict[str, _Lane] = {}

    @asynccontextmanager
    async def turn(self, namespace: str) -> AsyncIterator[None]:
        """Wait for a turn, and have it for the length of the block, outside of the looks' slots."""
        with self._slots.outside():
            async with self._lane(namespace), self._at_all:
                yield

    @asynccontextmanager
    async def _lane(self, namespace: str) -> AsyncIterator[None]:
        lane = self._lanes.setdefault(namespace, _Lane(asyncio.Semaphore(self._of_one_namespace)))
        lane.users += 1
        try:
            async with lane.turns:
                yield
        finally:
            lane.users -= 1
            if not lane.users:
                del self._lanes[namespace]
