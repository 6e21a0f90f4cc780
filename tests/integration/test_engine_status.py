"""What the engine writes to PodGroups, queues and pods, against a real API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from muster.engine.clock import SystemClock
from muster.engine.evictor import Evictor
from muster.engine.pod_status import PodConditionWriter
from muster.engine.podgroup_patch import LARGEST
from muster.engine.podgroup_status import PodGroupWriter
from muster.engine.queue_status import QueueWriter
from muster.kube.client import ApiClient
from muster.kube.errors import Invalid, NotFound
from muster.kube.events import EventRecorder
from muster.kube.informer import Informer
from muster.kube.objects import Pod, PodGroup, Queue
from muster.kube.resource import PODGROUPS, PODS, QUEUES
from muster.scheduler.outcome import Eviction, PodGroupStatus, QueueStatus
from muster.scheduler.reasons import Code, Reason
from muster.scheduler.resources import Resources
from muster.scheduler.specs import Condition, Phase, PodVerdict
from tests.integration.fault_proxy import Answer, FaultProxy, LoseAnswer, matching
from tests.integration.gang_objects import Gangs, eventually

NO_ROOM = Reason(Code.NOT_ENOUGH_NODES, resource="cpu", requested=1000, member="p", nodes=(("Insufficient cpu", 2),))
WAITS = PodGroupStatus(
    Phase.INQUEUE, (Condition("Unschedulable", True, "NotEnoughResources", "no room"),), 0, 0, 0, reason=NO_ROOM
)
RUNS = PodGroupStatus(
    Phase.RUNNING, (Condition("Scheduled", True, "tasks in gang are ready to be scheduled"),), 3, 0, 0
)
UNSCHEDULABLE = PodVerdict("Pending", "Unschedulable", "no room")
NO_LONGER = PodVerdict("Pending", "", "")


class Desk:
    """All writers behind the proxy, their informers, and the recorder."""

    def __init__(self, client: ApiClient, gangs: Gangs) -> None:
        clock = SystemClock()
        self.gangs = gangs
        self.recorder = EventRecorder(client, "muster")
        self.pods = Informer(client, PODS, Pod, namespace=gangs.namespace)
        self.pod_groups = Informer(client, PODGROUPS, PodGroup, namespace=gangs.namespace)
        self.queues = Informer(client, QUEUES, Queue)
        self.groups = PodGroupWriter(client, self.pod_groups, self.recorder, clock)
        self.accounts = QueueWriter(client, self.queues, clock)
        self.conditions = PodConditionWriter(client, self.pods, clock)
        self.failed: list[str] = []
        self.evictor = Evictor(
            client, self.recorder, clock, failed=lambda eviction, complaint: self.failed.append(eviction.pod)
        )

    def parts(self) -> list[Any]:
        informers = [self.pods, self.pod_groups, self.queues]
        queues = [self.groups.queue, self.accounts.queue, self.conditions.queue]
        return [*informers, *queues, self.recorder, self.evictor]

    async def say(self, name: str, status: PodGroupStatus) -> PodGroup:
        await eventually(lambda: self.pod_groups.get(self.gangs.namespace, name) is not None, "the PodGroup is shown")
        self.groups.update({f"{self.gangs.namespace}/{name}": status})
        await eventually(lambda: self.groups.queue.idle, "the PodGroup is written")
        return await self.gangs.read_group(name)

    async def say_of_pod(self, name: str, verdict: PodVerdict) -> dict[str, tuple[str, str | None]]:
        """Write a verdict; returns the pod's conditions: status and reason by type."""
        await eventually(lambda: self.pods.get(self.gangs.namespace, name) is not None, "the pod is shown")
        self.conditions.update({f"{self.gangs.namespace}/{name}": verdict})
        await eventually(lambda: self.conditions.queue.idle, "the pod is written")
        pod = await self.gangs.read_pod(name)
        return {each.type: (each.status, each.reason) for each in pod.status.conditions}


@pytest.fixture
async def gangs(api: ApiClient, namespace: str) -> Gangs:
    return Gangs(api, namespace)


