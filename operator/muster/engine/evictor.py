"""Carries evictions out: says why on the pod (condition DisruptionTarget, event), then deletes it by its UID.

The pod's own grace period holds. A pod that is gone or has been replaced under its name needs no eviction any more; it
has to be read to know that, for a write is also refused as a conflict when others write to the same pod all the time.
To say why is a courtesy: where the server will not have it, the pod goes all the same. An eviction that fails for good
is handed back to the model, which then counts the pod as staying.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from muster.engine.backoff import Backoff
from muster.engine.clock import Clock
from muster.engine.times import rfc3339
from muster.kube.client import ApiClient, PatchKind
from muster.kube.errors import ApiError, Conflict, Forbidden, Invalid, NotFound
from muster.kube.events import EventRecorder, ObjectReference
from muster.kube.objects import Pod
from muster.kube.resource import PODS
from muster.scheduler.outcome import Eviction

logger = logging.getLogger(__name__)


class Evictor:
    """Evicts `concurrency` pods at a time, each with at most `tries`; `failed` gets what could not be evicted."""

    def __init__(
        self,
        client: ApiClient,
        recorder: EventRecorder,
        clock: Clock,
        *,
        failed: Callable[[Eviction, str], None],
        concurrency: int = 10,
        tries: int = 5,
        backoff: Backoff | None = None,
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._clock = clock
        self._failed = failed
        self._slots = asyncio.Semaphore(concurrency)
        self._tries = tries
        self._backoff = backoff or Backoff(first=0.1, limit=5.0)
        self._posted: asyncio.Queue[Eviction] = asyncio.Queue()
        self._open = 0

    def post(self, evictions: Iterable[Eviction]) -> None:
        """Have pods evicted."""
        for eviction in evictions:
            self._open += 1
            self._posted.put_nowait(eviction)

    @property
    def idle(self) -> bool:
        """Tell whether no eviction is under way."""
        return self._open == 0

    async def run(self) -> None:
        """Carry out until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                group.create_task(self._carry_out(await self._posted.get()))

    async def _carry_out(self, eviction: Eviction) -> None:
        complaint = await self._evict(eviction)
        self._open -= 1
        if complaint is None:
            self._recorder.event(pod_reference(eviction), "Warning", "Evict", explanation(eviction), "Evicting")
        else:
            logger.warning("%s/%s was not evicted: %s", eviction.namespace, eviction.pod, complaint)
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
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": explanation(eviction),
            "lastTransitionTime": rfc3339(self._clock.now()),
        }
        patch = {"metadata": {"uid": eviction.task_uid}, "status": {"conditions": [condition]}}
        kind = PatchKind.STRATEGIC
        try:
            await self._client.patch(PODS, eviction.namespace, eviction.pod, patch, kind=kind, subresource="status")
        except (Forbidden, Invalid) as error:
            logger.warning("%s/%s is evicted without a condition: %s", eviction.namespace, eviction.pod, error)


def explanation(eviction: Eviction) -> str:
    """Why a pod is evicted, in a sentence."""
    if eviction.reason == "rollback":
        return f"Pod is evicted, because its gang {eviction.by} fell below its minimum and could not be completed"
    return f"Pod is evicted, because of {eviction.reason} for {eviction.by}"


def pod_reference(eviction: Eviction) -> ObjectReference:
    """The evicted pod, as events name it."""
    return ObjectReference("v1", "Pod", eviction.namespace, eviction.pod, eviction.task_uid)
