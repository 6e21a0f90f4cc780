from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import pytest

from muster.engine.backoff import Backoff
from muster.engine.evictor import Evictor
from muster.kube.errors import ApiError, Conflict, Forbidden, Invalid, ServerError, Unreachable
from muster.kube.events import ObjectReference
from muster.scheduler.outcome import Eviction
from tests.engine.manual_clock import ManualClock, settle
from tests.engine.pod_manifests import pod
from tests.engine.scripted_api import Fault, ScriptedApi, failing

KEY = "default/p"
SERVER_ERROR = ServerError(500, "InternalError", "")


class Ends:
    def __init__(self) -> None:
        self.failed: list[str] = []
        self.events: list[tuple[str, str, str]] = []

    def event(
        self, about: ObjectReference, kind: str, reason: str, message: str, action: str, *, change: str = ""
    ) -> None:
        self.events.append((about.uid, reason, message))


@asynccontextmanager
async def evictor(
    api: ScriptedApi, clock: ManualClock, group: ObjectReference | None = None
) -> AsyncIterator[tuple[Evictor, Ends]]:
    ends = Ends()
    made = Evictor(
        cast(Any, api),
        cast(Any, ends),
        clock,
        failed=lambda eviction, complaint: ends.failed.append(eviction.pod),
        pod_group=lambda _: group,
        tries=3,
        backoff=Backoff(first=1.0, limit=4.0),
        setback=Backoff(first=1.0, limit=4.0),
    )
    task = asyncio.create_task(made.run())
    try:
        yield made, ends
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def eviction(reason: str = "preempt", by: str = "default/other") -> Eviction:
    return Eviction("uid-p", "default", "p", node="n", job="default/pg", reason=reason, by=by)


async def test_a_pod_is_marked_then_deleted_and_told_why() -> None:
    api, clock = ScriptedApi(pod(node="n")), ManualClock()
    async with evictor(api, clock) as (made, ends):
        made.post([eviction()])
        await settle()
        assert (api.calls, api.pods, made.idle) == (["patch", "delete"], {}, True)
        assert ends.events == [("uid-p", "Evict", "Pod is evicted, because of preempt for default/other")]


async def test_the_pod_says_that_it_is_not_ready_and_the_target_of_a_disruption() -> None:
    api, clock = ScriptedApi(pod(node="n")), ManualClock()
    async with evictor(api, clock) as (made, _):
        made.post([eviction()])
        await settle()
    conditions = api.patches[0]["status"]["conditions"]
    assert [(each["type"], each["status"], each["reason"]) for each in conditions] == [
        ("Ready", "False", "Evict"),
        ("DisruptionTarget", "True", "PreemptionByScheduler"),
    ]
    assert api.patches[0]["metadata"]["uid"] == "uid-p"


async def test_the_pod_group_of_the_pod_hears_of_it_too() -> None:
    api, clock = ScriptedApi(pod(node="n")), ManualClock()
    group = ObjectReference("scheduling.volcano.sh/v1beta1", "PodGroup", "default", "pg", "uid-pg")
    async with evictor(api, clock, group) as (made, ends):
        made.post([eviction()])
        await settle()
        assert ends.events[1] == ("uid-pg", "Evict", "p: Pod is evicted, because of preempt for default/other")


async def test_nobody_is_evicted_before_what_has_to_come_first_is_done() -> None:
    api, clock = ScriptedApi(pod(node="n")), ManualClock()
    done = asyncio.Event()

    async def first() -> bool:
        return await done.wait()

    async with evictor(api, clock) as (made, _):
        made.post([eviction()], after=first)
        await settle()
        assert (api.calls, made.idle) == ([], False)
        done.set()
        await settle()
        assert (api.calls, made.idle) == (["patch", "delete"], True)


