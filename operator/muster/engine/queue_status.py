"""Writes what queues use to their status (`status.allocated`), when it has changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from muster.engine.amounts import TranslationError, amounts, quantities, resources
from muster.engine.clock import Clock
from muster.engine.write_queue import WriteQueue
from muster.kube.client import ApiClient
from muster.kube.errors import Conflict
from muster.kube.informer import Informer
from muster.kube.objects import Queue
from muster.kube.resource import QUEUES
from muster.scheduler.outcome import QueueStatus
from muster.scheduler.resources import Resources

GATHERING: Final = 0.1
"""Seconds for which changes of one queue are gathered into one write."""


class QueueWriter:
    """Keeps the accounts in the Queues' status as the scheduler keeps them."""

    def __init__(self, client: ApiClient, queues: Informer[Queue], clock: Clock) -> None:
        self._client = client
        self._queues = queues
        self._wanted: dict[str, Resources] = {}
        self.queue = WriteQueue(self._write, clock, name="Queue status", concurrency=4)

    def update(self, statuses: Mapping[str, QueueStatus]) -> None:
        """Have these written, by the queue's name."""
        for name, status in statuses.items():
            self._wanted[name] = status.allocated
            self.queue.put_later(name, GATHERING)

    async def _write(self, name: str) -> None:
        shown, wanted = self._queues.get(None, name), self._wanted.get(name)
        if shown is None or wanted is None:
            self._wanted.pop(name, None)
            return
        patch = queue_patch(shown, wanted)
        if patch is not None:
            await self._patch(name, patch)
        if self._wanted.get(name) is wanted:
            del self._wanted[name]

    async def _patch(self, name: str, patch: dict[str, Any]) -> None:
        try:
            written = await self._client.patch(QUEUES, None, name, patch, subresource="status", decode=Queue)
        except Conflict:
            self._queues.record(await self._client.get(QUEUES, None, name, decode=Queue))
            raise
        self._queues.record(written)


def queue_patch(shown: Queue, allocated: Resources) -> dict[str, Any] | None:
    """The merge patch that makes the queue's status say `allocated`; None when it does, or when both say nothing."""
    there = shown.status.allocated or {}
    if _says(shown, allocated):
        return None
    wanted: dict[str, str | None] = {**quantities(allocated)}
    gone: dict[str, str | None] = {name: None for name in there if name not in wanted}
    return {"metadata": {"uid": shown.metadata.uid}, "status": {"allocated": {**gone, **wanted}}}


def _says(shown: Queue, allocated: Resources) -> bool:
    try:
        return resources(amounts(shown.status.allocated, "status.allocated")) == allocated
    except TranslationError:
        return False
