"""Puts a scenario into the API server: first what is there, then the gangs that arrive.

Gangs come one after the other, each its PodGroup first, as many at a time as keep the client's requests under way.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any

from bench.api_client import ApiClient, RefusedError
from bench.manifests import gang_pod, node, pod_group, running_pod
from bench.pod_watch import PodWatch
from bench.scenarios import Scenario
from bench.systems import VOLCANO_GROUPS, System

GANGS, OTHERS, PARKED, WARM_UP = "gangs", "others", "parked", "warm-up"
"""Namespaces: of the gangs that arrive, of pods that run already, of gangs that have no room, and of the first pod."""

PARKED_SIZE = 3
_AT_A_TIME = 50
_CONFLICT = 409
_CHURN_LIFETIME = 1.0
"""Seconds from a gang's last binding to its end."""


async def _gather(work: Iterable[Callable[[], Awaitable[object]]], at_a_time: int) -> None:
    """Do all this, in order, so many at a time; the first failure ends it."""
    iterator = iter(work)

    async def worker() -> None:
        for each in iterator:
            await each()

    async with asyncio.TaskGroup() as group:
        for _ in range(at_a_time):
            group.create_task(worker())


class Load:
    """The objects of one scenario for one system."""

    def __init__(self, client: ApiClient, scenario: Scenario, system: System) -> None:
        self._client = client
        self._scenario = scenario
        self._system = system
        self.created: dict[str, float] = {}
        """When the last pod of each gang was there, on the monotonic clock."""
        self.latest = 0.0
        """When anything was created last."""

    async def prepare(self) -> None:
        """Make namespaces, the queue `default`, nodes, what runs on them, and the gangs that have no room."""
        for name in (GANGS, OTHERS, PARKED, WARM_UP):
            await self._ensure("/api/v1/namespaces", {"metadata": {"name": name}})
        await self._make_queue()
        nodes = range(self._scenario.nodes)
        await _gather((partial(self._make_node, index) for index in nodes), _AT_A_TIME)
        places = itertools.product(range(self._scenario.running), nodes)
        await _gather((partial(self._make_running, slot, index) for slot, index in places), _AT_A_TIME)
        await _gather((partial(self._park, index) for index in range(self._scenario.parked)), self._gangs_at_a_time)

    async def all_at_once(self) -> None:
        """Create the gangs that arrive, at full speed."""
        names = map(gang_name, range(self._scenario.gangs))
        await _gather((partial(self.make_gang, name) for name in names), self._gangs_at_a_time)

    async def paced(self, gangs_a_second: float) -> None:
        """Create the gangs that arrive, one each so many seconds, whatever becomes of those before."""
        started = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for index in range(self._scenario.gangs):
                await asyncio.sleep(max(0.0, started + index / gangs_a_second - time.monotonic()))
                group.create_task(self.make_gang(gang_name(index)))

    async def churn(self, watch: PodWatch, seconds: float) -> None:
        """Keep as many gangs as the scenario has; each is ended a moment after it has been bound, and followed by
        another one. Leaves those that are there after `seconds`.
        """
        until = asyncio.get_running_loop().time() + seconds

        async def place(index: int) -> None:
            for turn in itertools.count():
                name = gang_name(index, turn)
                await self.make_gang(name)
                try:
                    async with asyncio.timeout_at(until):
                        await watch.gang_bound(name)
                        await asyncio.sleep(_CHURN_LIFETIME)
                except TimeoutError:
                    return
                await self.remove_gang(name, size=self._scenario.size, namespace=GANGS)

        async with asyncio.TaskGroup() as group:
            for index in range(self._scenario.gangs):
                group.create_task(place(index))

    async def make_gang(
        self, gang: str, *, size: int | None = None, namespace: str = GANGS, cpu: int | None = None
    ) -> None:
        """Create a gang: its PodGroup, if the system has such, then its pods. Those of `cpu` CPU state no minimum
        of resources: else a scheduler might not even look at them.
        """
        size = size or self._scenario.size
        if self._system.grouping is not None:
            group = pod_group(self._system, gang, size, with_resources=cpu is None)
            await self._client.create(self._groups_path(namespace), group)
        path = f"/api/v1/namespaces/{namespace}/pods"
        pods = (gang_pod(self._system, gang, index, cpu=cpu) for index in range(size))
        await _gather((partial(self._client.create, path, body) for body in pods), min(size, _AT_A_TIME))
        self.latest = time.monotonic()
        if namespace == GANGS:
            self.created[gang] = self.latest

    async def remove_gang(self, gang: str, *, size: int, namespace: str) -> None:
        """Delete a gang's pods, then its PodGroup."""
        for index in range(size):
            await self._client.delete(f"/api/v1/namespaces/{namespace}/pods/{gang}-{index}")
        if self._system.grouping is not None:
            await self._client.delete(f"{self._groups_path(namespace)}/{gang}")

    @property
    def _gangs_at_a_time(self) -> int:
        return -(-_AT_A_TIME // self._scenario.size) + 1

    def _groups_path(self, namespace: str) -> str:
        grouping = self._system.grouping
        assert grouping is not None
        return f"/apis/{grouping.api_version}/namespaces/{namespace}/podgroups"

    async def _make_queue(self) -> None:
        path = f"/apis/{VOLCANO_GROUPS}/queues"
        body = {"apiVersion": VOLCANO_GROUPS, "kind": "Queue", "metadata": {"name": "default"}, "spec": {"weight": 1}}
        await self._ensure(path, body)
        # Volcano places nothing in a queue whose state nobody has written yet.
        await self._client.merge(f"{path}/default/status", {"status": {"state": "Open"}})

    async def _make_node(self, index: int) -> None:
        await self._ensure("/api/v1/nodes", node(node_name(index), self._scenario.node_cpu))

    async def _make_running(self, slot: int, index: int) -> None:
        body = running_pod(f"running-{index}-{slot}", node_name(index))
        await self._client.create(f"/api/v1/namespaces/{OTHERS}/pods", body)

    async def _ensure(self, path: str, body: dict[str, Any]) -> None:
        """Create an object unless there is one of its name."""
        try:
            await self._client.create(path, body)
        except RefusedError as error:
            if error.status != _CONFLICT:
                raise

    async def _park(self, index: int) -> None:
        cpu = self._scenario.node_cpu
        await self.make_gang(f"parked-{index}", size=PARKED_SIZE, namespace=PARKED, cpu=cpu)


def gang_name(index: int, turn: int = 0) -> str:
    """The name of the gang that takes this place for the so-manieth time."""
    return f"g{index:05d}-{turn}"


def node_name(index: int) -> str:
    """The name of a node."""
    return f"n{index:05d}"
