"""Leader election: at most one process leads at a time, by a Lease of coordination.k8s.io.

Two clocks never have to agree. A candidate takes over only after it has itself seen the record unchanged for the whole
lease; a leader counts from the moment at which it *sent* its last successful renewal and stops `margin` seconds before
that lease can have run out for anybody, whether or not a request is still hanging. So the old leader's work has been
cancelled before a new leader starts. Work that has not ended when the lease runs out takes the process with it: better
no leader for a moment than two, or one that hangs for ever.

The kubernetes package's election was looked at and not used: it lets a hanging request outlive the lease, and does not
wait for the cancelled work to end.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time
from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from muster.kube.client import ApiClient
from muster.kube.errors import ApiError, Conflict, NotFound
from muster.kube.objects import ApiObject
from muster.kube.resource import LEASES
from muster.kube.transport import Sleep

_log = logging.getLogger(__name__)

_RELEASE_SECONDS: Final = 3.0
_SECONDS_TO_END: Final = 1.0


class LeaseSpec(msgspec.Struct, frozen=True, rename="camel"):
    """Who leads, since when, and for how many seconds after `renew_time`."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(ApiObject, frozen=True):
    """A Lease."""

    spec: LeaseSpec = LeaseSpec()


class LeaderElector:
    """Competes for one Lease under `identity`, which no other process may use.

    Seconds: `lease_seconds` (whole) is how long a silent leader keeps the others waiting, `margin` how long before
    that it stops, `retry_seconds` the pause between two tries. `clock` is monotonic, `wall_clock` is only written down,
    `abort` ends the process at once.
    """

    def __init__(
        self,
        client: ApiClient,
        namespace: str,
        name: str,
        identity: str,
        *,
        lease_seconds: int = 15,
        margin: float = 5.0,
        retry_seconds: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Sleep = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
        abort: Callable[[], None] = lambda: os._exit(1),
    ) -> None:
        if not 0 < retry_seconds < lease_seconds - margin < lease_seconds:
            raise ValueError("a lease needs 0 < retry_seconds < lease_seconds - margin, and margin > 0")
        self._client = client
        self._namespace = namespace
        self._name = name
        self.identity = identity
        self._lease_seconds = lease_seconds
        self._margin = margin
        self._retry_seconds = retry_seconds
        self._longest_try = (lease_seconds - margin) / 2
        self._clock = clock
        self._wall_clock = wall_clock
        self._sleep = sleep
        self._jitter = jitter
        self._abort = abort
        self._cached: Lease | None = None
        """The Lease as our last successful write left it."""
        self._seen: LeaseSpec | None = None
        self._seen_since = 0.0
        self._stop_at: float | None = None

    @property
    def is_leader(self) -> bool:
        """Whether this process may act as the leader at this moment."""
        return self._stop_at is not None and self._clock() < self._stop_at

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Run `lead` whenever, and only while, this process holds the lease; cancel it when the lease is lost.

        Returns (or raises) when `lead` does. Gives the lease up on the way out, so that the next leader need not wait.
        """
        while True:
            await self._acquire()
            _log.info("%s leads %s/%s", self.identity, self._namespace, self._name)
            if await self._lead(lead):
                return
            _log.warning("%s no longer leads %s/%s", self.identity, self._namespace, self._name)

    async def _acquire(self) -> None:
        while not (await self._try_within(self._longest_try) and self.is_leader):
            await self._sleep(self._retry_seconds * (1 + 0.2 * self._jitter()))

    async def _lead(self, lead: Callable[[], Awaitable[None]]) -> bool:
        """Lead until `lead` ends (True) or the lease is lost (False)."""
        work = asyncio.ensure_future(lead())
        renewal = asyncio.create_task(self._renew())
        try:
            await asyncio.wait({work, renewal}, return_when=asyncio.FIRST_COMPLETED)
            finished = work.done()
        finally:
            await self._end_in_time(work)
            await _end(renewal)
            await self._release()
        if finished:
            work.result()
        return finished

    async def _end_in_time(self, work: asyncio.Future[None]) -> None:
        """Cancel the work and wait until it has ended; should the lease run out before, end the process.

        A process that was held up until the lease had run out gets a moment all the same: it writes nothing more.
        """
        work.cancel()
        at_least = self._clock() + _SECONDS_TO_END
        while not work.done() and (left := max(at_least, (self._stop_at or 0.0) + self._margin) - self._clock()) > 0:
            timer = asyncio.create_task(_sleep_coroutine(self._sleep, left))
            try:
                await asyncio.wait({work, timer}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                await _end(timer)
        if not work.done():
            _log.critical("the work under %s/%s does not end: the process does", self._namespace, self._name)
            self._abort()
            await asyncio.wait({work})

    async def _renew(self) -> None:
        """Renew until the lease is lost, or so old that it might be."""
        while self.is_leader:
            await self._sleep(min(self._retry_seconds, self._remaining()))
            renewed = await self._try_within(min(self._longest_try, self._remaining()))
            if not renewed and self._is_held_by_another():
                break

    def _remaining(self) -> float:
        return max(0.0, (self._stop_at or 0.0) - self._clock())

    async def _try_within(self, seconds: float) -> bool:
        """Try to take or renew the lease; give up after `seconds`, though the try may still land."""
        attempt = asyncio.create_task(self._try())
        timer = asyncio.create_task(_sleep_coroutine(self._sleep, seconds))
        taken = False
        try:
            await asyncio.wait({attempt, timer}, return_when=asyncio.FIRST_COMPLETED)
            taken = attempt.done() and attempt.result()
        except ApiError as error:
            _log.warning("lease %s/%s: %s", self._namespace, self._name, error)
        finally:
            await _end(timer)
            await _end(attempt)
        if not taken:
            self._cached = None
        return taken

    async def _try(self) -> bool:
        sent = self._clock()
        before = self._cached or await self._read()
        if before is not None and not self._is_free(before.spec):
            return False
        try:
            if before is None:
                written = await self._client.create(LEASES, self._namespace, self._record(None), decode=Lease)
            else:
                written = await self._client.replace(
                    LEASES, self._namespace, self._name, self._record(before), decode=Lease
                )
        except (Conflict, NotFound):
            await self._read()
            return False
        self._see(written.spec)
        self._cached = written
        self._stop_at = sent + self._lease_seconds - self._margin
        return True

    async def _read(self) -> Lease | None:
        try:
            lease = await self._client.get(LEASES, self._namespace, self._name, decode=Lease)
        except NotFound:
            return None
        self._see(lease.spec)
        return lease

    def _see(self, spec: LeaseSpec) -> None:
        if spec != self._seen:
            self._seen, self._seen_since = spec, self._clock()

    def _is_free(self, spec: LeaseSpec) -> bool:
        """Ours, nobody's, or unchanged for as long as it was given for (by our own clock)."""
        if spec.holder_identity in (None, "", self.identity):
            return True
        return self._clock() - self._seen_since > (spec.lease_duration_seconds or self._lease_seconds)

    def _is_held_by_another(self) -> bool:
        return self._seen is not None and self._seen.holder_identity not in (None, "", self.identity)

    def _record(self, before: Lease | None) -> dict[str, Any]:
        """The Lease as it stands when we hold it from now on; a takeover is counted."""
        now = self._timestamp()
        old = before.spec if before is not None else LeaseSpec()
        renewed = old.holder_identity == self.identity
        transitions = (old.lease_transitions or 0) + (0 if renewed or before is None else 1)
        spec = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": self._lease_seconds,
            "acquireTime": old.acquire_time if renewed else now,
            "renewTime": now,
            "leaseTransitions": transitions,
        }
        return self._body(before, spec)

    def _body(self, before: Lease | None, spec: dict[str, Any]) -> dict[str, Any]:
        metadata = {"name": self._name, "namespace": self._namespace}
        if before is not None:
            metadata["resourceVersion"] = before.metadata.resource_version
        return {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata, "spec": spec}

    def _timestamp(self) -> str:
        return self._wall_clock().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    async def _release(self) -> None:
        """Give the lease up if it is still ours; the work has ended. A failure only makes the others wait."""
        self._stop_at = None
        held, self._cached = self._cached, None
        if held is None:
            return
        spec = {
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "renewTime": self._timestamp(),
            "leaseTransitions": held.spec.lease_transitions or 0,
        }
        try:
            async with asyncio.timeout(_RELEASE_SECONDS):
                await self._client.replace(LEASES, self._namespace, self._name, self._body(held, spec))
        except (ApiError, TimeoutError) as error:
            _log.info("lease %s/%s was not given up: %s", self._namespace, self._name, error)


async def _end(task: asyncio.Future[Any]) -> None:
    """Cancel a task and wait until it has ended, however it does."""
    task.cancel()
    await asyncio.wait({task})


def _sleep_coroutine(sleep: Sleep, seconds: float) -> Coroutine[Any, Any, None]:
    async def wait() -> None:
        await sleep(seconds)

    return wait()
