from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, cast

import pytest

from muster.engine.backoff import Backoff
from muster.engine.binder import Binder, Patience
from muster.engine.delegation import delegation_patch, pinned_node
from muster.kube.background_turns import BackgroundTurns
from muster.kube.errors import (
    ApiError,
    Conflict,
    Forbidden,
    Invalid,
    NamespaceTerminating,
    NotFound,
    ServerError,
    TooManyRequests,
    Unreachable,
)
from muster.kube.objects import Pod
from muster.scheduler.outcome import Binding
from tests.engine.manual_clock import ManualClock, settle
from tests.engine.pod_manifests import pod
from tests.engine.scripted_api import Fault, ScriptedApi, Store, failing, patched

GATE = "muster.dev/gang"
KEY = "default/p"


class Ends:
    """What the binder reported."""

    def __init__(self) -> None:
        self.bound: list[str] = []
        self.decisions: list[list[str]] = []
        self.failed: list[str] = []

    def on_bound(self, bindings: Sequence[Binding]) -> None:
        names = [binding.pod for binding in bindings]
        self.bound += names
        self.decisions.append(names)


@asynccontextmanager
async def binder(api: ScriptedApi, clock: ManualClock, **options: Any) -> AsyncIterator[tuple[Binder, Ends]]:
    ends = Ends()
    made = Binder(
        cast(Any, api),
        cast(Any, Store(api)),
        clock,
        gate=GATE,
        bound=ends.on_bound,
        failed=lambda binding, complaint: ends.failed.append(binding.pod),
        patience=Patience(writes=3, backoff=Backoff(1.0, 4.0), setback=Backoff(1.0, 4.0)),
        **options,
    )
    task = asyncio.create_task(made.run())
    try:
        yield made, ends
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def binding(name: str = "p", node: str = "n1") -> Binding:
    return Binding(task_uid=f"uid-{name}", namespace="default", pod=name, node=node, job="default/pg")


SUCCESSES: dict[str, tuple[Pod, list[str], list[str]]] = {
    "our gate goes first": (pod(gates=(GATE,)), ["patch", "bind n1"], []),
    "a pod without our gate is only bound": (pod(), ["bind n1"], []),
}


@pytest.mark.parametrize(("given", "calls", "gates"), SUCCESSES.values(), ids=SUCCESSES.keys())
async def test_a_pod_is_bound_with_as_few_requests_as_it_needs(given: Pod, calls: list[str], gates: list[str]) -> None:
    api, clock = ScriptedApi(given), ManualClock()
    async with binder(api, clock) as (made, ends):
        made.post([binding()])
        await settle()
        assert (api.calls, ends.bound, ends.failed) == (calls, ["p"], [])
        assert api.pods[KEY].spec.node_name == "n1"
        assert made.idle


async def test_gates_of_others_are_never_removed() -> None:
    api, clock = ScriptedApi(pod(gates=("other/first", GATE, "other/last"))), ManualClock()
    async with binder(api, clock) as (made, ends):
        made.post([binding()])
        await clock.advance(100)
        assert [gate.name for gate in api.pods[KEY].spec.scheduling_gates] == ["other/first", "other/last"]
        assert (ends.bound, ends.failed) == ([], ["p"])


async def test_a_gate_that_has_moved_is_found_again() -> None:
    api, clock = ScriptedApi(pod(gates=("other/first", GATE))), ManualClock()
    api.change(KEY, gates=[GATE])
    async with binder(api, clock) as (made, ends):
        made.post([binding()])
        await clock.advance(2)
        assert ends.bound == ["p"]


SERVER_ERROR = ServerError(500, "InternalError", "")
LOST_ANSWER = Unreachable("timed out")
CONFLICT = Conflict(409, "Conflict", "")
STRAY_NOT_FOUND = NotFound(404, "NotFound", "the server could not find the requested resource")
THROTTLED = TooManyRequests(429, "TooManyRequests", "", retry_after=7.0)

RETRIED: list[ApiError] = [SERVER_ERROR, LOST_ANSWER, CONFLICT, THROTTLED, STRAY_NOT_FOUND]


@pytest.mark.parametrize("error", RETRIED, ids=lambda error: error.reason)
async def test_a_binding_that_did_not_land_is_tried_again(error: ApiError) -> None:
    api, clock = ScriptedApi(pod()), ManualClock()
    api.faults["bind"].append(failing(error))
    async with binder(api, clock) as (made, ends):
        made.post([binding()])
        await clock.advance(10)
        assert (api.calls, ends.bound) == (["bind n1", "get", "bind n1"], ["p"])


