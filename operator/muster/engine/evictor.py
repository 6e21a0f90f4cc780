"""Carries evictions out: says why on the pod (conditions Ready and DisruptionTarget, events on it and on its PodGroup),
then deletes it by its UID.

The pod's own grace period holds. A pod that is gone or has been replaced under its name needs no eviction any more; it
has to be read to know that, for a write is also refused as a conflict when others write to the same pod all the time.
To say why is a courtesy: where the server will not have it, the pod goes all the same. An eviction that fails for good
is handed back to the model, which then counts the pod as staying; the PodGroup that it was for hears of it. Should the
model decide the same again, there is a pause first, longer each time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from muster.engine.backoff import Backoff
from muster.engine.clock import Clock
from muster.engine.setbacks import Setbacks
from muster.engine.times import rfc3339
from muster.kube.client import ApiClient, PatchKind
from muster.kube.errors import ApiError, Conflict, Forbidden, Invalid, NotFound
from muster.kube.events import EventRecorder, ObjectReference
from muster.kube.objects import Pod
from muster.kube.resource import PODS
from muster.scheduler.outcome import Eviction

logger = logging.getLogger(__name__)


class Evictor:
    """Evicts `concurrency` pods at a time, each with at most `tries`; `failed` gets what could not be evicted.

    `pod_group` names a PodGroup (`namespace/name`), for the events on it: the evicted pod's, and who gains by it.
    """

    def __init__(
        self,
        client: ApiClient,
        recorder: EventRecorder,
        clock: Clock,
        *,
        failed: Callable[[Eviction, str], None],
        pod_group: Callable[[str], ObjectReference | None] = lambda _: None,
        concurrency: int = 10,
        tries: int = 5,
        backoff: Backoff | None = None,
        setback: Backoff | None = None,
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._clock = clock
        self._failed = failed
        self._pod_group = pod_group
        self._slots = asyncio.Semaphore(concurrency)
        self._tries = tries
        self._backoff = backoff or Backoff(first=0.1, limit=5.0)
        self._setbacks = Setbacks(clock, setback or Backoff(first=0.1, limit=30.0))
        self._posted: asyncio.Queue[tuple[list[Eviction], Callable[[], Awaitable[bool]] | None]] = asyncio.Queue()
        self._open = 0

    def post(self, evictions: Iterable[Eviction], after: Callable[[], Awaitable[bool]] | None = None) -> None:
        """Have pods evicted, once `after` (if any) is true; if it is false none of them is."""
        batch = list(evictions)
        self._open += len(batch)
        self._posted.put_nowait((batch, after))

    @property
    def idle(self) -> bool:
        """Tell whether no eviction is under way."""
        return self._open == 0

    async def run(self) -> None:
        """Carry out until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                batch, after = await self._posted.get()
                group.create_task(self._carry_out_all(batch, after))

    async def _carry_out_all(self, batch: list[Eviction], after: Callable[[], Awaitable[bool]] | None) -> None:
        await self._setbacks.rest(*(eviction.task_uid for eviction in batch))
        if after is not None and not await after():
            for eviction in batch:
                self._hand_back(eviction, "for whom room is made could not be written")
            return
        async with asyncio.TaskGroup() as group:
            for eviction in batch:
                group.create_task(self._carry_out(eviction))

    async def _carry_out(self, eviction: Eviction) -> None:
        complaint = await self._evict(eviction)
        if complaint is not None:
            self._hand_back(eviction, complaint)
            return
        self._open -= 1
        self._setbacks.forget(eviction.task_uid)
        self._recorder.event(pod_reference(eviction), "Warning", "Evict", explanation(eviction), "Evicting")
        group = self._pod_group(eviction.job)
        if group is not None:
            message = f"{eviction.pod}: {explanation(eviction)}"
            self._recorder.event(group, "Normal", "Evict", message, "Evicting", change=eviction.task_uid)

    def _hand_back(self, eviction: Eviction, complaint: str) -> None:
        self._open -= 1
        self._setbacks.remember(eviction.task_uid)
        logger.warning("%s/%s was not evicted: %s", eviction.namespace, eviction.pod, complaint)
        group = self._pod_group(eviction.by)
        if group is not None:
            message = f"{eviction.namespace}/{eviction.pod} could not be evicted: {complaint}"
            self._recorder.event(group, "Warning", "FailedEviction", message, "Evicting")
        self._failed(eviction, complaint)

    async def _evict(self, eviction: Eviction) -> str | None:
        """Mark and delete the pod; return what went wrong for good, or None."""
        failures = 0
        while True:
            try:
                async with self._slots:
                    await self._mark_and_delete(eviction)
            except NotFound:
                return None
            except ApiError as error:
                failures += 1
                if failures >= self._tries or isinstance(error, Forbidden | Invalid):
                    return str(error)
            else:
                return None
            await self._clock.sleep(self._backoff.pause(failures))

    async def _mark_and_delete(self, eviction: Eviction) -> None:
        """Raises NotFound when this very pod is there no more."""
        try:
            await self._mark(eviction)
            await self._client.delete(PODS, eviction.namespace, eviction.pod, uid=eviction.task_uid)
        except Conflict:
            found = await self._client.get(PODS, eviction.namespace, eviction.pod, decode=Pod)
            if found.metadata.uid != eviction.task_uid:
                raise NotFound(404, "NotFound", f"the pod has another UID, {found.metadata.uid}") from None
            raise

    async def _mark(self, eviction: Eviction) -> None:
        told = {"message": explanation(eviction), "lastTransitionTime": rfc3339(self._clock.now())}
        conditions = [
            {"type": "Ready", "status": "False", "reason": "Evict", **told},
            {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", **told},
        ]
        patch = {"metadata": {"uid": eviction.task_uid}, "status": {"conditions": conditions}}
        kind = PatchKind.STRATEGIC
        try:
            await self._client.patch(PODS, eviction.namespace, eviction.pod, patch, kind=kind, subresource="status")
        except (Forbidden, Invalid) as error:
            logger.warning("%s/%s is evicted without a condition: %s", eviction.namespace, eviction.pod, error)


def explanation(eviction: Eviction) -> str:
    """Why a pod is evicted, in a sentence."""
    if eviction.reason == "rollback":
        return f"Pod is evicted, because its gang {eviction.by} fell below its minimum and could not be completed"
    gain = f" for {eviction.by}" if eviction.by != eviction.job else ""
    return f"Pod is evicted, because of {eviction.reason}{gain}"


def pod_reference(eviction: Eviction) -> ObjectReference:
    """The evicted pod, as events name it."""
    return ObjectReference("v1", "Pod", eviction.namespace, eviction.pod, eviction.task_uid)
