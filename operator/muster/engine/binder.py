"""Posts bindings.

For each pod of a decision: take our scheduling gates away, then POST the binding, both only if the pod still has the
UID that was decided about. Gates of others are never touched, and a pod without ours is only bound. After every
answer that is not a clear yes the pod is read, and what is there is believed: a binding that landed though its answer
was lost is a success, a pod that is gone or bound elsewhere is left to the watch. A pod that can't be bound is handed
back to the model (`failed`) only once a read has shown it unbound, so that its place is never given away while it
might hold it.

Volumes that wait for the node are bound before any pod of the decision, without a slot: a volume may take minutes, and
the other members of its gang must not run half meanwhile, nor be left when it can't be made.

A pod of the default scheduler is delegated instead: pinned to its node and ungated in one patch (see `delegation`), and
that is all. Whether it is bound the watch will tell; the scheduler waits for it, and has it deleted when it waits too
long.

A pod whose bindings fail one after the other is tried after growing pauses, wherever the scheduler wants it next.

An ungated pod that is not bound yet is safe: its schedulerName is ours, so nobody else binds it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from muster.engine.backoff import Backoff
from muster.engine.clock import Clock
from muster.engine.delegation import delegation_patch, pinned_node
from muster.engine.gates import gate_removal
from muster.engine.late_volumes import LateVolumes
from muster.engine.setbacks import Setbacks
from muster.kube.background_turns import BackgroundTurns
from muster.kube.client import ApiClient, PatchKind
from muster.kube.ending_namespaces import EndingNamespaces
from muster.kube.errors import ApiError, Conflict, Forbidden, Invalid, NotFound, TooManyRequests
from muster.kube.informer import Informer
from muster.kube.objects import Pod
from muster.kube.resource import PODS
from muster.scheduler.outcome import Binding

logger = logging.getLogger(__name__)


class Landing(Enum):
    """What became of one try."""

    BOUND = "bound, or handed to the default scheduler, on the node decided"
    LOST = "gone, or bound elsewhere: the watch will tell"
    REFUSED = "the server will not take it, and a read showed it unbound"
    UNBOUND = "a read showed it unbound; another try may succeed"
    UNKNOWN = "nobody could say"


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a pod is tried: `writes` tries at most, with pauses of `backoff`. Reads go on until one is answered.

    A pod that was handed back before waits `setback` before it is tried again.
    """

    writes: int = 5
    backoff: Backoff = field(default_factory=lambda: Backoff(first=0.1, limit=5.0))
    setback: Backoff = field(default_factory=lambda: Backoff(first=0.1, limit=5.0))


@dataclass(slots=True)
class _Decision:
    """What was posted together: how much of it is under way, and what was bound."""

    open: int
    bound: list[Binding] = field(default_factory=list)