async def test_the_server_s_own_pause_is_kept() -> None:
    api, clock = ScriptedApi(pod()), ManualClock()
    api.faults["bind"].append(failing(THROTTLED))
    async with binder(api, clock) as (made, ends):
        made.post([binding()])
        await clock.advance(6.9)
        assert api.calls == ["bind n1", "get"]
        await clock.advance(0.1)
        assert ends.bound == ["p"]


@pytest.mark.parametrize("error", [SERVER_ERROR, LOST_ANSWER], ids=lambda error: error.reason)
async def test_a_binding_that_landed_though_its_answer_was_lost_is_a_success(error: ApiError) -> None:
    api, clock = ScriptedApi(pod()), ManualClock()
    api.faults["bind"].append(failing(error, before=lambda: api.change(KEY, node="n1")))
    async with binder(api, clock) as (made, ends):
        made.post([binding()])
        await settle()
        assert (api.calls, ends.bound, ends.failed) == (["bind n1", "get"], ["p"], [])
        assert api.shown[KEY].spec.node_name == "n1"


async def test_a_gate_removal_that_landed_though_its_answer_was_lost_is_not_repeated() -> None:
    api, clock = ScriptedApi(pod(gates=(GATE,))), ManualClock()
    api.faults["patch"].append(failing(LOST_ANSWER, before=lambda: api.change(KEY, gates=[])))
    async with binder(api, clock) as (made, ends):
        made.post([binding()])
        await clock.advance(2)
        assert (api.calls, ends.bound) == (["patch", "get", "bind n1"], ["p"])


def deleted(api: ScriptedApi) -> Fault:
    return lambda: api.pods.pop(KEY)


def replaced(api: ScriptedApi) -> Fault:
    return lambda: api.change(KEY, uid="another")


def bound_elsewhere(api: ScriptedApi) -> Fault:
    return lambda: api.change(KEY, node="n2")


@pytest.mark.parametrize("verb", ["patch", "bind"])
@pytest.mark.parametrize("event", [deleted, replaced, bound_elsewhere])
async def test_a_pod_lost_to_another_writer_is_left_to_the_watch(verb: str, event: Any) -> None:
    api, clock = ScriptedApi(pod(gates=(GATE,))), ManualClock()
    api.faults[verb].append(event(api))
    async with binder(api, clock) as (made, ends):
        made.post([binding()])
        await clock.advance(100)
        assert (ends.bound, ends.failed) == ([], [])
        assert made.idle
        assert api.calls.count("bind n1") <= 1
        if event is bound_elsewhere:
            assert api.shown[KEY].spec.node_name == "n2"


@pytest.mark.parametrize(
    "error", [Forbidden(403, "Forbidden", ""), Invalid(422, "Invalid", "")], ids=lambda e: e.reason
)
async def test_a_refusal_is_not_argued_with(error: ApiError) -> None:
    api, clock = ScriptedApi(pod()), ManualClock()
    api.faults["bind"].append(failing(error))
    async with binder(api, clock) as (made, ends):
        made.post([binding()])
        await clock.advance(100)
        assert (api.calls, ends.failed) == (["bind n1", "get"], ["p"])


