"""Leader election on a clock that the test moves: who leads when, and that never two do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import msgspec
import pytest

from muster.kube.client import ApiClient
from muster.kube.errors import AlreadyExists, Conflict, NotFound, Unreachable
from muster.kube.lease import LeaderElector
from tests.kube.fake_time import FakeTime, settle


class LeaseServer:
    """One Lease with optimistic locking, as the API server keeps it."""

    def __init__(self) -> None:
        self.body: dict[str, Any] | None = None
        self.version = 0

    @property
    def holder(self) -> str | None:
        return None if self.body is None else self.body["spec"]["holderIdentity"]

    def read(self) -> dict[str, Any]:
        if self.body is None:
            raise NotFound(404, "NotFound", "no lease")
        return self.body

    def write(self, body: dict[str, Any], *, create: bool) -> dict[str, Any]:
        if create and self.body is not None:
            raise AlreadyExists(409, "AlreadyExists", "lease")
        if not create and body["metadata"]["resourceVersion"] != self.read()["metadata"]["resourceVersion"]:
            raise Conflict(409, "Conflict", "lease")
        self.version += 1
        self.body = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        return self.body


class Line:
    """A client's line to the server: it may be down, hang, or lose answers."""

    def __init__(self, server: LeaseServer) -> None:
        self.server = server
        self.down = False
        self.hangs = False
        self.loses_answers = False

    async def _through(self, answer: Any, decode: Any) -> Any:
        if self.loses_answers:
            raise Unreachable("lost")
        return msgspec.convert(answer, decode)

    async def _out(self) -> None:
        if self.down:
            raise Unreachable("down")
        if self.hangs:
            await asyncio.Event().wait()

    async def get(self, *_: Any, decode: Any) -> Any:
        await self._out()
        return await self._through(self.server.read(), decode)

    async def create(self, _resource: Any, _namespace: str, body: dict[str, Any], decode: Any = dict) -> Any:
        await self._out()
        return await self._through(self.server.write(body, create=True), decode)

    async def replace(self, _r: Any, _namespace: str, _name: str, body: dict[str, Any], decode: Any = dict) -> Any:
        await self._out()
        return await self._through(self.server.write(body, create=False), decode)


class Candidate:
    def __init__(self, time: FakeTime, server: LeaseServer, identity: str) -> None:
        self.time = time
        self.line = Line(server)
        self.elector = LeaderElector(
            cast(ApiClient, self.line),
            "muster",
            "muster",
            identity,
            clock=time.clock,
            sleep=time.sleep,
            jitter=lambda: 0.0,
        )
        self.leads = False
        self.ended_at: float | None = None
        self.task = asyncio.create_task(self.elector.run(self._lead))

    async def _lead(self) -> None:
        self.leads = True
        try:
            await asyncio.Event().wait()
        finally:
            self.leads = False
            self.ended_at = self.time.now

    async def stop(self) -> None:
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task


@asynccontextmanager
async def two_candidates() -> AsyncIterator[tuple[FakeTime, LeaseServer, Candidate, Candidate]]:
    """The first leads, the second waits."""
    time, server = FakeTime(), LeaseServer()
    first = Candidate(time, server, "first")
    await settle()
    second = Candidate(time, server, "second")
    await settle()
    assert first.leads
    try:
        yield time, server, first, second
    finally:
        await first.stop()
        await second.stop()


async def test_a_leader_that_renews_leads_on_while_the_other_waits() -> None:
    async with two_candidates() as (time, server, first, second):
        await time.advance(300)
        assert (first.leads, second.leads, server.holder) == (True, False, "first")
        assert first.ended_at is None


@pytest.mark.parametrize("fault", ["down", "hangs", "loses_answers"])
async def test_a_leader_that_cannot_renew_stops_before_the_other_may_start(fault: str) -> None:
    async with two_candidates() as (time, server, first, second):
        await time.advance(60)
        setattr(first.line, fault, True)
        renewed_at = time.now
        while not second.leads:
            await time.advance(0.5)
            assert not (first.leads and second.leads)
            assert time.now < renewed_at + 40
            if fault == "loses_answers" and first.ended_at is not None:
                first.line.down = True
        assert first.ended_at is not None
        assert first.ended_at <= renewed_at + 10
        assert time.now >= first.ended_at + 5 - 0.5
        assert server.holder == "second"


