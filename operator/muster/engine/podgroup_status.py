"""Writes what the scheduler says about gangs to their PodGroups, and says it as events once per change.

A change of phase or of the kind of reason is written at once. One that only moves numbers may wait a little, so that a
busy cluster does not cost a write for each waiting gang and cycle.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from muster.engine import wire_keys
from muster.engine.clock import Clock
from muster.engine.podgroup_patch import SCHEDULED, UNSCHEDULABLE, pod_group_patch, wanted_annotations
from muster.engine.references import reference
from muster.engine.write_queue import WriteQueue
from muster.kube.client import ApiClient
from muster.kube.errors import Conflict
from muster.kube.events import EventRecorder, EventType
from muster.kube.informer import Informer
from muster.kube.objects import PodGroup
from muster.kube.resource import PODGROUPS
from muster.scheduler.outcome import PodGroupStatus
from muster.scheduler.reasons import Reason, ReasonClass, describe

NUMBERS_DELAY: Final = 1.0
"""Seconds that a change of mere numbers may wait."""


class PodGroupWriter:
    """Keeps the status of PodGroups, their reason and their companions' nodes as the scheduler decided last."""

    def __init__(
        self, client: ApiClient, pod_groups: Informer[PodGroup], recorder: EventRecorder, clock: Clock
    ) -> None:
        self._client = client
        self._pod_groups = pod_groups
        self._recorder = recorder
        self._clock = clock
        self._wanted: dict[str, tuple[str, PodGroupStatus]] = {}
        self.queue = WriteQueue(self._write, clock, name="PodGroup status")

    def update(self, statuses: Mapping[str, PodGroupStatus]) -> None:
        """Have these written, by `namespace/name`. They are about the PodGroups that the informer shows now."""
        for key, status in statuses.items():
            shown = self._shown(key)
            if shown is None:
                self._wanted.pop(key, None)
                continue
            self._wanted[key] = (shown.metadata.uid, status)
            if shown.status.phase == status.phase.value and _topic(shown) == topic(status.reason):
                self.queue.put_later(key, NUMBERS_DELAY)
            else:
                self.queue.put(key)

    def holds_back(self, key: str) -> bool:
        """Tell whether the nodes of the gang's companions are decided but not on the server yet."""
        shown, wanted = self._shown(key), self._wanted.get(key)
        if shown is None or wanted is None or not wanted[1].companions:
            return False
        note = wanted_annotations(wanted[1])[wire_keys.COMPANION_NODES]
        return shown.metadata.annotations.get(wire_keys.COMPANION_NODES) != note

    async def written(self, key: str) -> bool:
        """Return once nothing is left to write for the PodGroup; False when it could not be written or is gone."""
        self.queue.put(key)
        written = await self.queue.settled(key)
        return written and self._shown(key) is not None and not self.holds_back(key)

    def _shown(self, key: str) -> PodGroup | None:
        namespace, _, name = key.partition("/")
        return self._pod_groups.get(namespace, name)

    async def _write(self, key: str) -> None:
        shown, wanted = self._shown(key), self._wanted.get(key)
        if shown is None or wanted is None or shown.metadata.uid != wanted[0]:
            self._wanted.pop(key, None)
            return
        patch = pod_group_patch(shown, wanted[1], self._clock.now())
        if patch is not None:
            self._announce(shown, wanted[1])
            await self._patch(shown, patch)
        if self._wanted.get(key) is wanted:
            del self._wanted[key]

    async def _patch(self, shown: PodGroup, patch: dict[str, Any]) -> None:
        meta = shown.metadata
        try:
            written = await self._client.patch(PODGROUPS, meta.namespace, meta.name, patch, decode=PodGroup)
        except Conflict:
            self._pod_groups.record(await self._client.get(PODGROUPS, meta.namespace, meta.name, decode=PodGroup))
            raise
        self._pod_groups.record(written)

    def _announce(self, shown: PodGroup, status: PodGroupStatus) -> None:
        """Tell of a change, before it is written: a write whose answer is lost is not told of again."""
        about = reference(PODGROUPS, shown.metadata)
        # The same news may be true a second time; the transitions that were shown tell the times apart.
        change = " ".join(each.transition_id or "" for each in shown.status.conditions)
        if status.reason is not None and _topic(shown) != topic(status.reason):
            # Pods are made one by one: that not all are there yet is how every gang begins.
            kind: EventType = "Normal" if status.reason.reason_class is ReasonClass.INCOMPLETE else "Warning"
            self._recorder.event(about, kind, UNSCHEDULABLE, describe(status.reason), "Scheduling", change=change)
        scheduled = any(each.type == SCHEDULED and each.status for each in status.conditions)
        if scheduled and not _is_scheduled(shown):
            self._recorder.event(about, "Normal", SCHEDULED, "pod group is ready", "Scheduling", change=change)


_TOPIC_FIELDS: Final = ("code", "queue", "resource", "role")


def topic(reason: Reason | None) -> tuple[Any, ...] | None:
    """What a reason is about, without its numbers: an event is due when this changes."""
    return None if reason is None else (reason.code.value, reason.queue, reason.resource, reason.role)


def _topic(shown: PodGroup) -> tuple[Any, ...] | None:
    text = shown.metadata.annotations.get(wire_keys.REASON)
    try:
        document = msgspec.json.decode(text, type=dict[str, Any]) if text else None
    except msgspec.MsgspecError:
        document = None
    return None if document is None else tuple(document.get(name) for name in _TOPIC_FIELDS)


def _is_scheduled(group: PodGroup) -> bool:
    return any(each.type == SCHEDULED and each.status == "True" for each in group.status.conditions)
