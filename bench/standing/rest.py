"""What Muster does on a cluster on which nothing happens: processor time, memory, and writes, of which the only ones
should be its Leases'.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.account import USER, account_kubeconfig
from bench.api_client import ApiClient
from bench.controllers.arrivals import Failed, watched
from bench.controllers.at_once import for_each
from bench.controllers.manifests import PODS_EACH
from bench.controllers.running_system import RunningSystem, running
from bench.controllers.scenario import Kind, Scenario
from bench.standing import cluster
from bench.standing.audit import AuditLog, without_leases
from bench.standing.program import WHOLE, install, muster
from bench.standing.readings import FAULTS, said, used
from bench.standing.result import Interval, Rest, Used
from muster.kube import client as muster_client
from muster.kube.config import load_connection
from muster.kube.objects import PodGroup
from muster.kube.resource import PODGROUPS, RAYCLUSTERS
from tests.cluster.control_plane import ControlPlane
from tests.cluster.ports import free_ports
from tests.cluster.progress import Steps

_NAMESPACE: Final = "bench"
_LOOK_SECONDS: Final = 1.0
_LONGEST_UNREST: Final = 10
"""So many times the settling time may pass until the rest begins all the same; its rows tell of the writes then."""


Tell = Callable[[Used | Interval], None]


@dataclass(frozen=True, slots=True)
class Settings:
    """`pods` are all pods, those of the gangs too. Seconds: of the rest; without a write before it begins; without
    progress until a run is given up.
    """

    nodes: int = 1000
    pods: int = 10_000
    gangs: int = 300
    seconds: float = 3600.0
    intervals: int = 6
    settle: float = 30.0
    patience: float = 300.0


@dataclass(frozen=True, slots=True)
class Reading:
    """What is known at a moment of a monotonic clock: usage since the start of the process, writes since the API
    server's.
    """

    at: float
    used: Used
    writes: Counter[str]

    def until(self, later: Reading, began: float) -> Interval:
        """The interval between this reading and a later one of a rest that began then."""
        seconds = later.at - self.at
        return Interval(
            seconds=seconds,
            end=later.at - began,
            cpu_percent=100 * (later.used.cpu - self.used.cpu) / seconds,
            used=later.used,
            writes=later.writes - self.writes,
        )


@dataclass(slots=True)
class Watchman:
    """Looks at a process at rest. `tell` hears of what had been used when the rest began, and of each interval when it
    is over; `readings` are those so far, the first one from the beginning.
    """

    read: Callable[[], Reading]
    dead: Callable[[], str | None]
    tell: Tell
    readings: list[Reading] = field(default_factory=list)

    async def watch(self, seconds: float, intervals: int) -> None:
        """Watch for so long, in so many intervals. Raises Failed as soon as something has died."""
        self.readings = [self.read()]
        began = self.readings[0].at
        self.tell(self.readings[0].used)
        for number in range(1, intervals + 1):
            await self._alive_until(began + seconds * number / intervals)
            self.readings.append(self.read())
            self.tell(self.intervals[-1])

    @property
    def whole(self) -> Interval | None:
        """All intervals together; None where none is over."""
        first, last = self.readings[:1], self.readings[1:][-1:]
        return first[0].until(last[0], first[0].at) if last else None

    @property
    def intervals(self) -> list[Interval]:
        """Those that are over."""
        pairs = zip(self.readings, self.readings[1:], strict=False)
        return [earlier.until(later, self.readings[0].at) for earlier, later in pairs]

    async def _alive_until(self, until: float) -> None:
        while True:
            if (what := self.dead()) is not None:
                raise Failed(what)
            if (left := until - time.monotonic()) <= 0:
                return
            await asyncio.sleep(min(left, _LOOK_SECONDS))


def measure_rest(settings: Settings, tell: Tell) -> Rest:
    """One rest, from a fresh control plane to its result; what goes wrong is in that, also where the machine is at
    fault.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="muster-audit-") as folder:
            audit = AuditLog(Path(folder), USER)
            with cluster.control_plane(kwok=True, flags=audit.flags) as plane:
                with Steps().step(f"{settings.nodes} nodes, and pods that are not Muster's"):
                    asyncio.run(_prepare(plane, settings))
                (port,) = free_ports(1)
                install(plane, port)
                system = muster(WHOLE, admission_port=port, leader_election=True)
                with running(system, account_kubeconfig(plane), plane.folder) as program:
                    return asyncio.run(_Run(plane, program, audit, settings, tell).measured())
    except FAULTS as error:
        return Rest(trouble=(said(error),))


