"""Says `Unschedulable` on pods, and on which node room is made for them, and takes it back.

Cluster autoscalers buy nodes for pods with the condition PodScheduled=False of exactly this reason, so it stands only
on members that more nodes would help, and goes when that is no longer so; a wait that is over within a moment is not
told. The node is written at once: before it is, nobody is evicted for the pod. A write carries the version that was
looked at: a binding that comes between makes it void.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from muster.engine.clock import Clock
from muster.engine.delegation import pinned_node
from muster.engine.pod_specs import verdict_shown
from muster.engine.settling import LONGEST_SETTLING, SETTLING
from muster.engine.times import rfc3339
from muster.engine.write_queue import WriteQueue
from muster.kube.background_turns import BackgroundTurns
from muster.kube.client import ApiClient, PatchKind
from muster.kube.errors import Conflict, NotFound
from muster.kube.informer import Informer
from muster.kube.objects import Pod
from muster.kube.resource import PODS
from muster.scheduler.specs import PodVerdict

WORDING_DELAY: Final = 10.0
"""Seconds that a change of the message alone may wait."""
_UNSCHEDULABLE: Final = "Unschedulable"
_SILENCE: Final = PodVerdict("Pending", "", "")
_GATED_MESSAGE: Final = "Scheduling is blocked due to non-empty scheduling gates"


class PodConditionWriter:
    """Keeps condition PodScheduled and nominated node of waiting pods as the scheduler decided last."""

    def __init__(
        self, client: ApiClient, pods: Informer[Pod], clock: Clock, turns: BackgroundTurns | None = None
    ) -> None:
        self._client = client
        self._pods = pods
        self._clock = clock
        self._wanted: dict[str, tuple[str, PodVerdict]] = {}
        give_way = (turns or BackgroundTurns()).turn
        self.queue = WriteQueue(self._write, clock, name="pod condition", give_way=give_way)

    def update(self, verdicts: Mapping[str, PodVerdict]) -> None:
        """Have these written, by the pod's `namespace/name`."""
        for key, verdict in verdicts.items():
            shown = self._shown(key)
            if shown is None:
                continue
            said = verdict_shown(shown) or _SILENCE
            same = said.reason == verdict.reason and not self.queue.is_writing(key)
            if same and said.nominated == verdict.nominated and said.reason != _UNSCHEDULABLE:
                self._wanted.pop(key, None)  # only the wording differs, and that is not written
                continue
            self._wanted[key] = (shown.metadata.uid, verdict)
            if said.nominated != verdict.nominated:
                self.queue.put(key)
            elif same:
                self.queue.put_later(key, WORDING_DELAY)
            else:
                self.queue.put_later(key, SETTLING, at_most=LONGEST_SETTLING)

    async def written(self, keys: Iterable[str]) -> bool:
        """Return true once nothing is left to write for these pods, false when one of them can't be written."""
        for key in keys:
            self.queue.put(key)
            if not await self.queue.settled(key):
                return False
        return True

    def _shown(self, key: str) -> Pod | None:
        namespace, _, name = key.partition("/")
        return self._pods.get(namespace, name)

    async def _write(self, key: str) -> None:
        shown, wanted = self._shown(key), self._wanted.get(key)
        if shown is None or wanted is None or not _waits(shown, wanted[0]):
            self._wanted.pop(key, None)
            return
        patch = pod_condition_patch(shown, wanted[1], self._clock.now())
        if patch is not None:
            with suppress(NotFound):
                await self._patch(shown, patch)
        if self._wanted.get(key) is wanted:
            del self._wanted[key]

    async def _patch(self, shown: Pod, patch: dict[str, Any]) -> None:
        meta, kind = shown.metadata, PatchKind.STRATEGIC
        try:
            written = await self._client.patch(
                PODS, meta.namespace, meta.name, patch, kind=kind, subresource="status", decode=Pod
            )
        except Conflict:
            self._pods.record(await self._client.get(PODS, meta.namespace, meta.name, decode=Pod))
            raise
        self._pods.record(written)


def _waits(pod: Pod, uid: str) -> bool:
    """Whether the pod is the one meant, on no node, and not the default scheduler's by now."""
    here = pod.spec.node_name is None and pinned_node(pod) is None
    return here and pod.metadata.uid == uid and pod.metadata.deletion_timestamp is None


def pod_condition_patch(shown: Pod, verdict: PodVerdict, now: float) -> dict[str, Any] | None:
    """The strategic merge patch for the pod's status; None when it says the right thing already."""
    status: dict[str, Any] = {}
    condition = _wanted_condition(shown, verdict, now)
    if condition is not None:
        status["conditions"] = [condition]
    if verdict.nominated != (shown.status.nominated_node_name or ""):
        status["nominatedNodeName"] = verdict.nominated or None
    if not status:
        return None
    meta = shown.metadata
    return {"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version}, "status": status}


def _wanted_condition(shown: Pod, verdict: PodVerdict, now: float) -> dict[str, Any] | None:
    """What has to be written of the condition.

    Without a reason, an `Unschedulable` gives way to what the API server itself says of a gated pod, or to nothing.
    """
    said = verdict_shown(shown)
    complains = said is not None and said.reason == _UNSCHEDULABLE
    if verdict.reason != _UNSCHEDULABLE:
        return _retraction(shown, now) if complains else None
    if said is not None and complains and said.message == verdict.message:
        return None
    return _condition(shown, _UNSCHEDULABLE, verdict.message, now)


def _retraction(shown: Pod, now: float) -> dict[str, Any]:
    if shown.spec.scheduling_gates:
        return _condition(shown, "SchedulingGated", _GATED_MESSAGE, now)
    return {"type": "PodScheduled", "$patch": "delete"}


def _condition(shown: Pod, reason: str, message: str, now: float) -> dict[str, Any]:
    there = next((each for each in shown.status.conditions if each.type == "PodScheduled"), None)
    since = there.last_transition_time if there is not None and there.status == "False" else None
    return {
        "type": "PodScheduled",
        "status": "False",
        "reason": reason,
        "message": message,
        "lastTransitionTime": since or rfc3339(now),
    }
