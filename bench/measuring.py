"""One run: a scenario, in one mode, by one system, on a control plane of its own.

It ends when all that has room is bound, when nothing has been bound for a while, or at once when the system, the API
server or etcd ends. What is left undone then, or done wrong, is told as a fault, not raised: the next run goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.account import account_kubeconfig
from bench.api_client import ApiClient
from bench.api_writes import writes
from bench.census import Census, take_census
from bench.load import GANGS, WARM_UP, Load
from bench.pod_watch import PodWatch
from bench.processes import Usage, ended, how_it_ended, process_id, usage
from bench.results import API_SERVER, ETCD, SYSTEM, Result
from bench.scenarios import Mode, Scenario
from bench.systems import System, install_crds
from tests.cluster.control_plane import ControlPlane
from tests.cluster.process import Background, start

REPOSITORY = Path(__file__).parents[1]
_QUIET: Final = 3.0
"""Seconds without a write after which there is nothing more to come. Muster holds a status back for up to two: with
less, what it says of the gangs that were parked before would count as writes for those that arrive."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long is waited, in seconds.

    `start`: for the first binding, the start of the system included. `stall`: without any further one, before it is
    taken that none will come. `settle`: at most, for the last writes of a run that is over. `calm`: at most, for a
    system that has just been started to have no more to write.
    """

    start: float = 120.0
    stall: float = 60.0
    settle: float = 5.0
    calm: float = 60.0


@dataclass(frozen=True, slots=True)
class _Reading:
    """What is counted from the beginning to the end."""

    usage: dict[str, Usage]
    writes: Counter[str]
    bound: int


async def measure(
    plane: ControlPlane, scenario: Scenario, mode: Mode, system: System, *, pace: float, patience: Patience
) -> Result:
    """Measure one run on a control plane that nobody has used yet; `pace` is in gangs a second.

    Raises what keeps the run from being one at all: a system that can't be built, an API server that takes no load.
    """
    kubeconfig = account_kubeconfig(plane)
    command = system.command(kubeconfig, plane.folder)
    install_crds(plane, system)
    async with ApiClient(kubeconfig) as client:
        run = _Run(plane, client, scenario.in_mode(mode), mode, system, kubeconfig, command, pace, patience)
        return await run.measure()


class _Run:
    def __init__(
        self,
        plane: ControlPlane,
        client: ApiClient,
        scenario: Scenario,
        mode: Mode,
        system: System,
        kubeconfig: Path,
        command: list[str],
        pace: float,
        patience: Patience,
    ) -> None:
        self._plane, self._client, self._scenario, self._mode = plane, client, scenario, mode
        self._system, self._command, self._pace, self._patience = system, command, pace, patience
        self._kubeconfig = kubeconfig
        self._programs = {API_SERVER: Background(plane.folder, API_SERVER), ETCD: Background(plane.folder, ETCD)}
        self._pids = {name: process_id(program) for name, program in self._programs.items()}
        self._load = Load(client, scenario, system)
        self._watch = PodWatch(client, GANGS, scenario.size)
        self._began = time.monotonic()
        self._is_warm = False
        self._dead = ""
        """Which process ended, if one did."""

    async def measure(self) -> Result:
        await self._load.prepare()
        if self._mode is Mode.DRAIN:
            await self._load.all_at_once()
        async with _in_background(self._watch.run()):
            await self._watch.synced.wait()
            try:
                return await self._measure()
            finally:
                if SYSTEM in self._programs:
                    self._programs[SYSTEM].stop(grace=2.0)

    async def _measure(self) -> Result:
        if self._mode is Mode.DRAIN:
            before = await self._read()
            self._began = time.monotonic()
            self._start()
            await self._guarded(self._reach(self._expected))
        else:
            self._began = time.monotonic()
            self._start()
            await self._guarded(self._warm_up())
            before = await self._read()
            self._began = time.monotonic()
            if self._is_warm and not self._dead:
                await self._guarded(self._run_load())
        stopped = time.monotonic()
        await self._guarded(self._calm(self._patience.settle))
        return await self._result(before, stopped)

    # --- the system -------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        search = os.pathsep.join(filter(None, (str(REPOSITORY), os.environ.get("PYTHONPATH"))))
        environment = {"KUBECONFIG": str(self._kubeconfig), "PYTHONPATH": search}
        name = f"system-{self._system.name}"
        program = start(name, self._command, self._plane.folder, environment=environment, cwd=Path.cwd())
        self._programs[SYSTEM], self._pids[SYSTEM] = program, process_id(program)

    async def _warm_up(self) -> None:
        """Wait until the system binds a first pod, and has looked at all that waits already. Take that pod away."""
        watch = PodWatch(self._client, WARM_UP, 1)
        async with _in_background(watch.run()):
            await self._load.make_gang("first", size=1, namespace=WARM_UP)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._patience.start):
                    await watch.reaches(1)
                    self._is_warm = True
        await self._load.remove_gang("first", size=1, namespace=WARM_UP)
        await self._calm(self._patience.calm)

    # --- to the end -------------------------------------------------------------------------------------------------

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """Do this to its end, or until a process ends that must not."""
        task = asyncio.create_task(work)
        deaths = {asyncio.create_task(ended(pid)): name for name, pid in self._pids.items()}
        try:
            await asyncio.wait({task, *deaths}, return_when=asyncio.FIRST_COMPLETED)
            if task.done() and task.exception() is not None:
                # A broken connection is noticed before the end of the process behind it.
                await asyncio.wait(deaths, timeout=_QUIET, return_when=asyncio.FIRST_COMPLETED)
            self._dead = self._dead or next((name for death, name in deaths.items() if death.done()), "")
            if task.done() and not self._dead:
                await task
        finally:
            for each in (task, *deaths):
                each.cancel()
            await asyncio.gather(task, *deaths, return_exceptions=True)

    async def _run_load(self) -> None:
        if self._scenario.churn:
            return await self._load.churn(self._watch, self._scenario.churn)
        if self._mode is Mode.PACED:
            await self._load.paced(self._pace)
        else:
            await self._load.all_at_once()
        return await self._reach(self._expected)

    async def _reach(self, count: int) -> None:
        """Return when so many pods have been bound, or when nothing has been bound or created for too long."""
        while self._watch.bound < count:
            since = max(self._began, self._watch.last, self._load.latest)
            patience = self._patience.stall if self._watch.bound or self._is_warm else self._patience.start
            left = since + patience - time.monotonic()
            if left <= 0:
                return
            with contextlib.suppress(TimeoutError):
                # For a while only: each binding moves the end of the wait.
                async with asyncio.timeout(min(left, _QUIET / 4)):
                    await self._watch.reaches(count)

    async def _calm(self, at_most: float) -> None:
        """Wait until the API server has had nothing to write for a moment."""
        deadline = time.monotonic() + at_most
        known, since = Counter[str](), time.monotonic()
        while time.monotonic() < min(deadline, since + _QUIET):
            found = await self._writes()
            if found != known:
                known, since = found, time.monotonic()
            await asyncio.sleep(_QUIET / 4)

    # --- counting ---------------------------------------------------------------------------------------------------

    @property
    def _expected(self) -> int:
        return self._scenario.fitting * self._scenario.size

    async def _writes(self) -> Counter[str]:
        """Writes so far that were not the benchmark's."""
        own = self._client.writes.copy()
        return writes(await self._client.text("/metrics")) - own

    async def _read(self) -> _Reading:
        used = {name: usage(pid) for name, pid in self._pids.items()}
        made = await self._writes() if self._is_answering else Counter[str]()
        return _Reading(used, made, self._watch.bound)

    @property
    def _is_answering(self) -> bool:
        return self._dead in ("", SYSTEM)

    async def _result(self, before: _Reading, stopped: float) -> Result:
        after = await self._read()
        during = after.bound - before.bound
        census = Census()
        if self._is_answering:
            size, node_cpu = self._scenario.size, self._scenario.node_cpu
            census = await take_census(self._client, namespace=GANGS, size=size, node_cpu=node_cpu)
        created = {} if self._mode is Mode.DRAIN else self._load.created
        whole = self._watch.whole
        return Result(
            expected=self._expected,
            census=census,
            during=during,
            seconds=self._watch.last - self._began if during else None,
            latencies=tuple(max(0.0, whole[gang] - at) for gang, at in created.items() if gang in whole),
            usage={name: used.since(before.usage.get(name, Usage())) for name, used in after.usage.items()},
            writes=after.writes - before.writes,
            faults=tuple(self._faults(census, during, stopped - self._began)),
        )

    def _faults(self, census: Census, during: int, seconds: float) -> list[str]:
        found = []
        if self._dead:
            how, last = how_it_ended(self._pids[self._dead]), self._programs[self._dead].last_lines(1)
            name = self._system.name if self._dead == SYSTEM else self._dead
            found.append(f"{name} {how} after {seconds:.1f} s{': ' if last else ''}{last}")
        if not self._is_answering:
            return found
        if not during:
            found.append("bound nothing")
        elif census.bound < self._expected:
            found.append(f"left {self._expected - census.bound} of {self._expected} pods unbound")
        if census.partial:
            found.append(f"{census.partial} gangs bound in part")
        if census.overcommitted:
            found.append(f"{census.overcommitted} nodes hold more than they have")
        return found


@contextlib.asynccontextmanager
async def _in_background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