async def _prepare(plane: ControlPlane, settings: Settings) -> None:
    """All that is not Muster's."""
    async with ApiClient(plane.kubeconfig) as client:
        await cluster.make_namespaces(client, _NAMESPACE)
        await cluster.make_nodes(client, settings.nodes)
        others = settings.pods - settings.gangs * PODS_EACH
        await cluster.make_pods(client, others, settings.nodes, are_running=False)
        await cluster.until_all_run(client, patience=settings.patience, dead=lambda: cluster.dead(plane))


@dataclass(frozen=True, slots=True)
class _Run:
    """Muster at work on its control plane, and then at rest."""

    plane: ControlPlane
    program: RunningSystem
    audit: AuditLog
    settings: Settings
    tell: Tell

    async def measured(self) -> Rest:
        """All that was seen, and what went wrong."""
        watchman = Watchman(self._read, self._dead, self.tell)
        trouble: list[str] = []
        try:
            with Steps().step(f"{self.settings.gangs} RayClusters, until nothing more is written"):
                await self._make_gangs()
                await self._until_settled()
            await watchman.watch(self.settings.seconds, self.settings.intervals)
            if watchman.whole is not None:
                trouble += faults_of(watchman.whole.writes)
            trouble += await self._faults_in_the_end()
        except FAULTS as error:
            trouble.append(said(error))
        beginning = watchman.readings[0].used if watchman.readings else None
        return Rest(beginning=beginning, intervals=watchman.intervals, whole=watchman.whole, trouble=trouble)

    async def _make_gangs(self) -> None:
        """Make the RayClusters, and wait until all are ready. Raises Failed."""
        scenario = Scenario(Kind.CLUSTERS, self.settings.gangs)
        async with self._client() as client, watched(client, scenario) as arrivals:

            async def create(name: str) -> None:
                arrivals.note_created(name)
                await client.create(RAYCLUSTERS, _NAMESPACE, scenario.manifest(name, 0))

            await for_each(scenario.names, create)
            await arrivals.all_there(scenario.names, patience=self.settings.patience, dead=self._dead)

    async def _until_settled(self) -> None:
        """Wait until nothing but Leases has been written for a while. Raises Failed."""
        known, since = without_leases(self.audit.writes()), time.monotonic()
        deadline = since + self.settings.settle * _LONGEST_UNREST
        while time.monotonic() < min(deadline, since + self.settings.settle):
            await asyncio.sleep(min(_LOOK_SECONDS, self.settings.settle))
            if (what := self._dead()) is not None:
                raise Failed(what)
            if (found := without_leases(self.audit.writes())) != known:
                known, since = found, time.monotonic()

    async def _faults_in_the_end(self) -> list[str]:
        async with ApiClient(self.plane.kubeconfig) as client:
            faults = await cluster.faults_of(client, nodes=self.settings.nodes, pods=self.settings.pods)
        async with self._client() as client_of_muster:
            groups = await client_of_muster.list(PODGROUPS, _NAMESPACE, decode=PodGroup)
        phases = Counter(group.status.phase for group in groups)
        if phases != {"Running": self.settings.gangs}:
            told = ", ".join(f"{number} {phase}" for phase, number in phases.most_common()) or "none"
            faults.append(f"PodGroups: {told}; {self.settings.gangs} should be Running")
        return faults

    def _client(self) -> muster_client.ApiClient:
        return muster_client.ApiClient(load_connection(self.plane.kubeconfig), user_agent="bench")

    def _read(self) -> Reading:
        return Reading(time.monotonic(), used(self.program), self.audit.writes())

    def _dead(self) -> str | None:
        return self.program.dead() or cluster.dead(self.plane)


def faults_of(writes: Mapping[str, int]) -> list[str]:
    """What is wrong with the writes of a rest, by verb and resource."""
    others = without_leases(writes)
    faults = []
    if others:
        faults.append(f"{others.total()} writes that are no Lease's")
    if others.total() == sum(writes.values()):
        faults.append("no Lease was written")
    return faults
