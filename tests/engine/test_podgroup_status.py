"""When a PodGroup is written: what passes within a moment is not. That it arrives is tested on the real API server."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, TypeVar, cast

import msgspec
import pytest

from muster.engine.podgroup_patch import LARGEST
from muster.engine.podgroup_status import PodGroupWriter
from muster.engine.refreshing import EACH, PACE
from muster.engine.settling import LONGEST_SETTLING, SETTLING
from muster.kube.events import EventRecorder
from muster.kube.objects import PodGroup
from muster.scheduler.outcome import PodGroupStatus
from muster.scheduler.reasons import Code, Reason, describe
from muster.scheduler.specs import Condition, Phase
from muster.testing import NAMESPACE, Cluster, gang, nodes, queue, resources
from tests.engine.manual_clock import ManualClock

KEY = "ns/pg"
RAY_JOB = {"apiVersion": "ray.io/v1", "kind": "RayJob", "name": "j", "uid": "o", "controller": True}
VOLCANO_JOB = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "o", "controller": True}


class Desk:
    """A writer, the API server and the informer of the one PodGroup that it writes to, and what was told."""

    def __init__(self, phase: str = "Pending", owner: dict[str, Any] | None = None, **notes: str) -> None:
        annotations = {f"muster.dev/{name.replace('_', '-')}": note for name, note in notes.items()}
        meta = {"name": "pg", "namespace": "ns", "uid": "u", "ownerReferences": [owner] if owner else []}
        given = {"metadata": {**meta, "annotations": annotations}, "spec": {"minMember": 3}, "status": {"phase": phase}}
        self.group = msgspec.convert(given, PodGroup)
        self.clock = ManualClock()
        self.phases: list[str | None] = []
        self.told: list[str] = []
        self.writer = PodGroupWriter(cast(Any, self), cast(Any, self), cast(EventRecorder, self), self.clock)

    # what the writer uses of an informer, a client and a recorder

    def get(self, _namespace: str | None, name: str) -> PodGroup | None:
        return self.group if name == "pg" else None

    def record(self, group: PodGroup) -> None:
        self.group = group

    async def patch(self, _resource: Any, _namespace: str, _name: str, patch: Mapping[str, Any], **_: Any) -> PodGroup:
        written = msgspec.convert(merged(msgspec.to_builtins(self.group), patch), PodGroup)
        self.phases.append(written.status.phase)
        return written

    def event(self, _about: Any, _type: str, reason: str, message: str, _action: str, **_: Any) -> None:
        self.told.append(f"{reason}: {message}")

    # what a test does

    def say(self, *statuses: PodGroupStatus) -> None:
        for status in statuses:
            self.writer.update({KEY: status})

    async def pass_time(self, seconds: float) -> None:
        await self.clock.advance(seconds)


AnyDesk = TypeVar("AnyDesk", bound=Desk)


def merged(there: Any, patch: Any) -> Any:
    """A merge patch carried out (RFC 7386)."""
    if not isinstance(patch, Mapping):
        return patch
    found = dict(there) if isinstance(there, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found


@asynccontextmanager
async def at_work(desk: AnyDesk) -> AsyncIterator[AnyDesk]:
    task = asyncio.create_task(desk.writer.queue.run())
    try:
        yield desk
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def status(phase: Phase, running: int = 0, reason: Reason | None = None) -> PodGroupStatus:
    told = (Condition("Unschedulable", True, "NotEnoughResources", "it waits"),) if reason else ()
    return PodGroupStatus(phase, told, running, 0, 0, reason=reason)


def pods_made(count: int) -> PodGroupStatus:
    return status(Phase.INQUEUE, reason=Reason(Code.NOT_ENOUGH_PODS, have=count, need=3))


NO_ROOM = status(Phase.INQUEUE, reason=Reason(Code.NOT_ENOUGH_NODES, have=0, need=3))
PLACED = status(Phase.INQUEUE)
BOUND = status(Phase.RUNNING)


async def test_a_gang_that_is_placed_as_soon_as_its_pods_are_made_is_written_once() -> None:
    async with at_work(Desk()) as desk:
        desk.say(pods_made(0), pods_made(1), pods_made(2), PLACED, BOUND)
        for count in (1, 2, 3):
            await desk.pass_time(SETTLING / 4)
            desk.say(status(Phase.RUNNING, count))
        await desk.pass_time(SETTLING)
        assert (desk.phases, desk.group.status.running, desk.told) == (["Running"], 3, [])
        assert desk.writer.queue.idle


async def test_a_wait_that_lasts_is_told_within_two_seconds() -> None:
    async with at_work(Desk()) as desk:
        desk.say(NO_ROOM)
        await desk.pass_time(SETTLING - 0.1)
        assert (desk.phases, desk.told) == ([], [])
        await desk.pass_time(0.1)
        assert (desk.phases, len(desk.told)) == (["Inqueue"], 1)
    assert LONGEST_SETTLING <= 2


async def test_a_gang_whose_pods_come_slowly_says_so_in_time() -> None:
    async with at_work(Desk()) as desk:
        for count in range(3):
            desk.say(pods_made(count))
            await desk.pass_time(LONGEST_SETTLING / 3)
        assert (desk.phases, len(desk.told)) == (["Inqueue"], 1)


async def test_a_wait_that_others_overtake_again_and_again_is_told_in_time() -> None:
    async with at_work(Desk()) as desk:
        for round_trip in range(8):
            desk.say(NO_ROOM if round_trip % 2 else pods_made(2))
            await desk.pass_time(LONGEST_SETTLING / 8)
        assert len(desk.phases) == 1


async def test_a_wait_that_ends_and_begins_anew_before_it_was_told_is_told_once() -> None:
    async with at_work(Desk()) as desk:
        desk.say(NO_ROOM, PLACED, NO_ROOM)
        await desk.pass_time(LONGEST_SETTLING)
        assert (desk.phases, len(desk.told)) == (["Inqueue"], 1)


OWNERS: dict[str, tuple[dict[str, Any] | None, list[str]]] = {
    "one that makes its pods only when the gang is admitted, maybe": (VOLCANO_JOB, ["Inqueue"]),
    "a RayJob, whose pods come all the same": (RAY_JOB, []),
    "nobody": (None, []),
    "an owner that does not manage it": ({**VOLCANO_JOB, "controller": False}, []),
}


@pytest.mark.parametrize(("owner", "at_once"), OWNERS.values(), ids=OWNERS.keys())
async def test_who_may_wait_for_the_admission_hears_of_it_at_once(
    owner: dict[str, Any] | None, at_once: list[str]
) -> None:
    async with at_work(Desk(owner=owner)) as desk:
        desk.say(pods_made(0))
        await desk.pass_time(0)
        assert desk.phases == at_once
        desk.say(PLACED)
        await desk.pass_time(0)
        assert desk.phases == at_once, "with all its pods nobody waits any more"


async def test_what_a_binding_waits_for_is_written_at_once() -> None:
    async with at_work(Desk()) as desk:
        desk.say(replace(PLACED, companions={"submittergroup": "n1"}))
        waiting = asyncio.create_task(desk.writer.written(KEY))
        await desk.pass_time(0)
        assert waiting.done()
        assert (desk.phases, await waiting) == (["Inqueue"], True)


NOW = ManualClock().now()
KNOWN: dict[str, tuple[dict[str, str], PodGroupStatus, bool]] = {
    "the minimum that its PodGroup asks for anyway": ({}, replace(BOUND, minimum_met=3), False),
    "a smaller one, that minMember has left behind": ({}, replace(BOUND, minimum_met=2), True),
    "a larger one than was noted": ({"minimum_met": "2"}, replace(BOUND, minimum_met=3), True),
    "the one that was noted": ({"minimum_met": "2"}, replace(BOUND, minimum_met=2), False),
    "none any more": ({"minimum_met": "3"}, BOUND, False),
    "that it is broken": ({"minimum_met": "3"}, replace(BOUND, minimum_met=3, broken_since=NOW), True),
    "that it is whole again": ({"broken_since": "2026-01-01T00:00:00Z"}, BOUND, False),
}


@pytest.mark.parametrize(("notes", "said", "at_once"), KNOWN.values(), ids=KNOWN.keys())
async def test_what_nobody_could_know_after_a_restart_is_written_at_once(
    notes: dict[str, str], said: PodGroupStatus, at_once: bool
) -> None:
    async with at_work(Desk("Pending", None, **notes)) as desk:
        desk.say(said)
        await desk.pass_time(0)
        assert bool(desk.phases) is at_once


async def test_phases_are_never_written_backwards() -> None:
    async with at_work(Desk()) as desk:
        steps = [pods_made(0), NO_ROOM, PLACED, BOUND, status(Phase.RUNNING, 3), status(Phase.COMPLETED)]
        for step in steps:
            desk.say(step)
            await desk.pass_time(SETTLING)
        assert desk.phases == ["Inqueue", "Inqueue", "Inqueue", "Running", "Running", "Completed"]


class Office(Desk):
    """A desk for all PodGroups of a cluster; `writes` counts how often each is written."""

    def __init__(self, names: list[str]) -> None:
        super().__init__()
        made = {"metadata": {"namespace": NAMESPACE, "uid": "u"}, "spec": {"minMember": 3}}
        self.groups = {name: msgspec.convert(merged(made, {"metadata": {"name": name}}), PodGroup) for name in names}
        self.writes: Counter[str] = Counter()

    def get(self, _namespace: str | None, name: str) -> PodGroup | None:
        return self.groups.get(name)

    def record(self, group: PodGroup) -> None:
        self.groups[group.metadata.name] = group

    async def patch(self, _resource: Any, _namespace: str, _name: str, patch: Mapping[str, Any], **_: Any) -> PodGroup:
        self.writes[_name] += 1
        return msgspec.convert(merged(msgspec.to_builtins(self.groups[_name]), patch), PodGroup)


async def test_what_an_arrival_costs_does_not_grow_with_the_gangs_that_wait() -> None:
    """Each wakes those whose queue it takes quota of, and all their reasons have other numbers then."""
    parked, arrivals = [f"p{index}" for index in range(40)], [f"a{index}" for index in range(6)]
    cluster = Cluster.of(nodes("n", 10, cpu=32), queue("q", capability=resources(40)), gang("h", 20, queue="q"))
    cluster.run()
    for index, name in enumerate(parked):
        cluster.add(gang(name, 3, 10 + index / 100, queue="q"))
    async with at_work(Office([*parked, *arrivals])) as office:
        await carry_out(cluster, office)
        assert office.writes.keys() == set(parked)
        office.writes.clear()
        rewritten = set()
        for name in arrivals:
            cluster.add(gang(name, 3, queue="q"))
            rewritten |= await carry_out(cluster, office) & set(parked)
        assert len(rewritten) > 20, "or the test says nothing"
        by_themselves = sum(office.writes[name] for name in parked)
        assert by_themselves <= 1 + len(arrivals) * LONGEST_SETTLING / PACE
        assert all(office.writes[name] for name in arrivals)


async def carry_out(cluster: Cluster, office: Office) -> set[str]:
    """Let the cluster decide and the office write; the PodGroups that had anything to say."""
    said: set[str] = set()
    for outcome in cluster.run():
        office.writer.update(outcome.pod_groups)
        said |= {key.partition("/")[2] for key in outcome.pod_groups}
    await office.pass_time(LONGEST_SETTLING)
    return said


def quota(used: int, *, requested: int = 4000, queue: str = "q", members: int = 3) -> PodGroupStatus:
    reason = Reason(
        Code.QUEUE_QUOTA, resource="cpu", requested=requested, used=used, limit=9000, queue=queue, since=NOW
    )
    told = Condition("Unschedulable", True, "NotEnoughResources", f"{members} wait: {describe(reason)}")
    return PodGroupStatus(Phase.INQUEUE, (told,), 0, 0, 0, reason=reason)


DIFFERENT: dict[str, tuple[PodGroupStatus, bool]] = {
    "only what others use": (quota(7000), False),
    "what the gang asks for": (quota(7000, requested=5000), True),
    "which queue is full": (quota(7000, queue="above"), True),
    "its phase": (replace(quota(7000), phase=Phase.PENDING), True),
    "that a member runs": (replace(quota(7000), running=1), True),
    "another condition": (
        replace(quota(7000), conditions=(*quota(7000).conditions, Condition("Scheduled", False))),
        True,
    ),
    "a note": (replace(quota(7000), companions={"submittergroup": "n1"}), True),
    "the reason": (NO_ROOM, True),
    "that it waits no more": (PLACED, True),
}


@pytest.mark.parametrize(("said", "is_written"), DIFFERENT.values(), ids=DIFFERENT.keys())
async def test_a_gang_that_waits_is_written_anew_for_its_own_affairs(said: PodGroupStatus, is_written: bool) -> None:
    async with at_work(Desk()) as desk:
        for used in (5000, 6000):
            desk.say(quota(used))
            await desk.pass_time(LONGEST_SETTLING)
        assert len(desk.phases) == 2, "the second one is the one that may be refreshed"
        desk.say(said)
        await desk.pass_time(LONGEST_SETTLING)
        assert (len(desk.phases) == 3, desk.writer.queue.idle) == (is_written, True)


async def test_numbers_that_were_passed_over_are_written_with_what_comes_next() -> None:
    async with at_work(Desk()) as desk:
        for used in (5000, 6000, 7000):
            desk.say(quota(used))
            await desk.pass_time(LONGEST_SETTLING)
        assert "used cpu 6 " in (desk.group.status.conditions[0].message or "")
        await desk.pass_time(EACH)
        desk.say(quota(8000))
        await desk.pass_time(LONGEST_SETTLING)
        assert "used cpu 8 " in (desk.group.status.conditions[0].message or "")


def waiting_for(nodes: int, code: Code = Code.NOT_ENOUGH_NODES) -> PodGroupStatus:
    reason = Reason(code, have=0, need=3, nodes=(("Insufficient cpu", nodes),), detail="d")
    condition = Condition("Unschedulable", True, "NotEnoughResources", describe(reason))
    return PodGroupStatus(Phase.INQUEUE, (condition,), 0, 0, 0, reason=reason)


async def test_annotations_that_leave_no_room_hold_up_no_status_and_are_told_once_with_each_reason() -> None:
    async with at_work(Desk()) as desk:
        desk.group.metadata.annotations["big"] = "x" * (LARGEST - 10)
        for status in (waiting_for(3), waiting_for(2), waiting_for(1, Code.WAITING_FOR_TURN)):
            desk.say(status)
            await desk.pass_time(5)
            shown = desk.group.status
            assert shown.phase == "Inqueue"
            assert [each.message for each in shown.conditions] == [status.conditions[0].message]
        assert desk.group.metadata.annotations.keys() == {"big"}
        crowded = (
            "AnnotationsTooLarge: metadata.annotations: 262137 of 262144 bytes are taken, which leaves no room for "
        )
        assert {each for each in desk.told if each.startswith("A")} == {f"{crowded}muster.dev/reason: shorten them"}
        assert [each for each in desk.told if each.startswith("Unschedulable")] == [
            f"Unschedulable: {describe(waiting_for(3).reason)}",  # type: ignore[arg-type]
            "Unschedulable: its turn has not come yet (d)",
        ]


async def test_a_gang_is_not_held_back_for_a_note_that_finds_no_room() -> None:
    async with at_work(Desk()) as desk:
        desk.group.metadata.annotations["big"] = "x" * (LARGEST - 10)
        desk.say(PodGroupStatus(Phase.INQUEUE, (), 0, 0, 0, companions={"submitter": "n"}))
        assert not desk.writer.holds_back(KEY)
        await desk.pass_time(5)
        assert desk.phases == ["Inqueue"]
        (told,) = set(desk.told)
        assert told.endswith("leaves no room for muster.dev/companion-nodes: shorten them")