async def test_a_leader_that_stops_frees_the_lease_at_once() -> None:
    async with two_candidates() as (time, server, first, second):
        await first.stop()
        assert server.holder == ""
        await time.advance(2)
        assert second.leads


async def test_a_short_outage_costs_nothing() -> None:
    async with two_candidates() as (time, _, first, second):
        first.line.down = True
        await time.advance(7)
        first.line.down = False
        await time.advance(20)
        assert (first.leads, second.leads, first.ended_at) == (True, False, None)


async def test_a_leader_that_lost_the_lease_leads_again_once_it_is_free() -> None:
    async with two_candidates() as (time, _, first, second):
        first.line.down = True
        await time.advance(40)
        assert (first.leads, second.leads) == (False, True)
        first.line.down = False
        await second.stop()
        await time.advance(4)
        assert first.leads


async def test_a_lease_taken_by_force_ends_the_work_at_the_next_renewal() -> None:
    async with two_candidates() as (time, server, first, second):
        second.line.down = True
        body = server.read()
        server.write({**body, "spec": {**body["spec"], "holderIdentity": "thief"}}, create=False)
        await time.advance(2.5)
        assert not first.leads
        assert server.holder == "thief"


async def test_an_unfinished_write_of_a_lost_leader_does_not_revive_it() -> None:
    """The clocks of two machines never have to agree: a candidate counts from when it saw the record itself."""
    time, server = FakeTime(), LeaseServer()
    record = {
        "metadata": {"name": "muster", "namespace": "muster"},
        "spec": {"holderIdentity": "other", "leaseDurationSeconds": 15, "renewTime": "1999-01-01T00:00:00.000000Z"},
    }
    server.write(record, create=True)
    candidate = Candidate(time, server, "me")
    await time.advance(14)
    assert not candidate.leads
    await time.advance(4)
    assert candidate.leads
    assert server.read()["spec"]["leaseTransitions"] == 1
    await candidate.stop()


@pytest.mark.parametrize("seconds", [4.9, 5.1, 60.0])
async def test_work_that_does_not_end_ends_the_process(seconds: float) -> None:
    time, server, aborts = FakeTime(), LeaseServer(), list[float]()
    line = Line(server)

    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await time.sleep(seconds)

    elector = LeaderElector(
        cast(ApiClient, line),
        "ns",
        "l",
        "me",
        clock=time.clock,
        sleep=time.sleep,
        abort=lambda: aborts.append(time.now),
    )
    task = asyncio.create_task(elector.run(stubborn))
    await settle()
    line.down = True
    await time.advance(100)
    assert aborts == ([] if seconds < 5 else [15.0])
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_a_leader_that_is_told_to_stop_has_the_time_that_its_work_needs() -> None:
    time, server, aborts = FakeTime(), LeaseServer(), list[float]()

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await time.sleep(60)

    elector = LeaderElector(
        cast(ApiClient, Line(server)),
        "ns",
        "l",
        "me",
        clock=time.clock,
        sleep=time.sleep,
        abort=lambda: aborts.append(time.now),
    )
    task = asyncio.create_task(elector.run(slow))
    await settle()
    task.cancel()
    await time.advance(59)
    assert (aborts, server.holder) == ([], "me")
    await time.advance(1)
    assert (aborts, server.holder) == ([], "")
    with suppress(asyncio.CancelledError):
        await task


async def test_work_that_ends_ends_the_election() -> None:
    time, server = FakeTime(), LeaseServer()

    async def done() -> None:
        return

    elector = LeaderElector(cast(ApiClient, Line(server)), "ns", "l", "me", clock=time.clock, sleep=time.sleep)
    await elector.run(done)
    assert server.holder == ""
    assert not elector.is_leader


@pytest.mark.parametrize(
    "seconds", [{"lease_seconds": 5, "margin": 5.0}, {"retry_seconds": 0.0}, {"margin": 14.0}, {"margin": 0.0}]
)
def test_times_that_leave_no_room_are_refused(seconds: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="lease needs"):
        LeaderElector(cast(ApiClient, None), "ns", "l", "me", **seconds)