class Binder:
    """Carries bindings out, `concurrency` at a time, in the order given.

    `failed` is called once per binding that came to that end, and `bound` with all those of one `post` that were bound,
    once each of that post has come to an end; both on the event loop. A binding that was lost to another writer is in
    neither.
    """

    def __init__(
        self,
        client: ApiClient,
        pods: Informer[Pod],
        clock: Clock,
        *,
        gate: str,
        bound: Callable[[Sequence[Binding]], None],
        failed: Callable[[Binding, str], None],
        concurrency: int = 50,
        patience: Patience | None = None,
        volumes: LateVolumes | None = None,
        turns: BackgroundTurns | None = None,
    ) -> None:
        self._client = client
        self._pods = pods
        self._clock = clock
        self._gate = gate
        self._bound = bound
        self._failed = failed
        self._slots = asyncio.Semaphore(concurrency)
        self._patience = patience or Patience()
        self._posted: asyncio.Queue[tuple[list[Binding], Callable[[], Awaitable[bool]] | None]] = asyncio.Queue()
        self._waiting: asyncio.Queue[tuple[Binding, _Decision]] = asyncio.Queue()
        self._volumes = volumes or LateVolumes(client, clock)
        self._turns = turns or BackgroundTurns()
        self._open = 0
        self._setbacks = Setbacks(clock, self._patience.setback)
        """Of pods, by uid, and of gangs that had to wait for a write, by their key."""
        self._ending = EndingNamespaces(logger)

    def post(self, bindings: Iterable[Binding], after: Callable[[], Awaitable[bool]] | None = None) -> None:
        """Have bindings carried out, once `after` (if any) is true; if it is false they all fail unposted."""
        batch = list(bindings)
        self._begin(len(batch))
        self._posted.put_nowait((batch, after))

    @property
    def idle(self) -> bool:
        """Tell whether no binding is under way."""
        return self._open == 0

    async def run(self) -> None:
        """Carry out until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._start_in_order(group))
                while True:
                    batch, after = await self._posted.get()
                    if after is None and not any(binding.volumes for binding in batch):
                        self._queue(batch)
                    else:
                        group.create_task(self._queue_after(batch, after))
        finally:
            self._end(self._open)

    def _begin(self, count: int) -> None:
        self._open += count
        self._turns.begun(count)

    def _end(self, count: int = 1) -> None:
        self._open -= count
        self._turns.ended(count)

    def _queue(self, batch: list[Binding]) -> None:
        decision = _Decision(len(batch))
        for binding in batch:
            self._waiting.put_nowait((binding, decision))

    async def _start_in_order(self, group: asyncio.TaskGroup) -> None:
        """Begin what waits as slots become free: of ten thousand bindings fifty need a task at a time."""
        while True:
            binding, decision = await self._waiting.get()
            rests = not binding.volumes and self._setbacks.call_for_rest(binding.task_uid)
            if not rests:
                await self._slots.acquire()
            group.create_task(self._carry_out(binding, decision, has_slot=not rests))

    async def _queue_after(self, batch: list[Binding], after: Callable[[], Awaitable[bool]] | None) -> None:
        complaint = await self._await(after, batch[0].job) if after is not None else ""
        if not complaint:
            complaint = await self._bind_volumes([binding for binding in batch if binding.volumes])
        if not complaint:
            self._queue(batch)
            return
        for binding in batch:
            self._end()
            self._failed(binding, complaint)

    async def _await(self, after: Callable[[], Awaitable[bool]], job: str) -> str:
        await self._setbacks.rest(job)
        if await after():
            self._setbacks.forget(job)
            return ""
        self._setbacks.remember(job)
        return "the PodGroup could not be written"

    async def _bind_volumes(self, bindings: list[Binding]) -> str:
        """Have the volumes of all these made or kept; return what the first of them that failed came to, else ""."""
        tasks = [asyncio.ensure_future(self._bind_volumes_of(binding)) for binding in bindings]
        try:
            for each in asyncio.as_completed(tasks):
                if complaint := await each:
                    return complaint
        finally:
            # Asking for a volume once more is harmless, so the rest may be left at any point.
            for task in tasks:
                task.cancel()
        return ""

    async def _bind_volumes_of(self, binding: Binding) -> str:
        await self._setbacks.rest(binding.task_uid)
        complaint = await self._volumes.bind(binding)
        if complaint:
            self._setbacks.remember(binding.task_uid)
            logger.warning("%s/%s was not bound to %s: %s", binding.namespace, binding.pod, binding.node, complaint)
        return complaint

    async def _carry_out(self, binding: Binding, decision: _Decision, *, has_slot: bool) -> None:
        if not has_slot:
            await self._setbacks.rest(binding.task_uid)
        landing, error = await self._try_until_known(binding, has_slot=has_slot)
        self._end()
        decision.open -= 1
        if landing is Landing.BOUND:
            self._setbacks.forget(binding.task_uid)
            self._ending.serves(binding.namespace)
            decision.bound.append(binding)
        elif landing is Landing.LOST:
            self._setbacks.forget(binding.task_uid)
            logger.info("%s/%s is gone or bound elsewhere", binding.namespace, binding.pod)
        else:
            self._setbacks.remember(binding.task_uid)
            if not self._ending.account_for(binding.namespace, error):
                logger.warning("%s/%s was not bound to %s: %s", binding.namespace, binding.pod, binding.node, error)
            self._failed(binding, str(error))
        if not decision.open and decision.bound:
            self._bound(decision.bound)

    async def _try_until_known(self, binding: Binding, *, has_slot: bool) -> tuple[Landing, ApiError | None]:
        """Try until bound, lost, or shown unbound after the last try; the second value is what the last write met.

        A slot that the caller has taken is used for the first try, and given back.
        """
        tries = 0
        complaint: ApiError | None = None
        while True:
            tries += 1
            last = tries >= self._patience.writes
            error: ApiError | None = None
            if not has_slot:
                await self._slots.acquire()
            has_slot = False
            try:
                if tries <= self._patience.writes:
                    error = await self._write(binding)
                    if error is None:
                        return Landing.BOUND, None
                    complaint = error
                landing = await self._read(binding, error)
            finally:
                self._slots.release()
            if landing in (Landing.BOUND, Landing.LOST, Landing.REFUSED) or (last and landing is Landing.UNBOUND):
                return landing, complaint
            await self._clock.sleep(self._pause(tries, error))

    def _pause(self, tries: int, error: ApiError | None) -> float:
        pause = self._patience.backoff.pause(tries)
        if isinstance(error, TooManyRequests) and error.retry_after is not None:
            return max(pause, error.retry_after)
        return pause

    async def _write(self, binding: Binding) -> ApiError | None:
        """Take the gate away and bind, or delegate; return what the server had against it."""
        try:
            if binding.delegate:
                await self._delegate(binding)
                return None
            await self._remove_gate(binding)
            await self._client.bind(binding.namespace, binding.pod, uid=binding.task_uid, node=binding.node)
        except ApiError as error:
            return error
        return None

    async def _remove_gate(self, binding: Binding) -> None:
        pod = self._pods.get(binding.namespace, binding.pod)
        patch = gate_removal(pod, self._gate) if pod is not None and pod.metadata.uid == binding.task_uid else None
        if patch is not None:
            kind = PatchKind.JSON
            pod = await self._client.patch(PODS, binding.namespace, binding.pod, patch, kind=kind, decode=Pod)
            self._pods.record(pod)

    async def _delegate(self, binding: Binding) -> None:
        """Raises Conflict for a pod that is not known, or held by our gate no more: it has to be read."""
        pod = self._pods.get(binding.namespace, binding.pod)
        patch = None
        if pod is not None and pod.metadata.uid == binding.task_uid:
            patch = delegation_patch(pod, self._gate, binding.node, self._clock.now())
        if patch is None:
            raise Conflict(409, "Conflict", "our gate is not on the pod")
        kind = PatchKind.JSON
        pod = await self._client.patch(PODS, binding.namespace, binding.pod, patch, kind=kind, decode=Pod)
        self._pods.record(pod)

    async def _read(self, binding: Binding, error: ApiError | None) -> Landing:
        """Read the pod, tell the mirror, and judge what the failed write came to."""
        try:
            pod = await self._client.get(PODS, binding.namespace, binding.pod, decode=Pod)
        except NotFound:
            return Landing.LOST
        except ApiError as unread:
            logger.info("%s/%s can't be read: %s", binding.namespace, binding.pod, unread)
            return Landing.UNKNOWN
        self._pods.record(pod)
        return judge(pod, binding, error)


def judge(pod: Pod, binding: Binding, error: ApiError | None) -> Landing:
    """What a pod as read after a write that failed with `error` says about its binding."""
    if pod.metadata.uid != binding.task_uid:
        return Landing.LOST
    if pod.metadata.deletion_timestamp is not None:
        # Nothing is bound once it is being deleted; a finalizer may keep such a pod, and must not keep its place too.
        return Landing.REFUSED if pod.spec.node_name is None else Landing.LOST
    if pod.spec.node_name is not None:
        return Landing.BOUND if pod.spec.node_name == binding.node else Landing.LOST
    if pod.status.phase in ("Succeeded", "Failed"):
        return Landing.LOST
    if binding.delegate and not pod.spec.scheduling_gates:
        # Ungated by us, or by somebody who wants the default scheduler to choose the node.
        return Landing.BOUND if pinned_node(pod) == binding.node else Landing.LOST
    if isinstance(error, Forbidden | Invalid):
        return Landing.REFUSED
    return Landing.UNBOUND
