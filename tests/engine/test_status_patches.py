"""What is written to queues and to waiting pods."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import msgspec
import pytest

from muster.engine.pod_specs import verdict_shown
from muster.engine.pod_status import PodConditionWriter, pod_condition_patch
from muster.engine.queue_status import queue_patch
from muster.engine.settling import LONGEST_SETTLING, SETTLING
from muster.kube.objects import Pod, Queue
from muster.kube.pod_objects import PodStatus
from muster.scheduler.outcome import QueueStatus
from muster.scheduler.reasons import Code, Reason
from muster.scheduler.resources import Resources
from muster.scheduler.specs import PodVerdict
from tests.engine.manual_clock import ManualClock
from tests.engine.pod_manifests import pod
from tests.engine.scripted_api import ScriptedApi, Store

NOW = 1767225600.0
NOW_TEXT = "2026-01-01T00:00:00Z"
BEFORE = "2025-12-31T00:00:00Z"


def queue(allocated: dict[str, Any] | None) -> Queue:
    status = {} if allocated is None else {"allocated": allocated}
    return msgspec.convert({"metadata": {"name": "q", "uid": "u"}, "status": status}, type=Queue)


USED = Resources(1500, 2 * 1024**3, {"pods": 3, "nvidia.com/gpu": 2000})
USED_TEXT: dict[str, str | None] = {"cpu": "1500m", "memory": "2Gi", "pods": "3", "nvidia.com/gpu": "2"}

SILENT: dict[str, tuple[Queue, Resources]] = {
    "nothing used, nothing said": (queue(None), Resources()),
    "nothing used, and said": (queue({"cpu": "0", "memory": "0"}), Resources()),
    "the same in other words": (queue({**USED_TEXT, "cpu": "1.5", "memory": "2048Mi"}), USED),
}


@pytest.mark.parametrize(("shown", "allocated"), SILENT.values(), ids=SILENT.keys())
def test_a_queue_that_says_what_it_uses_is_not_written(shown: Queue, allocated: Resources) -> None:
    assert queue_patch(shown, QueueStatus(allocated), NOW) is None


WRITTEN: dict[str, tuple[Queue, Resources, dict[str, str | None]]] = {
    "first": (queue(None), USED, USED_TEXT),
    "given back": (queue(USED_TEXT), Resources(), {"cpu": "0", "memory": "0", "pods": None, "nvidia.com/gpu": None}),
    "unreadable": (queue({"cpu": "x"}), Resources(1000), {"cpu": "1", "memory": "0"}),
}


@pytest.mark.parametrize(("shown", "allocated", "text"), WRITTEN.values(), ids=WRITTEN.keys())
def test_a_queue_says_exactly_what_it_uses(shown: Queue, allocated: Resources, text: dict[str, str | None]) -> None:
    assert queue_patch(shown, QueueStatus(allocated), NOW) == {"metadata": {"uid": "u"}, "status": {"allocated": text}}


PROBLEM = Reason(Code.QUEUE_BROKEN, queue="p", detail="it is its own parent")
BROKEN = {
    "type": "Broken",
    "status": "True",
    "reason": "QueueBroken",
    "message": "queue p can't be used: it is its own parent",
    "lastTransitionTime": NOW_TEXT,
}
MENDED = {"type": "Broken", "status": "False", "lastTransitionTime": NOW_TEXT}
OTHER = {"type": "Audited", "status": "True"}
EARLIER = {**BROKEN, "lastTransitionTime": BEFORE}

VERDICTS: dict[str, tuple[list[dict[str, Any]], Reason | None, list[dict[str, Any]] | None]] = {
    "never wrong": ([], None, None),
    "wrong": ([OTHER], PROBLEM, [OTHER, BROKEN]),
    "still wrong": ([EARLIER], PROBLEM, None),
    "wrong in another way": ([{**EARLIER, "message": "x"}], PROBLEM, [EARLIER]),
    "mended": ([EARLIER, OTHER], None, [MENDED, OTHER]),
    "mended before": ([{**MENDED, "lastTransitionTime": BEFORE}], None, None),
}


@pytest.mark.parametrize(("shown", "problem", "written"), VERDICTS.values(), ids=VERDICTS.keys())
def test_a_queue_says_what_is_wrong_with_it(
    shown: list[dict[str, Any]], problem: Reason | None, written: list[dict[str, Any]] | None
) -> None:
    given = msgspec.convert({"metadata": {"name": "q", "uid": "u"}, "status": {"conditions": shown}}, type=Queue)
    patch = queue_patch(given, QueueStatus(Resources(), problem=problem), NOW)
    assert patch == (None if written is None else {"metadata": {"uid": "u"}, "status": {"conditions": written}})


def saying(reason: str, message: str, *, gates: tuple[str, ...] = ()) -> Pod:
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    return pod(gates=gates, status={"conditions": [{**condition, "lastTransitionTime": BEFORE}]})


NO_ROOM = PodVerdict("Pending", "Unschedulable", "no room")
NOTHING = PodVerdict("Pending", "", "")


def condition(patch: dict[str, Any] | None) -> dict[str, Any]:
    assert patch is not None
    assert patch["metadata"] == {"uid": "uid-p", "resourceVersion": "1"}
    (found,) = patch["status"]["conditions"]
    assert isinstance(found, dict)
    return found


def test_a_pod_says_that_more_nodes_would_help() -> None:
    expected = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
    assert condition(pod_condition_patch(pod(), NO_ROOM, NOW)) == {**expected, "lastTransitionTime": NOW_TEXT}
    gated = saying("SchedulingGated", "gates", gates=("g",))
    assert condition(pod_condition_patch(gated, NO_ROOM, NOW)) == {**expected, "lastTransitionTime": BEFORE}


def test_a_gated_pod_goes_back_to_what_the_server_says_of_it() -> None:
    found = condition(pod_condition_patch(saying("Unschedulable", "no room", gates=("g",)), NOTHING, NOW))
    assert (found["reason"], found["status"]) == ("SchedulingGated", "False")


def test_an_ungated_pod_goes_back_to_saying_nothing() -> None:
    found = condition(pod_condition_patch(saying("Unschedulable", "no room"), NOTHING, NOW))
    assert found == {"type": "PodScheduled", "$patch": "delete"}


NO_WRITE: dict[str, tuple[Pod, PodVerdict]] = {
    "said already": (saying("Unschedulable", "no room"), NO_ROOM),
    "nothing to take back": (pod(), NOTHING),
    "a gate's own word is not ours to take back": (saying("SchedulingGated", "gates", gates=("g",)), NOTHING),
}


def test_a_pod_is_told_on_which_node_room_is_made_for_it_and_when_no_more() -> None:
    promised = PodVerdict("Pending", "", "", "n-1")
    patch = pod_condition_patch(pod(), promised, NOW)
    assert patch is not None
    assert patch["status"] == {"nominatedNodeName": "n-1"}
    shown = pod(status={"nominatedNodeName": "n-1"})
    assert verdict_shown(shown) == promised
    assert pod_condition_patch(shown, promised, NOW) is None
    patch = pod_condition_patch(shown, NOTHING, NOW)
    assert patch is not None
    assert patch["status"] == {"nominatedNodeName": None}


@pytest.mark.parametrize(("shown", "verdict"), NO_WRITE.values(), ids=NO_WRITE.keys())
def test_a_pod_that_says_the_right_thing_is_not_written(shown: Pod, verdict: PodVerdict) -> None:
    assert pod_condition_patch(shown, verdict, NOW) is None


@asynccontextmanager
async def pod_writer(api: ScriptedApi, clock: ManualClock) -> AsyncIterator[PodConditionWriter]:
    writer = PodConditionWriter(cast(Any, api), cast(Any, Store(api)), clock)
    task = asyncio.create_task(writer.queue.run())
    try:
        yield writer
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_a_pod_that_finds_its_place_within_a_moment_is_not_called_unschedulable() -> None:
    api, clock = ScriptedApi(pod(gates=("g",))), ManualClock()
    async with pod_writer(api, clock) as writer:
        writer.update({"default/p": NO_ROOM})
        await clock.advance(SETTLING / 2)
        writer.update({"default/p": NOTHING})
        await clock.advance(LONGEST_SETTLING)
        assert (api.calls, writer.queue.idle, writer._wanted) == ([], True, {})


async def test_a_pod_that_more_nodes_would_help_says_so_within_two_seconds() -> None:
    api, clock = ScriptedApi(pod(gates=("g",))), ManualClock()
    async with pod_writer(api, clock) as writer:
        for _ in range(4):
            writer.update({"default/p": NO_ROOM})
            await clock.advance(LONGEST_SETTLING / 4)
        assert api.calls == ["patch"]


async def test_for_whom_room_is_made_is_written_at_once() -> None:
    api, clock = ScriptedApi(pod(gates=("g",))), ManualClock()
    async with pod_writer(api, clock) as writer:
        writer.update({"default/p": NO_ROOM})
        writer.update({"default/p": PodVerdict("Pending", "", "", "n-1")})
        assert await writer.written(["default/p"])
        assert (api.calls, clock.now()) == (["patch"], ManualClock().now())


async def test_who_waits_for_a_pod_to_be_written_does_not_wait_for_it_to_settle() -> None:
    api, clock = ScriptedApi(pod(gates=("g",))), ManualClock()
    async with pod_writer(api, clock) as writer:
        writer.update({"default/p": NO_ROOM})
        waiting = asyncio.create_task(writer.written(["default/p"]))
        await clock.advance(0)
        assert waiting.done()
        assert (await waiting, api.calls) == (True, ["patch"])


async def test_a_pod_of_which_there_is_nothing_to_say_costs_nothing() -> None:
    api, clock = ScriptedApi(pod(gates=("g",))), ManualClock()
    async with pod_writer(api, clock) as writer:
        writer.update({"default/p": PodVerdict("Pending", "", "2 of 3 pods exist")})
        assert (writer.queue.idle, writer._wanted) == (True, {})


class SlowApi(ScriptedApi):
    """Answers a patch of the pod's status when a test says so, and has it say what the patch wanted."""

    def __init__(self, *pods: Pod) -> None:
        super().__init__(*pods)
        self.answers = asyncio.Event()

    async def patch(self, resource: Any, namespace: str, name: str, patch: Any, **options: Any) -> Any:
        self.calls.append(patch["status"]["conditions"][0]["reason"])
        await self.answers.wait()
        there = self._found(namespace, name)
        found = msgspec.structs.replace(there.status, conditions=msgspec.convert(patch["status"], PodStatus).conditions)
        self.pods[there.key] = msgspec.structs.replace(there, status=found)
        return self.pods[there.key]


