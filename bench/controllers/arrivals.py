"""When each object was created and when it got where it should, seen by a watch."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager, suppress
from typing import Any

from bench.controllers.scenario import RayObject, Scenario
from muster.kube.client import ApiClient
from muster.kube.informer import Change, Informer

_LOOK_SECONDS = 0.2
"""A process that has died is noticed so soon."""


class Failed(Exception):  # noqa: N818 - says what happened
    """A system has not done what was asked of it; the text says what happened."""


class Arrivals:
    """The times of all objects of a scenario. `clock` is in seconds."""

    def __init__(self, scenario: Scenario, clock: Callable[[], float] = time.monotonic) -> None:
        self._scenario = scenario
        self._clock = clock
        self._news = asyncio.Event()
        self._latest = clock()
        self.created: dict[str, float] = {}
        self.there: dict[str, float] = {}
        self._statuses: dict[str, str] = {}
        self._failed: set[str] = set()

    def note_created(self, name: str) -> None:
        """The object is about to be created."""
        self.created[name] = self._latest = self._clock()

    def note(self, one: RayObject) -> None:
        """The object has been seen as it is now."""
        name = one.metadata.name
        self._statuses[name] = str(one.status)
        if name not in self.there and self._scenario.is_there(one):
            self.there[name] = self._latest = self._clock()
            self._news.set()
        elif self._scenario.has_failed(one):
            self._failed.add(name)
            self._news.set()

    async def all_there(self, names: Collection[str], *, patience: float, dead: Callable[[], str | None]) -> None:
        """Wait until all these are there.

        Raises Failed as soon as `dead` says what has died, when one of them fails, and when none has come for
        `patience` seconds.
        """
        wanted = set(names)
        while missing := wanted - self.there.keys():
            so_far = f"{len(wanted) - len(missing)} of {len(wanted)} are there"
            if (what := dead()) is not None:
                raise Failed(f"{so_far}, and {what}")
            if failed := missing & self._failed:
                raise Failed(f"{so_far}, {len(failed)} have failed; {self._told(min(failed))}")
            if self._clock() - self._latest > patience:
                raise Failed(f"{so_far}, and no other came for {patience:g} s; {self._told(min(missing))}")
            await self._news_or_a_moment()

    def _told(self, name: str) -> str:
        return f"{name}: {self._statuses.get(name, 'never seen')}"

    async def _news_or_a_moment(self) -> None:
        self._news.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_SECONDS):
                await self._news.wait()

    def seconds(self, names: Collection[str]) -> list[float]:
        """How long each took, the shortest first."""
        return sorted(self.there[name] - self.created[name] for name in names)

    def elapsed(self, names: Collection[str]) -> float:
        """Seconds from the first creation among these to the last that was there."""
        return max(self.there[name] for name in names) - min(self.created[name] for name in names)


@asynccontextmanager
async def watched(client: ApiClient, scenario: Scenario) -> AsyncIterator[Arrivals]:
    """Watch all objects of the scenario's kind for the length of the block."""
    arrivals = Arrivals(scenario)
    informer = Informer(client, scenario.resource, RayObject)

    def hear(change: Change[RayObject]) -> None:
        arrivals.note(change.object)

    informer.subscribe(hear)
    async with followed(informer):
        yield arrivals


@asynccontextmanager
async def followed(informer: Informer[Any]) -> AsyncIterator[None]:
    """Run the informer for the length of the block, which begins when it knows all objects."""
    task = asyncio.create_task(informer.run())
    try:
        await informer.wait_synced(60)
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
