"""The engine against a real API server: gangs are bound whole or not at all, and everybody can see why."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from functools import partial

import pytest

from muster.kube.client import ApiClient
from muster.kube.informer import Change, Informer
from muster.kube.objects import Pod
from muster.kube.resource import NODES, PODGROUPS, PODS, QUEUES
from tests.integration.fault_proxy import Answer, FaultProxy, Hold, Phase, Write, matching
from tests.integration.gang_objects import GATE, Gangs, eventually
from tests.integration.running_engine import RunningEngine, engine, gangs

__all__ = ["engine", "gangs"]

BINDING = matching("POST", "/binding$")


@pytest.fixture
async def history(api: ApiClient, gangs: Gangs) -> AsyncIterator[list[set[str]]]:
    """Which pods of the namespace had a node, after each change that the API server told of."""
    pods = Informer(api, PODS, Pod, namespace=gangs.namespace)
    seen: list[set[str]] = [set()]

    def note(change: Change[Pod]) -> None:
        bound = {pod.metadata.name for pod in pods.list() if pod.spec.node_name}
        if bound != seen[-1]:
            seen.append(bound)

    pods.subscribe(note)
    task = asyncio.create_task(pods.run())
    await pods.wait_synced(10)
    yield seen
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_gang_that_fits_is_bound_whole_and_says_so(engine: RunningEngine, gangs: Gangs) -> None:
    for name in ("n1", "n2"):
        await gangs.node(name, cpu="2")
    await engine.start()
    names = await gangs.gang("pg", 3)
    await gangs.wait_bound(names)
    for name in names:
        pod = await gangs.read_pod(name)
        assert pod.spec.scheduling_gates == []
    await gangs.play(*names)
    await gangs.wait_phase("pg", "Running")
    await engine.idle()
    group = await gangs.read_group("pg")
    assert group.status.running == 3
    assert {each.type: each.status for each in group.status.conditions}["Scheduled"] == "True"
    assert "muster.dev/reason" not in group.metadata.annotations
    allocated = (await gangs.read_queue()).status.allocated
    assert allocated is not None
    assert allocated["cpu"] == "3"

    async def told() -> bool:
        places = ", ".join(f"{pod} -> {node}" for pod, node in sorted((await gangs.bound()).items()))
        return await gangs.events("PodGroup", "pg") == [("Scheduled", f"3 pods bound: {places}")]

    await eventually(told, "one event tells where they all run")
    assert [await gangs.events("Pod", name) for name in names] == [[], [], []]


async def test_a_gang_that_finds_its_place_at_once_costs_a_status_and_an_event_beside_its_bindings(
    engine: RunningEngine, gangs: Gangs, proxy: FaultProxy
) -> None:
    await gangs.node("n1")
    names = await gangs.gang("pg", 3)
    await engine.start()
    await gangs.wait_bound(names)
    await engine.idle()
    await eventually(lambda: posted(proxy, "/events$") == 1, "an event tells of it")
    assert (posted(proxy, "/pods/"), posted(proxy, f"/queues/{gangs.queue_name}/")) == (6, 1)
    # One where the machine is fast enough: tests/engine/test_podgroup_status.py has the times.
    assert 1 <= posted(proxy, "/podgroups/") <= 2


def posted(proxy: FaultProxy, path: str) -> int:
    """How many writes there were to a path that matches."""
    return sum(request.method != "GET" and re.search(path, request.path) is not None for request in proxy.requests)


async def test_a_pod_that_is_placed_alone_has_its_own_event(engine: RunningEngine, gangs: Gangs) -> None:
    node = await gangs.node("n1")
    await engine.start()
    await gangs.gang("pg", 1)
    await gangs.pod("loose")
    await gangs.wait_bound(["pg-0", "loose"])
    for name in ("pg-0", "loose"):
        told = [("Scheduled", f"Successfully assigned {gangs.namespace}/{name} to {node}")]
        await eventually(partial(tells, gangs, name, told), f"an event tells where {name} runs")
    await engine.idle()
    assert "Scheduled" not in [reason for reason, _ in await gangs.events("PodGroup", "pg")]


async def tells(gangs: Gangs, pod: str, events: list[tuple[str, str]]) -> bool:
    return await gangs.events("Pod", pod) == events


async def test_a_gang_whose_pods_come_before_its_pod_group_waits_for_it(engine: RunningEngine, gangs: Gangs) -> None:
    await gangs.node("n1")
    await engine.start()
    names = [f"pg-{index}" for index in range(2)]
    for name in names:
        await gangs.pod(name, "pg")
    await engine.idle()
    assert await gangs.bound() == {}
    await gangs.pod_group("pg", 2)
    await gangs.wait_bound(names)


async def test_a_pod_of_a_missing_pod_group_says_what_it_waits_for(engine: RunningEngine, gangs: Gangs) -> None:
    await engine.start()
    await gangs.pod("alone", "missing")

    async def told() -> bool:
        text = f"PodGroup {gangs.namespace}/missing does not exist"
        return ("PodGroupMissing", text) in await gangs.events("Pod", "alone")

    await eventually(told, "an event says that the PodGroup is missing")


async def test_a_second_gang_that_does_not_fit_has_nothing_bound_until_the_first_is_done(
    engine: RunningEngine, gangs: Gangs, history: list[set[str]]
) -> None:
    for name in ("n1", "n2"):
        await gangs.node(name, cpu="2")
    await engine.start()
    first = await gangs.gang("first", 3)
    await gangs.wait_bound(first)
    await gangs.play(*first)
    second = await gangs.gang("second", 3)
    assert {"code", "class", "message"} <= set(await gangs.wait_reason("second"))
    await engine.idle()
    conditions = (await gangs.read_group("second")).status.conditions
    assert [each.status for each in conditions if each.type == "Unschedulable"] == ["True"]
    assert set(await gangs.bound()) == set(first)

    await gangs.play(*first, phase="Succeeded")
    await gangs.wait_bound(second)
    await engine.idle()
    assert "muster.dev/reason" not in (await gangs.read_group("second")).metadata.annotations
    for bound in history:
        assert set(second).isdisjoint(bound) or set(first) <= bound, "nothing of it before the first was done"


async def test_members_that_more_nodes_would_help_say_unschedulable_until_a_node_comes(
    engine: RunningEngine, gangs: Gangs
) -> None:
    await gangs.node("n1", cpu="2")
    await engine.start()
    names = await gangs.gang("pg", 3)

    async def conditions(name: str) -> list[tuple[str, str | None]]:
        pod = await gangs.read_pod(name)
        return [(each.status, each.reason) for each in pod.status.conditions if each.type == "PodScheduled"]

    async def one_unschedulable() -> bool:
        said = sorted([await conditions(name) for name in names], key=str)
        return said == [[("False", "SchedulingGated")]] * 2 + [[("False", "Unschedulable")]]

    await eventually(one_unschedulable, "the member that finds no room says Unschedulable")
    assert await gangs.bound() == {}
    await gangs.node("n2", cpu="2")
    await gangs.wait_bound(names)
    await engine.idle()
    assert [await conditions(name) for name in names] == [[("True", None)]] * 3


async def test_a_gang_held_by_its_queue_buys_no_nodes(engine: RunningEngine, gangs: Gangs) -> None:
    await gangs.api.patch(QUEUES, None, gangs.queue_name, {"spec": {"capability": {"cpu": "2"}}})
    await gangs.node("n1", cpu="2")
    await engine.start()
    names = await gangs.gang("pg", 3, minResources={"cpu": "3"})
    await gangs.wait_reason("pg", queue=gangs.queue_name)
    await engine.idle()
    for name in names:
        reasons = [each.reason for each in (await gangs.read_pod(name)).status.conditions]
        assert reasons == ["SchedulingGated"]


async def test_the_pods_of_others_fill_nodes_too(engine: RunningEngine, gangs: Gangs) -> None:
    node = await gangs.node("n1", cpu="4")
    other = await gangs.pod("other", cpu="2", gates=(), schedulerName="default-scheduler")
    await gangs.api.bind(gangs.namespace, "other", uid=other.metadata.uid, node=node)
    await engine.start()
    await gangs.gang("pg", 3)
    await engine.idle()
    assert set(await gangs.bound()) == {"other"}
    await gangs.play("other", phase="Succeeded")
    await gangs.wait_bound(["pg-0", "pg-1", "pg-2"])


async def test_a_pod_that_another_binds_meanwhile_counts_for_the_next_decision(
    engine: RunningEngine, gangs: Gangs, proxy: FaultProxy
) -> None:
    node = await gangs.node("n1", cpu="4")
    await engine.start()
    hold = Hold()
    proxy.inject(hold, when=BINDING)
    first = await gangs.gang("first", 2)
    await asyncio.wait_for(hold.reached.wait(), 20)
    other = await gangs.pod("other", cpu="2", gates=(), schedulerName="default-scheduler")
    await gangs.api.bind(gangs.namespace, "other", uid=other.metadata.uid, node=node)
    hold.release.set()
    await gangs.wait_bound(first)
    await gangs.gang("second", 1)
    await engine.idle()
    assert set(await gangs.bound()) == {*first, "other"}


async def test_an_idle_cluster_sees_no_writes(engine: RunningEngine, gangs: Gangs, proxy: FaultProxy) -> None:
    await gangs.node("n1", cpu="2")
    await engine.start()
    runs = await gangs.gang("runs", 2)
    await gangs.wait_bound(runs)
    await gangs.play(*runs)
    await gangs.gang("waits", 2)
    await gangs.wait_phase("runs", "Running")
    await gangs.wait_reason("waits")
    await engine.idle()
    await quiet(engine, proxy)
    writes, cycles = proxy.writes, engine.cycles
    # News that changes nothing: a heartbeat of the node, an annotation that nobody reads, a cut watch, and time.
    for beat in range(5):
        status = {
            "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": f"2026-01-01T00:00:0{beat}Z"}]
        }
        path = gangs.node_name("n1")
        await gangs.api.patch(NODES, None, path, {"status": status}, subresource="status")
        await gangs.api.patch(PODS, gangs.namespace, "runs-0", {"metadata": {"annotations": {"beat": str(beat)}}})
    lists = sum(request.is_list or request.is_watch for request in proxy.requests)
    cut = proxy.cut_watches()
    assert cut == 5
    await eventually(
        lambda: sum(request.is_list or request.is_watch for request in proxy.requests) >= lists + cut,
        "watches are back",
    )
    await quiet(engine, proxy)
    assert (proxy.writes, engine.cycles) == (writes, cycles)


async def quiet(engine: RunningEngine, proxy: FaultProxy) -> None:
    """Wait until the engine was found idle 50 times in a row, at turns of the loop, and nothing was written."""
    while True:
        writes = proxy.writes
        for _ in range(50):
            await engine.idle()
            await asyncio.sleep(0.005)
        if proxy.writes == writes:
            return


async def test_a_pod_that_no_node_could_ever_hold_blocks_nobody(engine: RunningEngine, gangs: Gangs) -> None:
    await gangs.node("n1", cpu="4")
    await engine.start()
    await gangs.gang("giant", 1, cpu="100")
    names = await gangs.gang("small", 2)
    await gangs.wait_bound(names)
    reason = await gangs.wait_reason("giant", **{"class": "never"})
    assert reason["requested"] == "100"


async def test_a_submitter_s_place_is_held_and_written_before_its_gang_is_bound(
    engine: RunningEngine, gangs: Gangs, proxy: FaultProxy
) -> None:
    node = await gangs.node("n1", cpu="3")
    await engine.start()
    spec = {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}
    companions = json.dumps([{"role": "submittergroup", "podSpec": spec}])
    names = await gangs.gang("pg", 2, annotations={"muster.dev/companions": companions})
    await gangs.wait_bound(names)
    note = {"submittergroup": node}
    assert json.loads((await gangs.read_group("pg")).metadata.annotations["muster.dev/companion-nodes"]) == note
    first_binding = next(index for index, each in enumerate(proxy.requests) if BINDING(each))
    noted = next(
        index
        for index, each in enumerate(proxy.requests)
        if each.method == "PATCH"
        and "/podgroups/" in each.path
        and "muster.dev/companion-nodes" in (each.body["metadata"].get("annotations") or {})
    )
    assert noted < first_binding

    await gangs.gang("thief", 1)
    await engine.idle()
    assert set(await gangs.bound()) == set(names), "the place is the submitter's"
    await gangs.pod("submitter", "pg", gates=(), annotations={"volcano.sh/task-spec": "submittergroup"})
    await gangs.wait_bound(["submitter"])


async def test_a_gang_below_its_minimum_is_repaired_when_a_binding_fails_at_first(
    engine: RunningEngine, gangs: Gangs, proxy: FaultProxy
) -> None:
    await gangs.node("n1", cpu="4")
    await engine.start()
    proxy.inject(Answer(403, "Forbidden"), when=matching("POST", "/pods/pg-1/binding$"), times=1)
    names = await gangs.gang("pg", 3)
    await gangs.wait_bound(names)
    await engine.idle()
    assert GATE not in str(await gangs.read_pod("pg-1"))


async def test_a_pod_without_a_group_is_a_gang_of_its_own(engine: RunningEngine, gangs: Gangs) -> None:
    await gangs.node("n1", cpu="1")
    await engine.start()
    notes = {"scheduling.volcano.sh/queue-name": gangs.queue_name}
    await gangs.pod("first", gates=(), annotations=notes)
    await gangs.wait_bound(["first"])
    await gangs.pod("second", gates=(), annotations=notes)
    await engine.idle()
    assert set(await gangs.bound()) == {"first"}
    await gangs.api.delete(PODS, gangs.namespace, "first", grace_seconds=0)
    await gangs.wait_bound(["second"])


async def test_a_pod_group_deleted_before_its_gang_is_bound_leaves_the_pods_waiting(
    engine: RunningEngine, gangs: Gangs
) -> None:
    await gangs.node("n1", cpu="1")
    await engine.start()
    await gangs.gang("pg", 2)
    await gangs.wait_reason("pg")
    await gangs.api.delete(PODGROUPS, gangs.namespace, "pg")
    await gangs.node("n2", cpu="1")
    await engine.idle()
    assert await gangs.bound() == {}
    await gangs.pod_group("pg", 2)
    await gangs.wait_bound(["pg-0", "pg-1"])


async def test_a_queue_that_is_raised_lets_its_gang_through(engine: RunningEngine, gangs: Gangs) -> None:
    await gangs.api.patch(QUEUES, None, gangs.queue_name, {"spec": {"capability": {"cpu": "1"}}})
    await gangs.node("n1", cpu="4")
    await engine.start()
    names = await gangs.gang("pg", 2)
    await gangs.wait_reason("pg", queue=gangs.queue_name)
    await gangs.api.patch(QUEUES, None, gangs.queue_name, {"spec": {"capability": {"cpu": "2"}}})
    await gangs.wait_bound(names)


async def test_what_a_queue_uses_is_never_said_wrong_while_a_new_engine_begins(
    engine: RunningEngine, gangs: Gangs, proxy: FaultProxy
) -> None:
    await gangs.node("n1", cpu="4")
    await engine.start()
    for name in ("a", "b"):
        await gangs.gang(name, 2)
        await gangs.wait_bound([f"{name}-0", f"{name}-1"])
        await gangs.play(f"{name}-0", f"{name}-1")
        await gangs.wait_phase(name, "Running")
    await engine.idle()
    assert await used_cpu(gangs) == "4"
    await engine.kill()
    await gangs.play("b-0", "b-1", phase="Succeeded")
    said: list[object] = []

    async def note(write: Write) -> None:
        if write.phase is Phase.AFTER:
            said.append(await used_cpu(gangs))

    proxy.on_write(note, when=matching(path=f"/queues/{gangs.queue_name}"))
    await engine.start()
    await gangs.wait_phase("b", "Completed")
    await engine.idle()
    assert said == ["2"], "one write, and the right one"


async def test_what_somebody_else_says_of_a_queue_is_put_right_by_one_write_and_no_cycle(
    engine: RunningEngine, gangs: Gangs, proxy: FaultProxy
) -> None:
    await gangs.node("n1", cpu="4")
    await engine.start()
    await gangs.gang("a", 2)
    await gangs.wait_bound(["a-0", "a-1"])
    await gangs.play("a-0", "a-1")
    await gangs.wait_phase("a", "Running")
    await engine.idle()
    cycles, writes = engine.cycles, proxy.writes
    for number in range(10):
        wrong = {"status": {"allocated": {"cpu": str(700 + number), "nvidia.com/gpu": "1"}}}
        await gangs.api.patch(QUEUES, None, gangs.queue_name, wrong, subresource="status")

    async def right() -> bool:
        allocated = (await gangs.read_queue()).status.allocated or {}
        return allocated.get("cpu") == "2" and "nvidia.com/gpu" not in allocated

    await eventually(right, "the account is put right")
    await engine.idle()
    assert (proxy.writes, engine.cycles) == (writes + 1, cycles)


async def used_cpu(gangs: Gangs) -> object:
    """What the queue's status says of cpu."""
    return ((await gangs.read_queue()).status.allocated or {}).get("cpu")
