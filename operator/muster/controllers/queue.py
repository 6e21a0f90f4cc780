"""The states of Queues, and the two queues that always exist.

A queue that is to close is Closing while PodGroups name it and Closed when none does any more; only `status.state` is
written, and only when it changes. Opening and closing are commands of users; what follows from them is worked out here,
and each change is told in an event. The state that a queue had before is remembered, not stored: a change that came
while Muster was away is not told, but for one that Muster itself makes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from muster.api.queue import QueueState
from muster.controllers.context import Context
from muster.controllers.runner import Requeue
from muster.kube.errors import AlreadyExists, NotFound
from muster.kube.news import EventType, ObjectReference
from muster.kube.objects import PodGroup, Queue
from muster.kube.resource import QUEUES

ROOT = "root"
DEFAULT = "default"
QUEUE_INDEX = "queue"
"""Index of PodGroups: the queue that they name."""

_BUILT_IN: Mapping[str, Mapping[str, Any]] = {
    ROOT: {"weight": 1, "reclaimable": False},
    DEFAULT: {"weight": 1, "parent": ROOT},
}

OPENED: Final = "OpenQueue"
CLOSED: Final = "CloseQueue"
"""Volcano's event reasons."""
UNKNOWN: Final = "UnknownQueueState"


def queue_of(pod_group: PodGroup) -> str:
    """The queue that a PodGroup is in."""
    return pod_group.spec.queue or DEFAULT


def next_state(state: str | None, *, in_use: bool) -> QueueState:
    """The state that a queue should have, from the stored one and whether any PodGroup names it."""
    if state in (None, "", QueueState.OPEN):
        return QueueState.OPEN
    if state == QueueState.CLOSING:
        return QueueState.CLOSING if in_use else QueueState.CLOSED
    if state == QueueState.CLOSED:
        return QueueState.CLOSED
    return QueueState.UNKNOWN


def change_of_state(before: str | None, stored: str | None, *, members: int) -> tuple[EventType, str, str] | None:
    """Type, reason and message of the event about a queue that was in the state `before`; None if it still is.

    `stored` is the state that it is given, `members` how many PodGroups name it.
    """
    state = next_state(stored, in_use=members > 0)
    if state == (before or QueueState.OPEN):
        return None
    if state is QueueState.OPEN:
        return "Normal", OPENED, "The queue is open"
    if state is QueueState.CLOSED:
        return "Normal", CLOSED, "The queue is closed: nothing new starts in it"
    if state is QueueState.CLOSING:
        message = (
            f"The queue closes: nothing new starts in it; PodGroups that name it and keep it from Closed: {members}"
        )
        return "Normal", CLOSED, message
    known = f"{QueueState.OPEN}, {QueueState.CLOSING} and {QueueState.CLOSED}"
    return "Warning", UNKNOWN, f'status.state: "{stored}" is none of {known}; nothing new starts in it until it is Open'


class QueueReconciler:
    """Keeps the state of Queues true."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._last: dict[str, tuple[str, QueueState]] = {}
        """By name, the UID of the queue that was seen last and the state in which it was."""
        context.pod_groups.informer.add_index(QUEUE_INDEX, lambda pod_group: [queue_of(pod_group)])

    async def reconcile(self, key: str) -> Requeue | None:
        """Look at the queue of this name."""
        queue = self._context.queues.informer.get(None, key)  # one that can't be read may have a parent and a state
        if queue is None:
            self._last.pop(key, None)
            if key in _BUILT_IN:
                await self._create(key, _BUILT_IN[key])
            return None
        if queue.metadata.deletion_timestamp is not None:
            return None
        queue = await self._give_parent(queue)
        members = len(self._context.pod_groups.informer.by_index(QUEUE_INDEX, key))
        state = next_state(queue.status.state, in_use=members > 0)
        if queue.status.state != state:
            await self._write_state(queue, state)
        self._tell(queue, state, members)
        return None

    def _tell(self, queue: Queue, state: QueueState, members: int) -> None:
        meta, stored = queue.metadata, queue.status.state
        uid, before = self._last.get(meta.name, ("", None))
        change = change_of_state(before if uid == meta.uid else stored, stored, members=members)
        self._last[meta.name] = (meta.uid, state)
        if change is None:
            return
        about = ObjectReference(QUEUES.api_version, QUEUES.kind, None, meta.name, meta.uid)
        self._context.recorder.event(about, *change, "Sync", change=meta.resource_version)

    async def _create(self, name: str, spec: Mapping[str, Any]) -> None:
        manifest = {
            "apiVersion": QUEUES.api_version,
            "kind": QUEUES.kind,
            "metadata": {"name": name},
            "spec": dict(spec),
        }
        try:
            await self._context.queues.create(manifest)
        except AlreadyExists:
            return

    async def _give_parent(self, queue: Queue) -> Queue:
        """Every queue but the root has a parent: the root, unless it says otherwise."""
        if queue.metadata.name == ROOT or queue.spec.parent:
            return queue
        return await self._context.queues.patch(queue, {"spec": {"parent": ROOT}})

    async def _write_state(self, queue: Queue, state: QueueState) -> None:
        meta = queue.metadata
        body = {"metadata": {"resourceVersion": meta.resource_version}, "status": {"state": state.value}}
        try:
            written = await self._context.client.patch(
                QUEUES, None, meta.name, body, subresource="status", decode=Queue
            )
        except NotFound:
            return
        self._context.queues.informer.record(written)