async def test_pods_of_a_namespace_that_is_being_deleted_are_told_of_once_and_quietly(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    names = ("p", "q")
    api, clock = ScriptedApi(*(pod(name) for name in names)), ManualClock()
    async with binder(api, clock) as (made, ends):
        for _ in range(3):
            api.faults["bind"] += [failing(NamespaceTerminating(403, "Forbidden", "it is being terminated"))] * 2
            made.post([binding(name) for name in names])
            await clock.advance(10)
        assert (ends.bound, len(ends.failed)) == ([], 6), "the model is told as ever"
    assert [record.levelname for record in caplog.records] == ["INFO"]


async def test_a_pod_that_a_finalizer_keeps_gives_its_place_back() -> None:
    api, clock = ScriptedApi(pod()), ManualClock()
    api.change(KEY, leaving=True)
    async with binder(api, clock) as (made, ends):
        made.post([binding()])
        await clock.advance(100)
        assert (api.calls, ends.failed) == (["bind n1", "get"], ["p"])


async def test_after_the_last_try_the_pod_is_handed_back() -> None:
    api, clock = ScriptedApi(pod()), ManualClock()
    api.faults["bind"].extend([failing(SERVER_ERROR)] * 3)
    async with binder(api, clock) as (made, ends):
        made.post([binding()])
        await clock.advance(100)
        assert (api.calls, ends.failed) == (["bind n1", "get"] * 3, ["p"])


async def test_a_pod_of_unknown_state_is_not_handed_back_before_it_can_be_read() -> None:
    api, clock = ScriptedApi(pod()), ManualClock()
    api.faults["bind"].extend(
        [failing(LOST_ANSWER)] * 2 + [failing(LOST_ANSWER, before=lambda: api.change(KEY, node="n1"))]
    )
    api.faults["get"].extend([failing(LOST_ANSWER)] * 6)
    async with binder(api, clock) as (made, ends):
        made.post([binding()])
        await clock.advance(14)
        assert (ends.bound, ends.failed) == ([], [])
        await clock.advance(20)
        assert (ends.bound, ends.failed) == (["p"], [])
        assert api.calls.count("bind n1") == 3


async def test_no_more_pods_than_allowed_are_written_at_a_time_and_in_the_order_given() -> None:
    names = ["a", "b", "c"]
    api, clock = ScriptedApi(*(pod(name) for name in names)), ManualClock()
    async with binder(api, clock, concurrency=1) as (made, ends):
        made.post(binding(name) for name in names)
        await settle()
        assert ends.bound == names


async def test_a_gang_waits_for_what_has_to_be_written_first() -> None:
    api, clock = ScriptedApi(pod()), ManualClock()
    first: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    async with binder(api, clock) as (made, ends):
        made.post([binding()], after=lambda: first)
        await clock.advance(10)
        assert api.calls == []
        first.set_result(True)
        await settle()
        assert ends.bound == ["p"]


async def test_a_gang_whose_first_write_is_impossible_is_not_bound() -> None:
    api, clock = ScriptedApi(pod()), ManualClock()
    first: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    first.set_result(False)
    async with binder(api, clock) as (made, ends):
        made.post([binding()], after=lambda: first)
        await settle()
        assert (api.calls, ends.failed) == ([], ["p"])
        assert made.idle


async def test_a_gang_whose_first_write_fails_each_time_waits_longer_each_time() -> None:
    api, clock = ScriptedApi(pod()), ManualClock()
    rests: list[float] = []
    posted = clock.now()

    async def first() -> bool:
        rests.append(clock.now() - posted)
        return len(rests) > 3

    async with binder(api, clock) as (made, ends):
        for _ in range(4):
            posted = clock.now()
            made.post([binding()], after=first)
            await clock.advance(10)
        assert (ends.failed, ends.bound, len(made._setbacks)) == (["p"] * 3, ["p"], 0)
        assert rests[0] == 0
        assert all(0.74 * pause < rest < 1.01 * pause for rest, pause in zip(rests[1:], (1, 2, 4), strict=True)), rests


async def test_a_pod_that_was_handed_back_waits_longer_each_time() -> None:
    api, clock = ScriptedApi(pod()), ManualClock()
    async with binder(api, clock) as (made, ends):
        tries = []
        for pause in (0.0, 1.0, 2.0, 4.0, 4.0):
            api.faults["bind"].append(failing(Forbidden(403, "Forbidden", "")))
            made.post([binding()])
            await clock.advance(pause * 0.7)
            before = len(ends.failed)
            await clock.advance(pause * 0.3)
            tries.append((before, len(ends.failed)))
        assert tries == [(1, 1), (1, 2), (2, 3), (3, 4), (4, 5)]


async def test_a_pod_that_was_bound_at_last_is_forgiven() -> None:
    api, clock = ScriptedApi(pod()), ManualClock()
    async with binder(api, clock) as (made, ends):
        api.faults["bind"].append(failing(Forbidden(403, "Forbidden", "")))
        made.post([binding()])
        await settle()
        made.post([binding()])
        await clock.advance(1)
        assert (ends.failed, ends.bound, len(made._setbacks)) == (["p"], ["p"], 0)


class Volumes:
    """Volumes that are there when the test says so."""

    def __init__(self) -> None:
        self.answers: dict[str, asyncio.Future[str]] = {}

    async def bind(self, binding: Binding) -> str:
        self.answers[binding.pod] = asyncio.get_running_loop().create_future()
        return await self.answers[binding.pod]


def gang_with_volume() -> list[Binding]:
    """Two members, the second with a claim."""
    return [binding("p"), replace(binding("q"), volumes=(("default/data", ""),))]


async def test_no_member_of_a_gang_is_bound_before_the_volumes_of_all_are_there() -> None:
    volumes, api = Volumes(), ScriptedApi(pod("p"), pod("q"))
    async with binder(api, ManualClock(), volumes=cast(Any, volumes)) as (made, ends):
        made.post(gang_with_volume())
        await settle()
        assert list(volumes.answers) == ["q"]
        assert (ends.bound, api.calls) == ([], [])
        assert not made.idle
        volumes.answers["q"].set_result("")
        await settle()
        assert sorted(ends.bound) == ["p", "q"]
        assert made.idle


async def test_a_volume_that_can_t_be_made_keeps_the_whole_gang_unbound() -> None:
    volumes, api, clock = Volumes(), ScriptedApi(pod("p"), pod("q")), ManualClock()
    async with binder(api, clock, volumes=cast(Any, volumes)) as (made, ends):
        made.post(gang_with_volume())
        await settle()
        volumes.answers.pop("q").set_result("no space")
        await settle()
        assert sorted(ends.failed) == ["p", "q"]
        assert (ends.bound, api.calls) == ([], [])
        assert made.idle

        made.post(gang_with_volume())
        await settle()
        assert not volumes.answers, "who was handed back rests before it is tried again"
        await clock.advance(1)
        volumes.answers["q"].set_result("")
        await settle()
        assert sorted(ends.bound) == ["p", "q"]


# --- what is reported of a decision ---


async def test_what_became_of_a_gang_is_told_once_all_of_it_has_an_end() -> None:
    api, clock = ScriptedApi(pod("p"), pod("q"), pod("r")), ManualClock()
    api.faults["bind"].append(failing(SERVER_ERROR))
    async with binder(api, clock) as (made, ends):
        made.post([binding("p"), binding("q"), binding("r")])
        await settle()
        assert (ends.decisions, made.idle) == ([], False)
        await clock.advance(2)
        assert [sorted(names) for names in ends.decisions] == [["p", "q", "r"]]
        assert made.idle


async def test_of_a_gang_that_is_bound_in_part_that_part_is_told() -> None:
    api, clock = ScriptedApi(pod("p"), pod("q"), pod("r")), ManualClock()
    api.faults["bind"].append(failing(Forbidden(403, "Forbidden", "")))
    api.faults["bind"].append(failing(NotFound(404, "NotFound", ""), before=lambda: api.pods.pop("default/q")))
    async with binder(api, clock) as (made, ends):
        made.post([binding("p"), binding("q"), binding("r")])
        await clock.advance(10)
        assert (ends.decisions, ends.failed) == ([["r"]], ["p"])
        made.post([binding("p")])
        await clock.advance(10)
        assert ends.decisions == [["r"], ["p"]]


async def test_of_a_gang_that_is_not_bound_at_all_nothing_is_told() -> None:
    api, clock = ScriptedApi(pod()), ManualClock()
    api.faults["bind"].append(failing(Forbidden(403, "Forbidden", "")))
    async with binder(api, clock) as (made, ends):
        made.post([binding()])
        await clock.advance(10)
        assert (ends.decisions, ends.failed) == ([], ["p"])


# --- pods that the default scheduler binds ---


def held(**options: Any) -> Pod:
    return pod(group="pg", scheduler="default-scheduler", gates=(GATE,), **options)


def delegation() -> Binding:
    return replace(binding(), delegate=True)


async def test_a_delegated_pod_is_pinned_and_ungated_by_one_patch_and_nothing_is_bound() -> None:
    api, clock = ScriptedApi(held()), ManualClock()
    async with binder(api, clock) as (made, ends):
        made.post([delegation()])
        await settle()
        assert (api.calls, ends.bound, ends.failed) == (["patch"], ["p"], [])
        assert pinned_node(api.shown[KEY]) == "n1"
        assert api.pods[KEY].spec.scheduling_gates == []
        assert made.idle


def _let_land(api: ScriptedApi) -> Callable[[], None]:
    """The patch is carried out, and its answer lost."""

    def land() -> None:
        patch = delegation_patch(api.pods[KEY], GATE, "n1", 0.0)
        assert patch is not None
        api.pods[KEY] = patched(api.pods[KEY], patch)

    return land


async def test_a_delegation_that_landed_though_its_answer_was_lost_is_a_success() -> None:
    api, clock = ScriptedApi(held()), ManualClock()
    api.faults["patch"].append(failing(LOST_ANSWER, before=_let_land(api)))
    async with binder(api, clock) as (made, ends):
        made.post([delegation()])
        await settle()
        assert (api.calls, ends.bound, ends.failed) == (["patch", "get"], ["p"], [])


async def test_a_delegation_that_did_not_land_is_tried_again() -> None:
    api, clock = ScriptedApi(held()), ManualClock()
    api.faults["patch"].append(failing(SERVER_ERROR))
    async with binder(api, clock) as (made, ends):
        made.post([delegation()])
        await clock.advance(10)
        assert (api.calls, ends.bound) == (["patch", "get", "patch"], ["p"])


async def test_a_delegation_that_the_server_refuses_is_handed_back() -> None:
    api, clock = ScriptedApi(held()), ManualClock()
    api.faults["patch"].append(failing(Invalid(422, "Invalid", "")))
    async with binder(api, clock) as (made, ends):
        made.post([delegation()])
        await clock.advance(10)
        assert (api.calls, ends.bound, ends.failed) == (["patch", "get"], [], ["p"])


async def test_a_pod_that_somebody_else_has_ungated_is_left_to_the_default_scheduler() -> None:
    api, clock = ScriptedApi(held()), ManualClock()
    api.change(KEY, gates=[])
    async with binder(api, clock) as (made, ends):
        made.post([delegation()])
        await clock.advance(10)
        assert (ends.bound, ends.failed) == ([], [])
        assert made.idle


async def test_others_give_way_while_pods_are_being_bound_and_no_longer() -> None:
    api, clock = ScriptedApi(pod()), ManualClock()
    turns = BackgroundTurns(pause=3600.0, clock=clock.now, sleep=clock.sleep)
    held: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    async with binder(api, clock, turns=turns) as (made, ends):
        made.post([binding()], after=lambda: held)
        waiting = asyncio.create_task(turns.turn())
        await settle()
        assert not waiting.done()
        held.set_result(True)
        await settle()
        assert (ends.bound, waiting.done()) == (["p"], True)


async def test_a_binder_that_is_stopped_half_way_holds_up_nobody() -> None:
    api, clock = ScriptedApi(pod()), ManualClock()
    turns = BackgroundTurns(pause=3600.0, clock=clock.now, sleep=clock.sleep)
    async with binder(api, clock, turns=turns) as (made, _):
        made.post([binding()], after=asyncio.get_running_loop().create_future)
        await settle()
    waiting = asyncio.create_task(turns.turn())
    await settle()
    assert waiting.done()


async def test_a_large_decision_needs_no_more_tasks_than_slots() -> None:
    names = [f"p{number}" for number in range(500)]
    api, clock = ScriptedApi(*(pod(name=name) for name in names)), ManualClock()
    api.faults["bind"] += [failing(SERVER_ERROR)] * 3
    async with binder(api, clock, concurrency=5) as (made, ends):
        await settle()
        before = len(asyncio.all_tasks())
        most = 0
        made.post([binding(name) for name in names])
        while not made.idle:
            await clock.advance(0.1)
            most = max(most, len(asyncio.all_tasks()) - before)
        assert sorted(ends.bound) == sorted(names)
        assert most <= 5 + 3, "those that wait for another try beside those that hold a slot"


async def test_pods_that_rest_after_a_failure_hold_up_nobody() -> None:
    names = [f"p{number}" for number in range(10)]
    api, clock = ScriptedApi(*(pod(name=name) for name in names)), ManualClock()
    api.faults["bind"] += [failing(Forbidden(403, "Forbidden", "no"))] * 9
    async with binder(api, clock, concurrency=2) as (made, ends):
        made.post([binding(name) for name in names[:9]])
        await settle(200)
        assert len(ends.failed) == 9
        made.post([binding(name) for name in names])
        await settle(200)
        assert [name for name in names if api.pods[f"default/{name}"].spec.node_name] == ["p9"]
        await clock.advance(1)
        assert sorted(ends.bound) == sorted(names)
