"""What becomes of a gang when writes fail or the engine is killed while it binds: whole or nothing, always (P1, P5)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest

from muster.kube.objects import Pod
from muster.kube.resource import NODES, PODS
from tests.integration.fault_proxy import (
    Answer,
    FaultProxy,
    KillHere,
    LoseAnswer,
    Phase,
    ProxiedRequest,
    Write,
    matching,
)
from tests.integration.gang_objects import GATE, Gangs, eventually
from tests.integration.running_engine import RunningEngine, engine, gangs

__all__ = ["engine", "gangs"]

BINDING = matching("POST", "/binding$")
NAMES = ["pg-0", "pg-1", "pg-2"]


def binding_of(name: str) -> Callable[[ProxiedRequest], bool]:
    return matching("POST", f"/pods/{name}/binding$")


def writes_to(path: str) -> Callable[[ProxiedRequest], bool]:
    found = matching(path=path)
    return lambda request: request.is_write and found(request)


async def members(gangs: Gangs) -> dict[str, Pod]:
    return {pod.metadata.name: pod for pod in await gangs.api.list(PODS, gangs.namespace, decode=Pod)}


@pytest.mark.parametrize("phase", list(Phase), ids=lambda phase: f"{phase.value} it lands")
@pytest.mark.parametrize("number", range(1, 8))
async def test_killed_at_any_write_of_a_gang_s_decision_a_new_engine_ends_the_work(
    engine: RunningEngine, gangs: Gangs, proxy: FaultProxy, number: int, phase: Phase
) -> None:
    """Seven writes: the PodGroup with the place held for the submitter, then a gate and a binding for each member."""
    for name in ("n1", "n2"):
        await gangs.node(name, cpu="2")
    for name in NAMES:
        await gangs.pod(name, "pg")
    killed, armed = asyncio.Event(), True
    deaths: list[asyncio.Task[None]] = []

    async def kill(write: Write) -> None:
        if armed and write.number >= number and write.phase is phase:
            deaths.append(asyncio.get_running_loop().create_task(engine.kill()))
            killed.set()
            raise KillHere

    proxy.on_write(kill, when=matching(path="/pods/pg-|/podgroups/pg$"))
    await engine.start()
    spec = {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}
    companions = json.dumps([{"role": "submittergroup", "podSpec": spec}])
    await gangs.pod_group("pg", 3, annotations={"muster.dev/companions": companions})
    await asyncio.wait_for(killed.wait(), 20)
    await asyncio.gather(*deaths)
    armed = False

    await engine.start()
    await gangs.wait_bound(NAMES)
    await engine.idle()
    assert all(pod.spec.scheduling_gates == [] for pod in (await members(gangs)).values())
    await gangs.pod("submitter", "pg", gates=(), annotations={"volcano.sh/task-spec": "submittergroup"})
    await gangs.wait_bound(["submitter"])
    nodes = [pod.spec.node_name for pod in (await members(gangs)).values()]
    assert sorted(nodes.count(node) for node in set(nodes)) == [2, 2], "no node holds more than it can"


async def test_a_half_bound_gang_that_no_longer_fits_is_taken_down_by_a_new_engine(
    engine: RunningEngine, gangs: Gangs, proxy: FaultProxy
) -> None:
    node = await gangs.node("n1", cpu="3")
    await engine.start()
    injection = proxy.inject(Answer(500, "InternalError"), when=matching("POST", "/pods/pg-[12]/binding$"), times=None)
    await gangs.gang("pg", 3)
    await gangs.wait_bound(["pg-0"])
    await engine.kill()
    thief = await gangs.pod("thief", cpu="2", gates=(), schedulerName="default-scheduler")
    await gangs.api.bind(gangs.namespace, "thief", uid=thief.metadata.uid, node=node)
    injection.remove()
    await engine.start()
    await engine.idle()
    assert set(await gangs.bound()) == {"pg-0", "thief"}, "it has its time to be repaired"
    engine.clock.wind(61)

    async def taken_down() -> bool:
        return set(await members(gangs)) == {"pg-1", "pg-2", "thief"}

    await eventually(taken_down, "the fragment is gone")


async def test_a_gang_whose_last_binding_fails_for_ever_is_rolled_back(
    engine: RunningEngine, gangs: Gangs, proxy: FaultProxy
) -> None:
    await gangs.node("n1", cpu="4")
    await engine.start()
    injection = proxy.inject(Answer(403, "Forbidden"), when=binding_of("pg-1"), times=None)
    await gangs.gang("pg", 3)
    await gangs.wait_bound(["pg-0", "pg-2"])
    await eventually(lambda: injection.hits >= 4, "the binding is tried again and again")

    async def rolled_back() -> bool:
        engine.clock.wind(5)
        return set(await members(gangs)) == {"pg-1"}

    await eventually(rolled_back, "the fragment is gone")

    async def told() -> bool:
        return "Evict" in [reason for reason, _ in await gangs.events("Pod", "pg-0")]

    await eventually(told, "an event tells why pg-0 went")


async def test_a_member_deleted_after_the_commit_is_replaced_in_the_gang(engine: RunningEngine, gangs: Gangs) -> None:
    await gangs.node("n1", cpu="3")
    await engine.start()
    await gangs.gang("pg", 3)
    await gangs.wait_bound(NAMES)
    await gangs.play("pg-0", "pg-1")
    await gangs.api.delete(PODS, gangs.namespace, "pg-2", grace_seconds=0)
    await gangs.pod("pg-3", "pg")
    await gangs.wait_bound(["pg-0", "pg-1", "pg-3"])


async def test_a_gang_that_loses_a_member_for_good_is_rolled_back_in_time(engine: RunningEngine, gangs: Gangs) -> None:
    await gangs.node("n1", cpu="3")
    await engine.start()
    await gangs.gang("pg", 3)
    await gangs.wait_bound(NAMES)
    await gangs.play(*NAMES)
    await gangs.wait_phase("pg", "Running")
    await gangs.api.delete(PODS, gangs.namespace, "pg-2", grace_seconds=0)

    async def since() -> bool:
        return "muster.dev/broken-since" in (await gangs.read_group("pg")).metadata.annotations

    await eventually(since, "the PodGroup says since when it is broken")
    await engine.kill()
    await engine.start()
    await engine.idle()
    assert set(await gangs.bound()) == {"pg-0", "pg-1"}
    engine.clock.wind(61)

    async def rolled_back() -> bool:
        return await members(gangs) == {}

    await eventually(rolled_back, "the fragment is gone")
    successors = ["pg-3", "pg-4", "pg-5"]
    for name in successors:
        await gangs.pod(name, "pg")
    await gangs.wait_bound(successors)


async def lose_a_node_while_it_is_bound_to(engine: RunningEngine, gangs: Gangs, proxy: FaultProxy) -> str:
    """Have a gang of three on two nodes, one of which goes right before its first binding; return who was bound there.

    The API server takes a binding to a node that is gone. Kubernetes deletes such pods later; nobody does here.
    """
    await gangs.node("n1", cpu="2")
    lost = await gangs.node("n2", cpu="1")
    await engine.start()
    gone = asyncio.Event()

    async def strike(write: Write) -> None:
        if write.phase is Phase.BEFORE and lost.encode() in write.request.content and not gone.is_set():
            gone.set()
            await gangs.api.delete(NODES, None, lost)

    proxy.on_write(strike, when=BINDING)
    await gangs.gang("pg", 3)
    await gangs.wait_bound(NAMES)
    assert gone.is_set()
    (stray,) = [name for name, node in (await gangs.bound()).items() if node == lost]

    async def broken() -> bool:
        return "muster.dev/broken-since" in (await gangs.read_group("pg")).metadata.annotations

    await eventually(broken, "the gang counts as broken: its node is no more")
    return stray


async def test_a_gang_is_completed_when_a_node_vanished_while_it_was_bound(
    engine: RunningEngine, gangs: Gangs, proxy: FaultProxy
) -> None:
    stray = await lose_a_node_while_it_is_bound_to(engine, gangs, proxy)
    await gangs.api.delete(PODS, gangs.namespace, stray, grace_seconds=0)
    await gangs.pod("pg-3", "pg")
    node = await gangs.node("n3", cpu="1")
    await gangs.wait_bound(["pg-3"])
    assert await gangs.bound() == {
        **{name: gangs.node_name("n1") for name in NAMES if name != stray},
        "pg-3": node,
    }

    async def whole() -> bool:
        return "muster.dev/broken-since" not in (await gangs.read_group("pg")).metadata.annotations

    await eventually(whole, "the gang is whole again")


async def test_a_gang_that_lost_a_node_while_it_was_bound_gives_the_others_back_in_time(
    engine: RunningEngine, gangs: Gangs, proxy: FaultProxy
) -> None:
    await lose_a_node_while_it_is_bound_to(engine, gangs, proxy)
    engine.clock.wind(61)

    async def rolled_back() -> bool:
        return await members(gangs) == {}

    await eventually(rolled_back, "nothing is left of it, the pod on the lost node included")


FAULTS = {
    "409": Answer(409, "Conflict"),
    "429": Answer(429, "TooManyRequests", retry_after=0),
    "500": Answer(500, "InternalError"),
    "an answer that is lost": LoseAnswer(),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
async def test_a_gang_is_bound_whole_although_writes_fail_on_the_way(
    engine: RunningEngine, gangs: Gangs, proxy: FaultProxy, fault: Answer | LoseAnswer
) -> None:
    await gangs.node("n1", cpu="3")
    await engine.start()
    for path in ("/pods/pg-0$", "/pods/pg-1/binding$", "/podgroups/pg$"):
        proxy.inject(fault, when=writes_to(path), times=2)
    await gangs.gang("pg", 3)
    await gangs.wait_bound(NAMES)
    await gangs.play(*NAMES)
    await gangs.wait_phase("pg", "Running")


async def test_a_member_deleted_while_it_is_bound_leaves_a_gang_that_waits_for_its_successor(
    engine: RunningEngine, gangs: Gangs, proxy: FaultProxy
) -> None:
    await gangs.node("n1", cpu="3")
    await engine.start()

    async def strike(write: Write) -> None:
        if write.phase is Phase.BEFORE and write.number == 1:
            await gangs.api.delete(PODS, gangs.namespace, "pg-1", grace_seconds=0)

    proxy.on_write(strike, when=binding_of("pg-1"))
    await gangs.gang("pg", 3)
    await gangs.wait_bound(["pg-0", "pg-2"])
    await engine.idle()
    await gangs.pod("pg-1", "pg")
    await gangs.wait_bound(NAMES)


async def test_an_ungated_member_whose_binding_failed_is_bound_by_the_next_engine(
    engine: RunningEngine, gangs: Gangs, proxy: FaultProxy
) -> None:
    await gangs.node("n1", cpu="3")
    await engine.start()
    injection = proxy.inject(Answer(403, "Forbidden"), when=BINDING, times=None)
    await gangs.gang("pg", 3)
    await eventually(lambda: injection.hits >= 3, "the bindings were tried")
    await engine.kill()
    found = await members(gangs)
    assert [(pod.spec.node_name, GATE in str(pod.spec.scheduling_gates)) for pod in found.values()] == [
        (None, False)
    ] * 3
    injection.remove()
    await engine.start()
    await gangs.wait_bound(NAMES)