async def test_where_what_has_to_come_first_is_impossible_nobody_is_evicted_and_the_model_is_told() -> None:
    api, clock = ScriptedApi(pod(node="n")), ManualClock()
    group = ObjectReference("scheduling.volcano.sh/v1beta1", "PodGroup", "default", "other", "uid-pg")

    async def first() -> bool:
        return False

    async with evictor(api, clock, group) as (made, ends):
        failures = []
        for pause in (0.0, 1.0, 2.0, 4.0, 4.0):
            made.post([eviction()], after=first)
            await clock.advance(pause * 0.74)
            failures.append(len(ends.failed))
            await clock.advance(pause * 0.27)
        assert failures == ([1, 1, 2, 3, 4])
        assert (len(ends.failed), api.calls, made.idle) == (5, [], True)
        uid, reason, message = ends.events[-1]
        assert (uid, reason) == ("uid-pg", "FailedEviction")
        assert "default/p could not be evicted" in message


async def test_a_rollback_says_that_the_gang_itself_is_the_cause() -> None:
    api, clock = ScriptedApi(pod(node="n")), ManualClock()
    async with evictor(api, clock) as (made, ends):
        made.post([eviction("rollback", "default/pg")])
        await settle()
        assert "its gang default/pg fell below its minimum" in ends.events[0][2]


def deleted(api: ScriptedApi) -> Fault:
    return lambda: api.pods.pop(KEY)


def replaced(api: ScriptedApi) -> Fault:
    return lambda: api.change(KEY, uid="another")


@pytest.mark.parametrize("verb", ["patch", "delete"])
@pytest.mark.parametrize("event", [deleted, replaced])
async def test_a_pod_that_is_gone_or_replaced_needs_no_eviction(verb: str, event: Any) -> None:
    api, clock = ScriptedApi(pod(node="n")), ManualClock()
    api.faults[verb].append(event(api))
    async with evictor(api, clock) as (made, ends):
        made.post([eviction()])
        await clock.advance(100)
        assert (ends.failed, made.idle) == ([], True)
        assert [found.metadata.uid for found in api.pods.values()] in ([], ["another"])


CONFLICT = Conflict(409, "Conflict", "the object has been modified")


@pytest.mark.parametrize("error", [SERVER_ERROR, CONFLICT, Unreachable("timed out")], ids=lambda error: error.reason)
@pytest.mark.parametrize("verb", ["patch", "delete"])
async def test_a_failed_eviction_is_tried_again(verb: str, error: ApiError) -> None:
    api, clock = ScriptedApi(pod(node="n")), ManualClock()
    api.faults[verb].extend([failing(error)] * 2)
    async with evictor(api, clock) as (made, ends):
        made.post([eviction()])
        await clock.advance(10)
        assert (api.pods, ends.failed) == ({}, [])


@pytest.mark.parametrize(
    "error", [Forbidden(403, "Forbidden", ""), Invalid(422, "Invalid", "")], ids=lambda error: error.reason
)
async def test_a_pod_that_may_not_be_marked_is_evicted_all_the_same(error: ApiError) -> None:
    api, clock = ScriptedApi(pod(node="n")), ManualClock()
    api.faults["patch"].append(failing(error))
    async with evictor(api, clock) as (made, ends):
        made.post([eviction()])
        await settle()
        assert (api.pods, ends.failed, len(ends.events)) == ({}, [], 1)


STUBBORN: dict[str, tuple[list[ApiError], int]] = {
    "the last try failed": ([SERVER_ERROR] * 3, 3),
    "it is not allowed": ([Forbidden(403, "Forbidden", "")], 1),
}


@pytest.mark.parametrize(("errors", "tries"), STUBBORN.values(), ids=STUBBORN.keys())
async def test_an_eviction_that_fails_for_good_is_handed_back(errors: list[ApiError], tries: int) -> None:
    api, clock = ScriptedApi(pod(node="n")), ManualClock()
    api.faults["delete"].extend(failing(error) for error in errors)
    async with evictor(api, clock) as (made, ends):
        made.post([eviction()])
        await clock.advance(100)
        assert (ends.failed, ends.events, api.calls.count("delete")) == (["p"], [], tries)