@pytest.fixture
async def desk(proxied: ApiClient, gangs: Gangs) -> AsyncIterator[Desk]:
    made = Desk(proxied, gangs)
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(part.run()) for part in made.parts()]
        yield made
        for task in running:
            task.cancel()


async def test_a_pod_group_says_its_phase_its_condition_and_its_reason(desk: Desk, gangs: Gangs) -> None:
    await gangs.pod_group("pg", 3)
    found = await desk.say("pg", WAITS)
    assert found.status.phase == "Inqueue"
    (condition,) = found.status.conditions
    assert (condition.type, condition.status, condition.message) == ("Unschedulable", "True", "no room")
    assert condition.transition_id
    assert condition.last_transition_time
    assert '"code":"NotEnoughNodes"' in found.metadata.annotations["muster.dev/reason"]


async def test_a_pod_group_whose_annotations_leave_no_room_says_its_phase_and_condition(
    desk: Desk, gangs: Gangs
) -> None:
    await gangs.pod_group("pg", 3, annotations={"example.com/big": "x" * (LARGEST - 20)})
    found = await desk.say("pg", WAITS)
    assert (found.status.phase, [each.type for each in found.status.conditions]) == ("Inqueue", ["Unschedulable"])
    found = await desk.say("pg", RUNS)
    assert (found.status.phase, found.status.running) == ("Running", 3)
    await desk.recorder.flush(10)
    assert sorted(reason for reason, _ in await gangs.events("PodGroup", "pg")) == [
        "AnnotationsTooLarge",
        "Unschedulable",
    ]


async def test_a_condition_of_nothing_that_others_have_put_there_is_taken_away(desk: Desk, gangs: Gangs) -> None:
    await gangs.pod_group("pg", 3)
    junk: dict[str, Any] = {"status": {"conditions": [{}]}}
    await gangs.api.patch(PODGROUPS, gangs.namespace, "pg", junk)
    found = await desk.say("pg", WAITS)
    assert (found.status.phase, [each.type for each in found.status.conditions]) == ("Inqueue", ["Unschedulable"])


