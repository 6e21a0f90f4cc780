"""An engine as a process would run it: with informers of its own, started and killed at will."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace

import pytest

from muster.engine.configuration_source import FixedConfiguration
from muster.engine.device_mirror import DeviceInformers
from muster.engine.engine import Engine, EngineInformers
from muster.kube.client import ApiClient
from muster.kube.device_objects import DeviceClass, ResourceClaim, ResourceSlice
from muster.kube.events import EventRecorder
from muster.kube.informer import Informer
from muster.kube.objects import Node, Pod, PodGroup, PriorityClass, Queue
from muster.kube.resource import (
    DEVICECLASSES,
    NODES,
    PODGROUPS,
    PODS,
    PRIORITYCLASSES,
    QUEUES,
    RESOURCECLAIMS,
    RESOURCESLICES,
)
from muster.scheduler.conf import DEFAULT, SchedulerConfiguration
from tests.integration.gang_objects import Gangs, eventually


class WindableClock:
    """The machine's clock, which a test can wind on: sleepers wake at once when their time has come."""

    def __init__(self) -> None:
        self._ahead = 0.0
        self._wound = asyncio.Event()

    def now(self) -> float:
        return time.time() + self._ahead

    async def sleep(self, seconds: float) -> None:
        until = self.now() + seconds
        while (rest := until - self.now()) > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wound.wait(), rest)

    def wind(self, seconds: float) -> None:
        """Move on."""
        self._ahead += seconds
        self._wound.set()
        self._wound = asyncio.Event()


class RunningEngine:
    """One engine; a killed one is followed by a new one that knows only what the API server tells it."""

    def __init__(self, client: ApiClient, gangs: Gangs, *, repair_timeout: float = 60.0) -> None:
        self.clock = WindableClock()
        self._client = client
        self._gangs = gangs
        self._configuration = FixedConfiguration(replace(DEFAULT, gang_repair_timeout=repair_timeout))
        self._tasks: list[asyncio.Task[None]] = []
        self.engine: Engine | None = None

    def use(self, configuration: SchedulerConfiguration) -> None:
        """Schedule by this configuration when started next."""
        self._configuration = FixedConfiguration(configuration)

    async def start(self) -> None:
        """Run until `kill`; returns when scheduling has started."""
        informers = EngineInformers(
            pods=Informer(self._client, PODS, Pod),
            nodes=Informer(self._client, NODES, Node),
            pod_groups=Informer(self._client, PODGROUPS, PodGroup),
            queues=Informer(self._client, QUEUES, Queue),
            priority_classes=Informer(self._client, PRIORITYCLASSES, PriorityClass),
            devices=DeviceInformers(
                claims=Informer(self._client, RESOURCECLAIMS, ResourceClaim),
                slices=Informer(self._client, RESOURCESLICES, ResourceSlice),
                classes=Informer(self._client, DEVICECLASSES, DeviceClass),
            ),
        )
        recorder = EventRecorder(self._client, "muster")
        self.engine = engine = Engine(
            self._client,
            informers,
            recorder,
            clock=self.clock,
            configuration_source=self._configuration,
            scheduler_names=(self._gangs.scheduler,),
        )
        runs = [recorder.run(), engine.run(), *(informer.run() for informer in informers.all())]
        runs += [informers.devices.run()] if informers.devices is not None else []
        self._tasks = [asyncio.create_task(run) for run in runs]
        await eventually(lambda: self._check() and engine.execution is not None, "scheduling has started")

    async def kill(self) -> None:
        """Stop at once, whatever is under way."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.engine = None

    async def idle(self) -> None:
        """Wait until nothing is left to decide or to write."""
        await eventually(lambda: self._check() and self._is_idle(), "the engine is idle")

    @property
    def cycles(self) -> int:
        """How many cycles have run."""
        assert self.engine is not None
        assert self.engine.execution is not None
        return self.engine.execution.loop.cycles

    def _is_idle(self) -> bool:
        return self.engine is not None and self.engine.execution is not None and self.engine.execution.idle

    def _check(self) -> bool:
        """Fail with the engine's own error if it has ended."""
        for task in self._tasks:
            if task.done() and not task.cancelled():
                task.result()
        return True


@pytest.fixture
async def gangs(api: ApiClient, namespace: str) -> Gangs:
    """Give a place for gangs: an empty cluster with one queue."""
    made = Gangs(api, namespace)
    await made.clear_cluster()
    await made.queue()
    return made


@pytest.fixture
async def engine(proxied: ApiClient, gangs: Gangs) -> AsyncIterator[RunningEngine]:
    """Give an engine behind the proxy, not started yet."""
    made = RunningEngine(proxied, gangs)
    yield made
    await made.kill()
