"""Preempt and reclaim against a real API server, with victims that take their time to leave."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from muster.kube.client import ApiClient
from muster.kube.errors import NotFound
from muster.kube.resource import PODS, PRIORITYCLASSES, QUEUES
from muster.scheduler.conf import load_configuration
from tests.integration.fault_proxy import Answer, Drop, FaultProxy, matching
from tests.integration.gang_objects import Gangs, eventually
from tests.integration.running_engine import RunningEngine, engine, gangs

__all__ = ["engine", "gangs"]

EVICTING = load_configuration(
    {
        "actions": "enqueue, allocate, backfill, reclaim, preempt",
        "tiers": [
            {"plugins": [{"name": "priority"}, {"name": "gang"}, {"name": "conformance"}]},
            {
                "plugins": [
                    {"name": "overcommit"},
                    {"name": "drf", "enablePreemptable": False},
                    {"name": "predicates"},
                    {"name": "proportion"},
                    {"name": "nodeorder"},
                ]
            },
        ],
    }
)
"""Volcano's own plugins, drf's say on victims switched off as in its chart: it would let equals take turns."""
GRACE: dict[str, Any] = {"terminationGracePeriodSeconds": 600}
DELETE_POD = matching("DELETE", "/pods/")


@pytest.fixture
async def evicting(engine: RunningEngine) -> RunningEngine:
    engine.use(EVICTING)
    return engine


@pytest.fixture
async def classes(api: ApiClient, gangs: Gangs) -> AsyncIterator[dict[str, str]]:
    """Give the names of a `high` and a `low` PriorityClass."""
    names = {word: f"{gangs.namespace}-{word}" for word in ("high", "low")}
    for word, value in (("high", 1000), ("low", 10)):
        body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": names[word]}}
        await api.create(PRIORITYCLASSES, None, {**body, "value": value})
    yield names
    for name in names.values():
        await api.delete(PRIORITYCLASSES, None, name)


async def running_gang(gangs: Gangs, name: str, size: int, *, least: int = 0, **spec: Any) -> list[str]:
    """Make a gang whose pods take ten minutes to leave, and wait until it runs."""
    await gangs.pod_group(name, least, **spec)
    names = [f"{name}-{index}" for index in range(size)]
    for each in names:
        await gangs.pod(each, name, **GRACE)
    await gangs.wait_bound(names)
    await gangs.play(*names)
    await gangs.wait_phase(name, "Running")
    return names


async def leaving(gangs: Gangs, names: list[str]) -> list[str]:
    """Those of the pods that have been asked to leave and are still there."""
    found = []
    for name in names:
        try:
            pod = await gangs.read_pod(name)
        except NotFound:
            continue
        if pod.metadata.deletion_timestamp is not None:
            found.append(name)
    return found


async def wait_leaving(gangs: Gangs, names: list[str], count: int) -> list[str]:
    found: list[str] = []

    async def asked() -> bool:
        nonlocal found
        found = await leaving(gangs, names)
        return len(found) == count

    await eventually(asked, f"{count} of {names} are asked to leave")
    return found


async def leave(gangs: Gangs, *names: str) -> None:
    """Do a kubelet's work: the pods have ended."""
    for name in names:
        await gangs.api.delete(PODS, gangs.namespace, name, grace_seconds=0)


async def test_a_gang_is_bound_whole_when_the_last_of_its_victims_has_left(
    evicting: RunningEngine, gangs: Gangs, classes: dict[str, str]
) -> None:
    node = await gangs.node("n1", cpu="2")
    await evicting.start()
    low = await running_gang(gangs, "low", 2, priorityClassName=classes["low"])
    high = await gangs.gang("high", 2, priorityClassName=classes["high"])
    await wait_leaving(gangs, low, 2)
    await evicting.idle()

    for name in low:
        conditions = {each.type: (each.status, each.reason) for each in (await gangs.read_pod(name)).status.conditions}
        assert conditions["DisruptionTarget"] == ("True", "PreemptionByScheduler")
        assert conditions["Ready"] == ("False", "Evict")
    for name in high:
        assert (await gangs.read_pod(name)).status.nominated_node_name == node
    reason = await gangs.wait_reason("high", **{"class": "victims"})
    assert reason["code"] == "WaitingForRelease"

    async def told() -> bool:
        return any(each[0] == "Evict" for each in await gangs.events("PodGroup", "low"))

    await eventually(told, "an event tells what became of low's pods")

    await leave(gangs, low[0])
    late = await gangs.gang("late", 1, priorityClassName=classes["high"])
    await gangs.wait_reason("late")
    await evicting.idle()
    assert set(await gangs.bound()) == {low[1]}, "nothing of it is bound yet, and nobody takes its room"

    await leave(gangs, low[1])
    await gangs.wait_bound(high)
    await evicting.idle()
    assert set(await gangs.bound()) == set(high)
    assert late[0] not in await gangs.bound()


