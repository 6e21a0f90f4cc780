"""How long Muster takes from its start to its first decision, where much is there already."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from bench.account import account_kubeconfig
from bench.api_client import ApiClient
from bench.controllers.arrivals import Failed
from bench.controllers.running_system import RunningSystem, running
from bench.controllers.systems import System
from bench.manifests import gang_pod, pod_group
from bench.pod_watch import PodWatch
from bench.standing import cluster
from bench.standing.program import install, muster
from bench.standing.readings import FAULTS, said, used
from bench.standing.result import Start
from bench.systems import VOLCANO_GROUPS, parse
from tests.cluster.control_plane import ControlPlane
from tests.cluster.ports import free_ports
from tests.cluster.progress import Steps

T = TypeVar("T")

_SIZE: Final = 3
_GANG: Final = "waits"
_LOOK_SECONDS: Final = 0.2
"""A process that has died is noticed so soon."""
_GATED: Final = parse("muster")
"""How the benchmark of schedulers makes pods for Muster."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Seconds: from the first binding to the second look, and without a binding until a start is given up."""

    nodes: int = 5000
    pods: int = 50_000
    after: float = 10.0
    patience: float = 120.0


def measure_starts(settings: Settings, components: Sequence[str], runs: int) -> Iterator[Start]:
    """So many starts with each of these components, in turn, on one control plane. What goes wrong is in the results,
    also where the machine is at fault.
    """
    turns = [(each, run) for run in range(runs) for each in components]
    left = iter(turns)
    try:
        with cluster.control_plane(kwok=False) as plane:
            with Steps().step(f"{settings.nodes} nodes and {settings.pods} pods"):
                asyncio.run(_prepare(plane, settings))
            (port,) = free_ports(1)
            install(plane, port)
            kubeconfig = account_kubeconfig(plane)
            for number, (each, run) in enumerate(left):
                system = muster(each, admission_port=port, leader_election=False)
                yield asyncio.run(_Run(plane, kubeconfig, system, settings, number).measured(each, run))
    except FAULTS as error:
        yield from (Start(components=each, run=run, trouble=(said(error),)) for each, run in left)


async def _prepare(plane: ControlPlane, settings: Settings) -> None:
    async with ApiClient(plane.kubeconfig) as client:
        await cluster.make_namespaces(client)
        await cluster.make_nodes(client, settings.nodes)
        await cluster.make_pods(client, settings.pods, settings.nodes, are_running=True)


@dataclass(frozen=True, slots=True)
class _Run:
    """One start, the so-manieth on this control plane."""

    plane: ControlPlane
    kubeconfig: Path
    system: System
    settings: Settings
    number: int

    async def measured(self, components: str, run: int) -> Start:
        """Its figures, or what went wrong."""
        result = Start(components=components, run=run)
        try:
            async with ApiClient(self.plane.kubeconfig) as client:
                namespace = await self._make_gang(client)
                watch = PodWatch(client, namespace, _SIZE)
                async with _in_background(watch.run()):
                    await watch.synced.wait()
                    result = await self._started(watch, result)
                if not result.trouble:
                    pods = self.settings.pods + _SIZE
                    result = replace(
                        result, trouble=await cluster.faults_of(client, nodes=self.settings.nodes, pods=pods)
                    )
                await self._remove_gang(client, namespace)
                return result
        except FAULTS as error:
            return replace(result, trouble=(*result.trouble, said(error)))

    async def _make_gang(self, client: ApiClient) -> str:
        """A gang that waits, in a namespace of its own, whose name is returned."""
        namespace = f"waits-{self.number}"
        await client.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        path = f"/apis/{VOLCANO_GROUPS}/namespaces/{namespace}/podgroups"
        await client.create(path, pod_group(_GATED, _GANG, _SIZE))
        for index in range(_SIZE):
            await client.create(f"/api/v1/namespaces/{namespace}/pods", gang_pod(_GATED, _GANG, index))
        return namespace

    async def _remove_gang(self, client: ApiClient, namespace: str) -> None:
        """Whatever became of it: the next start is to find what this one has found."""
        for index in range(_SIZE):
            await client.delete(f"/api/v1/namespaces/{namespace}/pods/{_GANG}-{index}")
        await client.delete(f"/apis/{VOLCANO_GROUPS}/namespaces/{namespace}/podgroups/{_GANG}")

    async def _started(self, watch: PodWatch, result: Start) -> Start:
        began = time.monotonic()
        with running(self.system, self.kubeconfig, self.plane.folder) as program:
            try:
                first = await self._until(watch, 1, program)
                result = replace(result, first=first - began, at_first=used(program))
                result = replace(result, gang=await self._until(watch, _SIZE, program) - began)
                await self._pause(first + self.settings.after, program)
                return replace(result, later=used(program))
            except Failed as failed:
                return replace(result, trouble=(str(failed),))

    async def _until(self, watch: PodWatch, bound: int, program: RunningSystem) -> float:
        """When so many pods of the gang were bound. Raises Failed."""
        deadline = time.monotonic() + self.settings.patience

        async def moment() -> float:
            await watch.reaches(bound)
            return time.monotonic()

        async with _in_background(moment()) as waiting:
            while not (await asyncio.wait({waiting}, timeout=_LOOK_SECONDS))[0]:
                self._check_alive(program)
                if time.monotonic() > deadline:
                    raise Failed(f"{watch.bound} of {_SIZE} pods were bound in {self.settings.patience:g} s")
            return waiting.result()

    async def _pause(self, until: float, program: RunningSystem) -> None:
        while (left := until - time.monotonic()) > 0:
            self._check_alive(program)
            await asyncio.sleep(min(left, _LOOK_SECONDS))
        self._check_alive(program)

    def _check_alive(self, program: RunningSystem) -> None:
        if (what := program.dead() or cluster.dead(self.plane)) is not None:
            raise Failed(what)


@asynccontextmanager
async def _in_background(work: Coroutine[Any, Any, T]) -> AsyncIterator[asyncio.Task[T]]:
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
