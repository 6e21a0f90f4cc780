"""Questions that are put to the same dashboards every few seconds.

To make a client and to connect takes longer than the question itself, so both are kept until the next one. Each
dashboard has a client of its own: one pool for all is looked through from end to end at each request.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final, NoReturn, TypeVar

from muster.controllers.clock import Clock
from muster.controllers.dashboard import Dashboard, DashboardResolver
from muster.ray.jobs_api import ConnectionLost, DashboardError, DashboardUnreachable, RayJobsClient

IDLE_SECONDS: Final = 15.0
"""For how long a connection is kept that nobody uses."""
MOST_KEPT: Final = 250
"""How many are; each is an open file."""

logger = logging.getLogger(__name__)

T = TypeVar("T")
Question = Callable[[RayJobsClient], Awaitable[T]]


@dataclass(frozen=True, slots=True)
class _Idle:
    client: RayJobsClient
    since: float


class DashboardQuestions:
    """Puts questions, each by the client that the last one to the same dashboard has left, or by a new one."""

    def __init__(self, dashboards: DashboardResolver, clock: Clock, most_kept: int = MOST_KEPT) -> None:
        self._dashboards = dashboards
        self._clock = clock
        self._most_kept = most_kept
        self._idle: dict[Dashboard, _Idle] = {}
        """By where it leads, the longest unused one first."""

    async def ask(self, dashboard: Dashboard, question: Question[T]) -> T:
        """The answer. A question may be put twice, so it must be one whose second time changes nothing.

        Raises what the question raises, and DashboardUnreachable where there is no way to the dashboard.
        """
        kept = self._idle.pop(dashboard, None)
        if kept is not None:
            try:
                return await self._put(dashboard, kept.client, question)
            except ConnectionLost:
                pass  # it may have been given up while nobody asked: a new one tells
        return await self._put(dashboard, self._connect(dashboard), question)

    async def close_idle(self) -> NoReturn:
        """Close what nobody uses any more, until cancelled; then all of it."""
        try:
            while True:
                await self._clock.sleep(IDLE_SECONDS / 3)
                latest = self._clock.monotonic() - IDLE_SECONDS
                await self._close([dashboard for dashboard, idle in self._idle.items() if idle.since <= latest])
        finally:
            self._most_kept = 0
            await self._close(list(self._idle))

    async def _put(self, dashboard: Dashboard, client: RayJobsClient, question: Question[T]) -> T:
        async with AsyncExitStack() as closing:
            await closing.enter_async_context(client)
            try:
                answer = await question(client)
            except DashboardError:  # an answer, too
                self._keep(dashboard, client, closing)
                raise
            self._keep(dashboard, client, closing)
            return answer

    def _keep(self, dashboard: Dashboard, client: RayJobsClient, closing: AsyncExitStack) -> None:
        if dashboard not in self._idle and len(self._idle) < self._most_kept:
            self._idle[dashboard] = _Idle(client, self._clock.monotonic())
            closing.pop_all()

    def _connect(self, dashboard: Dashboard) -> RayJobsClient:
        try:
            return self._dashboards.connect(dashboard)
        except ValueError as error:  # an address, of what others wrote into pods and services, that is none
            raise DashboardUnreachable(str(error)) from None

    async def _close(self, dashboards: list[Dashboard]) -> None:
        for idle in [self._idle.pop(dashboard) for dashboard in dashboards]:
            try:
                await idle.client.aclose()
            except Exception as error:  # it is of no use any more, and the controllers go on without it
                logger.info("a connection to a dashboard could not be closed in order: %s", error)