async def test_what_is_no_longer_true_while_it_is_written_is_taken_back() -> None:
    api, clock = SlowApi(pod(gates=("g",))), ManualClock()
    async with pod_writer(api, clock) as writer:
        writer.update({"default/p": NO_ROOM})
        await clock.advance(SETTLING)
        writer.update({"default/p": NOTHING})
        api.answers.set()
        await clock.advance(LONGEST_SETTLING)
        assert (api.calls, writer.queue.idle) == (["Unschedulable", "SchedulingGated"], True)
        api.answers.clear()
        writer.update({"default/p": NO_ROOM})
        await clock.advance(SETTLING)
        writer.update({"default/p": NOTHING})
        writer.update({"default/p": NO_ROOM})
        api.answers.set()
        await clock.advance(LONGEST_SETTLING)
        assert (api.calls[2:], writer.queue.idle) == (["Unschedulable"], True)


async def test_nothing_is_kept_for_a_pod_that_went_away() -> None:
    api, clock = ScriptedApi(pod()), ManualClock()
    async with pod_writer(api, clock) as writer:
        api.pods.clear()
        writer.update({"default/p": NO_ROOM})
        await clock.advance(LONGEST_SETTLING)
        assert (api.calls, writer.queue.idle, writer._wanted) == (["patch"], True, {})


async def test_a_pod_that_the_default_scheduler_is_to_bind_is_told_nothing_more() -> None:
    note = {"muster.dev/delegated-at": "2026-01-01T00:00:00Z"}
    name = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    required = {"nodeSelectorTerms": [{"matchFields": [name]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    api, clock = ScriptedApi(pod(scheduler="default-scheduler", annotations=note, affinity=affinity)), ManualClock()
    async with pod_writer(api, clock) as writer:
        writer.update({"default/p": NO_ROOM})
        await clock.advance(LONGEST_SETTLING)
        assert (api.calls, writer.queue.idle, writer._wanted) == ([], True, {})
