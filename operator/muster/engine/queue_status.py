"""Writes to the status of queues, when it has changed: what they use (`allocated`), and why one can't be used.

The latter is the condition `Broken` (Volcano's Queue has no conditions; where its CRD is installed the API server drops
them, and the Warning event remains). It is written only where something is or was wrong.

An account that somebody else has changed is put right. Nothing is decided for that, and whoever goes on changing it (as
another scheduler would, that keeps an account of its own) is answered after longer and longer pauses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from muster.engine.amounts import TranslationError, amounts, quantities, resources
from muster.engine.clock import Clock
from muster.engine.times import rfc3339
from muster.engine.write_queue import WriteQueue
from muster.kube.background_turns import BackgroundTurns
from muster.kube.client import ApiClient
from muster.kube.errors import Conflict
from muster.kube.informer import Change, Informer
from muster.kube.objects import Quantities, Queue, QueueCondition
from muster.kube.resource import QUEUES
from muster.scheduler.outcome import QueueStatus
from muster.scheduler.reasons import Reason, describe
from muster.scheduler.resources import Resources

BROKEN: Final = "Broken"
"""The condition of a queue that can't be used."""
GATHERING: Final = 1.0
"""Seconds for which changes of one queue are gathered into one write."""
_LONGEST_PAUSE: Final = 60.0
"""Seconds after which an account is put right that others change again and again."""
_PEACE: Final = 300.0
"""Seconds without such a change after which the next one is put right at once."""


class QueueWriter:
    """Keeps the accounts in the Queues' status as the scheduler keeps them, from `attach` until `close`."""

    def __init__(
        self, client: ApiClient, queues: Informer[Queue], clock: Clock, turns: BackgroundTurns | None = None
    ) -> None:
        self._client = client
        self._queues = queues
        self._clock = clock
        self._wanted: dict[str, QueueStatus] = {}
        self._altered: dict[str, Quantities | None] = {}
        """Where the server stores another account than it is given: which."""
        self._disputes: dict[str, tuple[int, float]] = {}
        """How often in a row somebody else has changed an account, and when last."""
        self._closed = False
        give_way = (turns or BackgroundTurns()).turn
        self.queue = WriteQueue(self._write, clock, name="Queue status", concurrency=4, give_way=give_way)

    def attach(self) -> None:
        """Hear of what others write."""
        self._queues.subscribe(self._on_change)

    def close(self) -> None:
        """Pass over every change from now on: informers outlive the engine that keeps the accounts."""
        self._closed = True

    def update(self, statuses: Mapping[str, QueueStatus]) -> None:
        """Have these written, by the queue's name."""
        for name, status in statuses.items():
            self._wanted[name] = status
            self.queue.put_later(name, GATHERING)

    def _on_change(self, change: Change[Queue]) -> None:
        name = change.object.metadata.name
        if change.new is None:
            self._forget(name)
        elif not self._closed and name in self._wanted and self._is_wrong(change.new, self._wanted[name]):
            self._put_right(name)

    def _put_right(self, name: str) -> None:
        if self.queue.is_open(name) and not self.queue.is_writing(name):
            return  # what is to be written is to be written all the same
        count, last = self._disputes.get(name, (-1, 0.0))
        count = 0 if self._clock.now() - last > _PEACE else count + 1
        self._disputes[name] = (count, self._clock.now())
        self.queue.put_later(name, min(GATHERING * 2.0 ** min(count, 16), _LONGEST_PAUSE))

    def _is_wrong(self, shown: Queue, wanted: QueueStatus) -> bool:
        """Whether the account is neither the scheduler's nor what the server makes of that."""
        name, allocated = shown.metadata.name, shown.status.allocated
        as_altered = name in self._altered and self._altered[name] == allocated
        return not as_altered and not _says(shown, wanted.allocated)

    def _forget(self, name: str) -> None:
        self._wanted.pop(name, None)
        self._altered.pop(name, None)
        self._disputes.pop(name, None)

    async def _write(self, name: str) -> None:
        shown, wanted = self._queues.get(None, name), self._wanted.get(name)
        if shown is None or wanted is None:
            self._forget(name)
            return
        patch = queue_patch(shown, wanted, self._clock.now())
        if patch is not None:
            await self._patch(name, patch, wanted.allocated)

    async def _patch(self, name: str, patch: dict[str, Any], allocated: Resources) -> None:
        try:
            written = await self._client.patch(QUEUES, None, name, patch, subresource="status", decode=Queue)
        except Conflict:
            self._queues.record(await self._client.get(QUEUES, None, name, decode=Queue))
            raise
        self._altered.pop(name, None)
        if not _says(written, allocated):
            self._altered[name] = written.status.allocated
        self._queues.record(written)


def queue_patch(shown: Queue, status: QueueStatus, now: float) -> dict[str, Any] | None:
    """The merge patch that makes the queue's status say `status`; None when it does, or when both say nothing."""
    changed: dict[str, Any] = {}
    if not _says(shown, status.allocated):
        changed["allocated"] = _allocated(shown, status.allocated)
    conditions = _conditions(shown, status.problem, now)
    if conditions != shown.status.conditions:
        changed["conditions"] = msgspec.to_builtins(conditions)
    return {"metadata": {"uid": shown.metadata.uid}, "status": changed} if changed else None


def _allocated(shown: Queue, allocated: Resources) -> dict[str, str | None]:
    wanted: dict[str, str | None] = {**quantities(allocated)}
    gone: dict[str, str | None] = {name: None for name in shown.status.allocated or {} if name not in wanted}
    return {**gone, **wanted}


def _conditions(shown: Queue, problem: Reason | None, now: float) -> list[QueueCondition]:
    """The whole list, those of others as they are."""
    there = shown.status.conditions
    ours = next((each for each in there if each.type == BROKEN), None)
    if problem is None and (ours is None or ours.status == "False"):
        return there
    wanted = QueueCondition(BROKEN, "False") if problem is None else _broken(problem)
    since = ours.last_transition_time if ours is not None and ours.status == wanted.status else rfc3339(now)
    wanted = msgspec.structs.replace(wanted, last_transition_time=since)
    return [wanted if each is ours else each for each in there] + ([wanted] if ours is None else [])


def _broken(problem: Reason) -> QueueCondition:
    return QueueCondition(BROKEN, "True", problem.code.value, describe(problem))


def _says(shown: Queue, allocated: Resources) -> bool:
    try:
        return resources(amounts(shown.status.allocated, "status.allocated")) == allocated
    except TranslationError:
        return False