async def test_annotations_may_have_as_many_bytes_as_muster_reckons_with(gangs: Gangs) -> None:
    await gangs.pod_group("full", 3, annotations={"a": "ä" * ((LARGEST - 2) // 2) + "b"})
    with pytest.raises(Invalid):
        await gangs.pod_group("over", 3, annotations={"a": "ä" * ((LARGEST - 2) // 2) + "bc"})


async def test_saying_the_same_again_writes_nothing(desk: Desk, gangs: Gangs, proxy: FaultProxy) -> None:
    await gangs.pod_group("pg", 3)
    first = await desk.say("pg", WAITS)
    await desk.recorder.flush(10)
    writes = proxy.writes
    assert await desk.say("pg", WAITS) == first
    assert proxy.writes == writes


async def test_an_event_tells_of_each_change_once(desk: Desk, gangs: Gangs) -> None:
    await gangs.pod_group("pg", 3)
    await desk.say("pg", WAITS)
    less = Reason(Code.NOT_ENOUGH_NODES, resource="cpu", requested=1000, member="p", nodes=(("Insufficient cpu", 1),))
    numbers = PodGroupStatus(Phase.INQUEUE, WAITS.conditions, 0, 0, 0, reason=less)
    await desk.say("pg", numbers)
    found = await desk.say("pg", RUNS)
    assert "muster.dev/reason" not in found.metadata.annotations
    await desk.recorder.flush(10)
    reasons = [reason for reason, _ in await gangs.events("PodGroup", "pg")]
    assert reasons == ["Unschedulable"]


async def test_what_is_true_a_second_time_is_told_a_second_time(desk: Desk, gangs: Gangs) -> None:
    await gangs.pod_group("pg", 3)
    for status in (WAITS, RUNS, WAITS, RUNS):
        await desk.say("pg", status)
    await desk.recorder.flush(10)
    reasons = [reason for reason, _ in await gangs.events("PodGroup", "pg")]
    assert reasons == ["Unschedulable"] * 2


async def test_a_pod_group_made_anew_is_not_told_what_was_meant_for_the_old_one(
    desk: Desk, gangs: Gangs, proxy: FaultProxy
) -> None:
    await gangs.pod_group("pg", 3)
    await eventually(lambda: desk.pod_groups.get(gangs.namespace, "pg") is not None, "the PodGroup is shown")
    await eventually(lambda: proxy.freeze_watches(matching(path="/podgroups")) == 1, "the watch stands still")
    await gangs.api.delete(PODGROUPS, gangs.namespace, "pg")
    await gangs.pod_group("pg", 5)
    assert (await desk.say("pg", WAITS)).status.phase == "Pending"


async def test_another_s_change_meanwhile_is_kept(desk: Desk, gangs: Gangs, proxy: FaultProxy) -> None:
    await gangs.pod_group("pg", 3)
    await eventually(lambda: desk.pod_groups.get(gangs.namespace, "pg") is not None, "the PodGroup is shown")
    await eventually(lambda: proxy.freeze_watches(matching(path="/podgroups")) == 1, "the watch stands still")
    await gangs.api.patch(PODGROUPS, gangs.namespace, "pg", {"spec": {"minMember": 7}})
    found = await desk.say("pg", WAITS)
    assert (found.spec.min_member, found.status.phase) == (7, "Inqueue")


FAULTS: dict[str, Any] = {"500": Answer(500, "InternalError"), "409": Answer(409, "Conflict"), "lost": LoseAnswer()}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
async def test_a_status_that_was_not_written_is_written_again(
    desk: Desk, gangs: Gangs, proxy: FaultProxy, fault: Any
) -> None:
    await gangs.pod_group("pg", 3)
    injection = proxy.inject(fault, when=matching("PATCH", "/podgroups/"), times=2)
    found = await desk.say("pg", WAITS)
    assert found.status.phase == "Inqueue"
    assert injection.hits >= 1
    await desk.recorder.flush(10)
    assert [reason for reason, _ in await gangs.events("PodGroup", "pg")] == ["Unschedulable"]


async def test_the_nodes_of_companions_hold_the_gang_back_until_they_are_written(
    desk: Desk, gangs: Gangs, proxy: FaultProxy
) -> None:
    await gangs.pod_group("pg", 3)
    key = f"{gangs.namespace}/pg"
    await eventually(lambda: desk.pod_groups.get(gangs.namespace, "pg") is not None, "the PodGroup is shown")
    proxy.inject(Answer(500, "InternalError"), when=matching("PATCH", "/podgroups/"), times=2)
    status = PodGroupStatus(Phase.INQUEUE, (), 0, 0, 0, companions={"submittergroup": "n1"})
    desk.groups.update({key: status})
    assert desk.groups.holds_back(key)
    assert await desk.groups.written(key)
    found = await gangs.read_group("pg")
    assert found.metadata.annotations["muster.dev/companion-nodes"] == '{"submittergroup":"n1"}'
    assert not desk.groups.holds_back(key)


async def test_a_gang_whose_pod_group_is_gone_is_not_let_through(desk: Desk, gangs: Gangs) -> None:
    await gangs.pod_group("pg", 3)
    key = f"{gangs.namespace}/pg"
    await eventually(lambda: desk.pod_groups.get(gangs.namespace, "pg") is not None, "the PodGroup is shown")
    desk.groups.update({key: PodGroupStatus(Phase.INQUEUE, (), 0, 0, 0, companions={"submittergroup": "n1"})})
    await gangs.api.delete(PODGROUPS, gangs.namespace, "pg")
    await eventually(lambda: desk.pod_groups.get(gangs.namespace, "pg") is None, "the PodGroup is gone")
    assert not await desk.groups.written(key)


async def test_a_queue_says_what_it_uses_and_nothing_twice(desk: Desk, gangs: Gangs, proxy: FaultProxy) -> None:
    await gangs.queue()
    await eventually(lambda: desk.queues.get(None, gangs.queue_name) is not None, "the queue is shown")
    counts = []
    for used in (Resources(2500, 1024**3), Resources(2500, 1024**3), Resources()):
        desk.accounts.update({gangs.queue_name: QueueStatus(used)})
        await eventually(lambda: desk.accounts.queue.idle, "the queue is written")
        counts.append((proxy.writes, (await gangs.read_queue()).status.allocated))
    assert counts == [
        (1, {"cpu": "2500m", "memory": "1Gi"}),
        (1, {"cpu": "2500m", "memory": "1Gi"}),
        (2, {"cpu": "0", "memory": "0"}),
    ]


async def test_a_gated_pod_says_unschedulable_and_takes_it_back(desk: Desk, gangs: Gangs) -> None:
    await gangs.pod("p")
    assert await desk.say_of_pod("p", UNSCHEDULABLE) == {"PodScheduled": ("False", "Unschedulable")}
    assert await desk.say_of_pod("p", NO_LONGER) == {"PodScheduled": ("False", "SchedulingGated")}


async def test_an_ungated_pod_says_unschedulable_and_takes_it_back(desk: Desk, gangs: Gangs) -> None:
    await gangs.pod("p", gates=())
    assert await desk.say_of_pod("p", UNSCHEDULABLE) == {"PodScheduled": ("False", "Unschedulable")}
    assert await desk.say_of_pod("p", NO_LONGER) == {}


async def test_a_pod_that_was_bound_meanwhile_is_not_called_unschedulable(
    desk: Desk, gangs: Gangs, proxy: FaultProxy
) -> None:
    pod = await gangs.pod("p", gates=())
    await eventually(lambda: desk.pods.get(gangs.namespace, "p") is not None, "the pod is shown")
    await eventually(lambda: proxy.freeze_watches(matching(path="/pods")) == 1, "the watch stands still")
    await gangs.api.bind(gangs.namespace, "p", uid=pod.metadata.uid, node="n1")
    assert (await desk.say_of_pod("p", UNSCHEDULABLE))["PodScheduled"] == ("True", None)


async def test_an_evicted_pod_is_marked_deleted_and_told_why(desk: Desk, gangs: Gangs) -> None:
    pod = await gangs.pod("p", gates=(), terminationGracePeriodSeconds=30)
    await gangs.api.bind(gangs.namespace, "p", uid=pod.metadata.uid, node="n1")
    desk.evictor.post(
        [Eviction(pod.metadata.uid, gangs.namespace, "p", "n1", f"{gangs.namespace}/pg", "rollback", "x/pg")]
    )
    await eventually(lambda: desk.evictor.idle, "the eviction has an end")
    found = await gangs.read_pod("p")
    assert found.metadata.deletion_timestamp is not None, "it keeps its grace period"
    assert {each.type for each in found.status.conditions} >= {"DisruptionTarget"}
    await desk.recorder.flush(10)
    ((reason, note),) = await gangs.events("Pod", "p")
    assert (reason, "rollback" not in note, desk.failed) == ("Evict", True, [])


async def test_the_successor_of_an_evicted_pod_is_left_alone(desk: Desk, gangs: Gangs) -> None:
    old = await gangs.pod("p", gates=())
    await gangs.api.delete(PODS, gangs.namespace, "p", grace_seconds=0)
    new = await gangs.pod("p", gates=())
    desk.evictor.post([Eviction(old.metadata.uid, gangs.namespace, "p", "n1", "", "preempt", "x/pg")])
    await eventually(lambda: desk.evictor.idle, "the eviction has an end")
    found = await gangs.read_pod("p")
    assert (found.metadata.uid, found.metadata.deletion_timestamp) == (new.metadata.uid, None)
    assert found.status.conditions == new.status.conditions


async def test_an_eviction_of_a_pod_that_is_gone_is_done(desk: Desk, gangs: Gangs) -> None:
    with pytest.raises(NotFound):
        await gangs.read_pod("gone")
    desk.evictor.post([Eviction("u", gangs.namespace, "gone", "n1", "", "preempt", "x/pg")])
    await eventually(lambda: desk.evictor.idle, "the eviction has an end")
    assert desk.failed == []
