"""Writes what the scheduler says about gangs to their PodGroups, and why one waits as an event once per change.

What is decided is written once it has stood for a moment, so that a gang on its way from its first pod to its place
costs one write and no word of a wait that was none, and a busy cluster no write for each gang and cycle; and it gives
way to bindings that are under way. What somebody waits for is written at once: the nodes held for companions, without
which nothing is bound, and the admission of a gang whose pods others may make only then. So is what a restart could not
find out: that a gang is broken, and which minimum it has met where that is not the one it asks for now.

Where the annotations of others leave no room for ours the status says what it can, and an event what is missing.

The numbers in a reason change for every gang that waits with every other that comes or goes. They are written with what
else there is to write, and by themselves so rarely that it costs the same however many gangs wait.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from muster.engine import wire_keys
from muster.engine.clock import Clock
from muster.engine.notes import stated_count
from muster.engine.podgroup_patch import (
    LARGEST,
    UNSCHEDULABLE,
    bytes_of_others,
    changed_annotations,
    crowded_out,
    differs_in_numbers_only,
    pod_group_patch,
    reason_shown,
)
from muster.engine.references import reference
from muster.engine.refreshing import Refreshing
from muster.engine.settling import LONGEST_SETTLING, SETTLING
from muster.engine.write_queue import WriteQueue
from muster.kube.background_turns import BackgroundTurns
from muster.kube.client import ApiClient
from muster.kube.errors import Conflict
from muster.kube.events import EventRecorder, EventType
from muster.kube.informer import Informer
from muster.kube.objects import PodGroup
from muster.kube.resource import PODGROUPS
from muster.scheduler.outcome import PodGroupStatus
from muster.scheduler.reasons import ReasonClass, describe
from muster.scheduler.specs import Phase

CROWDED_OUT: Final = "AnnotationsTooLarge"
"""Event on a PodGroup whose annotations leave no room for Muster's."""


class PodGroupWriter:
    """Keeps the status of PodGroups, their reason and their companions' nodes as the scheduler decided last."""

    def __init__(
        self,
        client: ApiClient,
        pod_groups: Informer[PodGroup],
        recorder: EventRecorder,
        clock: Clock,
        turns: BackgroundTurns | None = None,
    ) -> None:
        self._client = client
        self._pod_groups = pod_groups
        self._recorder = recorder
        self._clock = clock
        self._wanted: dict[str, tuple[str, PodGroupStatus]] = {}
        self._refreshing = Refreshing()
        give_way = (turns or BackgroundTurns()).turn
        self.queue = WriteQueue(self._write, clock, name="PodGroup status", give_way=give_way)

    def update(self, statuses: Mapping[str, PodGroupStatus]) -> None:
        """Have these written, by `namespace/name`. They are about the PodGroups that the informer shows now."""
        for key, status in statuses.items():
            shown = self._shown(key)
            if shown is None:
                self._wanted.pop(key, None)
                continue
            self._wanted[key] = (shown.metadata.uid, status)
            if _is_urgent(shown, status):
                self.queue.put(key)
            elif self._is_worth_a_write(key, shown, status):
                self.queue.put_later(key, SETTLING, at_most=LONGEST_SETTLING)

    def _is_worth_a_write(self, key: str, shown: PodGroup, status: PodGroupStatus) -> bool:
        """Not where others have come or gone and the reason has other numbers for it, but for a few now and then."""
        if self.queue.is_open(key) or not differs_in_numbers_only(shown, status):
            return True
        if self._refreshing.is_due(key, self._clock.now()):
            return True
        self._wanted.pop(key, None)
        return False

    def holds_back(self, key: str) -> bool:
        """Tell whether the nodes of the gang's companions are decided but not on the server yet.

        A note that finds no room there holds nothing back: without it only a restart may give these places away.
        """
        shown, wanted = self._shown(key), self._wanted.get(key)
        if shown is None or wanted is None or not wanted[1].companions:
            return False
        return wire_keys.COMPANION_NODES in changed_annotations(shown, wanted[1])

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
        self._say_crowded_out(shown, wanted[1])
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
        """Tell of a new reason, before it is written: a write whose answer is lost is not told of again."""
        # An event is due when the topic changes.
        if status.reason is None or _topic(shown) == status.reason.topic or _is_told_in_words(shown, status):
            return
        # The same news may be true a second time; the transitions that were shown tell the times apart.
        change = " ".join(each.transition_id or "" for each in shown.status.conditions)
        # Pods are made one by one: that not all are there yet is how every gang begins.
        kind: EventType = "Normal" if status.reason.reason_class is ReasonClass.INCOMPLETE else "Warning"
        about, text = reference(PODGROUPS, shown.metadata), describe(status.reason)
        self._recorder.event(about, kind, UNSCHEDULABLE, text, "Scheduling", change=change)

    def _say_crowded_out(self, shown: PodGroup, status: PodGroupStatus) -> None:
        missing = crowded_out(shown, status)
        if not missing:
            return
        text = (
            f"metadata.annotations: {bytes_of_others(shown)} of {LARGEST} bytes are taken, which leaves no room for "
            f"{', '.join(missing)}: shorten them"
        )
        self._recorder.event(reference(PODGROUPS, shown.metadata), "Warning", CROWDED_OUT, text, "Scheduling")


def _is_urgent(shown: PodGroup, status: PodGroupStatus) -> bool:
    """Whether somebody would miss it: who waits for the admission, or we ourselves after a restart."""
    return _is_awaited(shown, status) or _would_be_forgotten(shown, status)


def _is_awaited(shown: PodGroup, status: PodGroupStatus) -> bool:
    """Whether somebody may make the gang's pods only when it reads that the gang is admitted, as Volcano's Jobs do."""
    if status.phase is not Phase.INQUEUE or shown.status.phase == status.phase.value:
        return False
    if status.reason is None or status.reason.reason_class is not ReasonClass.INCOMPLETE:
        return False
    # Our own controllers make a gang's pods without waiting for its admission.
    return any(
        each.controller and not each.api_version.startswith(wire_keys.RAY) for each in shown.metadata.owner_references
    )


def _would_be_forgotten(shown: PodGroup, status: PodGroupStatus) -> bool:
    """Whether the gang is broken, or whole by another minimum than one would take it for that reads the PodGroup."""
    notes = shown.metadata.annotations
    if status.broken_since is not None and wire_keys.BROKEN_SINCE not in notes:
        return True
    noted = stated_count(notes.get(wire_keys.MINIMUM_MET))
    taken_for = noted if noted is not None else max(0, shown.spec.min_member or 0)
    return status.minimum_met is not None and status.minimum_met != taken_for


def _is_told_in_words(shown: PodGroup, status: PodGroupStatus) -> bool:
    """Whether a reason that finds no room as an annotation stands in the condition already, but for its numbers."""
    if wire_keys.REASON not in crowded_out(shown, status):
        return False
    there = (each for each in shown.status.conditions if each.type == UNSCHEDULABLE and each.status == "True")
    told = {_wording(each.message) for each in there}
    return any(_wording(each.message) in told for each in status.conditions if each.type == UNSCHEDULABLE)


def _wording(message: str | None) -> str:
    return _NUMBERS.sub("", message or "")


_NUMBERS: Final = re.compile(r"[0-9]+")
_TOPIC_FIELDS: Final = ("code", "queue", "resource", "role")


def _topic(shown: PodGroup) -> tuple[Any, ...] | None:
    document = reason_shown(shown)
    return None if document is None else tuple(document.get(name) for name in _TOPIC_FIELDS)
