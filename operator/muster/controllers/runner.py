"""The loop that every controller shares: take a key, reconcile it, decide when to look again.

Many keys are worked on at once, up to a bound; one key never by two tasks. A reconciler that raises is tried again
with growing delays and disturbs no other key. Cancelling `run` cancels the reconciles at their next await and returns
when all have ended: a reconcile may be cut between any two of its writes, because the next one starts from what is
stored (P5).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

from muster.controllers.clock import Clock, SystemClock
from muster.controllers.setbacks import Setbacks
from muster.controllers.slots import Slots
from muster.controllers.workqueue import QueueClosed, WorkQueue
from muster.kube.errors import ApiError, Conflict, ImpossibleName, NamespaceTerminating, NotFound, NotServed

logger = logging.getLogger(__name__)


LOOKING_AT: ContextVar[tuple[str, str] | None] = ContextVar("LOOKING_AT", default=None)
"""The runner and the key whose look makes the change that is being told of; None for what others do."""


@contextmanager
def by_others() -> Iterator[None]:
    """What a look tells of in the block may be what others did."""
    token = LOOKING_AT.set(None)
    try:
        yield
    finally:
        LOOKING_AT.reset(token)


@dataclass(frozen=True, slots=True)
class Requeue:
    """Look at the key again in `after` seconds, whatever happens until then."""

    after: float


class Reconciler(Protocol):
    """Brings one object from what is to what should be."""

    async def reconcile(self, key: str) -> Requeue | None:
        """Read the present state of "namespace/name" (or "name"), write the difference, say when to look again."""
        ...


class Runner:
    """Works off one queue with one reconciler, as many keys at a time as there are slots."""

    def __init__(
        self,
        name: str,
        reconciler: Reconciler,
        queue: WorkQueue,
        *,
        slots: Slots | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self.name = name
        self.looks = 0
        self.failures = 0
        self.seconds = 0.0
        """How long all looks took together, by the clock."""
        self._reconciler = reconciler
        self.queue = queue
        self._slots = slots or Slots(10)
        self._missing = Setbacks(self._clock)
        """The keys whose looks find something gone."""

    async def run(self) -> None:
        """Work until the queue is closed or the task is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                await self._slots.one_is_free()
                try:
                    key = await self.queue.get()
                except QueueClosed:
                    return
                self._slots.take()
                tasks.create_task(self._work(key), name=f"{self.name} {key}")

    async def _work(self, key: str) -> None:
        began = self._clock.monotonic()
        LOOKING_AT.set((self.name, key))
        try:
            requeue = await self._reconciler.reconcile(key)
        except Exception as error:
            self.failures += 1
            self._report(key, error, self.queue.failed(key))
        else:
            self.queue.succeeded(key)
            self._missing.over(key)
            if requeue is not None:
                self.queue.add_after(key, requeue.after)
        finally:
            self.looks += 1
            self.seconds += self._clock.monotonic() - began
            self.queue.done(key)
            self._slots.give_back()

    def _report(self, key: str, error: Exception, delay: float) -> None:
        if isinstance(error, Conflict | NamespaceTerminating) or self._just_gone(key, error):
            # Normal: somebody else wrote in between, and the next look starts from what they wrote; or all that is in
            # a namespace goes, and its owners with it; or an object went in between, as they do with their owners.
            logger.debug("%s %s: %s; again in %.1fs", self.name, key, error, delay)
        elif isinstance(error, ApiError):
            logger.warning("%s %s: %s; again in %.1fs", self.name, key, error, delay)
        else:
            logger.error("%s %s: again in %.1fs", self.name, key, delay, exc_info=error)

    def _just_gone(self, key: str, error: Exception) -> bool:
        """Whether an object was not found that the watch has not told to be gone yet.

        If it is still wanted after a while, something else is wrong: a CRD without the status subresource has the
        server answer so too.
        """
        if not isinstance(error, NotFound) or isinstance(error, NotServed | ImpossibleName):
            return False
        return not self._missing.last(key)