async def test_a_victim_that_is_made_again_does_not_win_its_room_back(
    evicting: RunningEngine, gangs: Gangs, classes: dict[str, str]
) -> None:
    await gangs.node("n1", cpu="2")
    await evicting.start()
    low = await running_gang(gangs, "low", 2, priorityClassName=classes["low"])
    high = await gangs.gang("high", 2, priorityClassName=classes["high"])
    await wait_leaving(gangs, low, 2)
    for name in low:
        await leave(gangs, name)
        await gangs.pod(name, "low", **GRACE)
    await gangs.wait_bound(high)
    await gangs.play(*high)
    await gangs.wait_phase("high", "Running")
    await evicting.idle()
    assert set(await gangs.bound()) == set(high)
    assert await leaving(gangs, high) == []


async def test_a_queue_takes_back_what_it_deserves_from_pods_that_take_their_time(
    evicting: RunningEngine, gangs: Gangs
) -> None:
    await gangs.node("n1", cpu="4")
    other = f"{gangs.namespace}-other"
    body = {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": other}, "spec": {"weight": 1}}
    await gangs.api.create(QUEUES, None, body)
    await evicting.start()
    greedy = await running_gang(gangs, "greedy", 4)
    mine = await gangs.gang("mine", 2, queue=other)
    victims = await wait_leaving(gangs, greedy, 2)
    await evicting.idle()
    assert await leaving(gangs, greedy) == victims
    await leave(gangs, victims[0])
    await evicting.idle()
    assert not set(mine) & set(await gangs.bound())
    await leave(gangs, victims[1])
    await gangs.wait_bound(mine)
    await evicting.idle()
    assert set(await gangs.bound()) == {*mine, *greedy} - set(victims)


async def test_a_promise_outlives_a_restart_while_the_victims_are_leaving(
    evicting: RunningEngine, gangs: Gangs, classes: dict[str, str]
) -> None:
    await gangs.node("n1", cpu="2")
    await evicting.start()
    low = await running_gang(gangs, "low", 2, priorityClassName=classes["low"])
    high = await gangs.gang("high", 2, priorityClassName=classes["high"])
    await wait_leaving(gangs, low, 2)
    await evicting.kill()
    rival = await gangs.gang("rival", 1, priorityClassName=classes["high"])
    await leave(gangs, low[0])
    await evicting.start()
    await gangs.wait_reason("rival")
    await evicting.idle()
    assert rival[0] not in await gangs.bound()
    await leave(gangs, low[1])
    await gangs.wait_bound(high)
    assert rival[0] not in await gangs.bound()


async def test_a_restart_before_the_first_victim_was_deleted_comes_to_the_same_end(
    evicting: RunningEngine, gangs: Gangs, classes: dict[str, str], proxy: FaultProxy
) -> None:
    await gangs.node("n1", cpu="2")
    await evicting.start()
    low = await running_gang(gangs, "low", 2, priorityClassName=classes["low"])
    lost = proxy.inject(Drop(), when=DELETE_POD, times=None)
    high = await gangs.gang("high", 2, priorityClassName=classes["high"])
    await proxy.arrival(DELETE_POD, count=1, deadline=20)
    await evicting.kill()
    assert await leaving(gangs, low) == []
    lost.remove()
    await evicting.start()
    await wait_leaving(gangs, low, 2)
    await leave(gangs, *low)
    await gangs.wait_bound(high)


async def test_where_it_can_not_be_said_for_whom_room_is_made_nobody_is_evicted_for_long(
    evicting: RunningEngine, gangs: Gangs, classes: dict[str, str], proxy: FaultProxy
) -> None:
    """A webhook, or missing rights, refuse the status of some pods."""
    await gangs.node("n1", cpu="2")
    await evicting.start()
    low = await running_gang(gangs, "low", 2, priorityClassName=classes["low"])
    refusing = proxy.inject(Answer(403, "Forbidden"), when=matching("PATCH", "/pods/high-.*/status$"), times=None)
    high = await gangs.gang("high", 2, priorityClassName=classes["high"])

    async def told() -> bool:
        return any(each[0] == "FailedEviction" for each in await gangs.events("PodGroup", "high"))

    await eventually(told, "an event tells that room can't be made")
    assert await leaving(gangs, low) == []
    refusing.remove()
    await wait_leaving(gangs, low, 2)
    await leave(gangs, *low)
    await gangs.wait_bound(high)
