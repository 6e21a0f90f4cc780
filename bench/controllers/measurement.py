"""One run of one system in one scenario, from a fresh control plane to its result."""

from __future__ import annotations

import asyncio
import functools
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass

import httpx

from bench.account import account_kubeconfig
from bench.controllers.arrivals import Arrivals, Failed, watched
from bench.controllers.at_once import for_each
from bench.controllers.ceiling import plain_client
from bench.controllers.end_state import faults_of
from bench.controllers.manifests import PODS_EACH
from bench.controllers.plane import Crds, dead_of_plane, fresh_plane, plane_sessions
from bench.controllers.result import Figures, Result, percentile, used_since
from bench.controllers.running_heads import RunningHeads, running_heads
from bench.controllers.running_system import RunningSystem, running
from bench.controllers.scenario import Kind, Scenario
from bench.controllers.systems import CEILING, System
from bench.controllers.writes_by_kind import writes_by_kind
from bench.processes import Usage, usage
from muster.kube.client import ApiClient
from muster.kube.config import load_connection
from muster.kube.errors import ApiError
from muster.kube.resource import NAMESPACES
from tests.cluster.control_plane import ControlPlane

NAMESPACE = "bench"
_WARM_UP = "warm-up"
_LOOKS = 6
"""So often is waited for the writes to end."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How all runs are made. Seconds: without progress until a run is given up; of the pause after the last object
    (what was under way may end in it); in which nothing should be written any more.
    """

    nodes: int = 300
    crds: Crds = Crds.OWN
    patience: float = 120.0
    settle: float = 5.0
    quiet: float = 20.0


def measure(system: System, scenario: Scenario, settings: Settings, run: int) -> Result:
    """One run. What goes wrong in it is in the result, also where the machine is at fault."""
    result = functools.partial(Result, scenario=scenario.kind.value, system=system.name, run=run, count=scenario.count)
    try:
        with ExitStack() as stack:
            plane = stack.enter_context(fresh_plane(system, settings.crds, settings.nodes))
            kubeconfig = account_kubeconfig(plane)
            if system is CEILING:
                ceiling = plain_client(
                    plane, kubeconfig, scenario, settings.nodes, NAMESPACE, patience=settings.patience
                )
                return result(figures=asyncio.run(ceiling))
            heads = None
            if scenario.kind is Kind.JOBS:
                heads = stack.enter_context(running_heads(plane.folder, scenario.job_seconds))
            environment = heads.proxy if heads else {}
            running_system = stack.enter_context(running(system, kubeconfig, plane.folder, environment))
            figures, faults = asyncio.run(_Run(plane, running_system, heads, scenario, settings).measured())
            return result(figures=figures, trouble=tuple(faults))
    except (Failed, ApiError, httpx.HTTPError, RuntimeError, OSError) as error:
        return result(trouble=(str(error) or type(error).__name__,))


@dataclass(frozen=True, slots=True)
class _Run:
    """A system at work on its control plane."""

    plane: ControlPlane
    system: RunningSystem
    heads: RunningHeads | None
    scenario: Scenario
    settings: Settings

    async def measured(self) -> tuple[Figures, list[str]]:
        """The figures, and what is wrong at the end. Raises Failed."""
        async with ApiClient(load_connection(self.plane.kubeconfig), user_agent="bench") as client:
            await client.create(NAMESPACES, None, {"metadata": {"name": NAMESPACE}})
            async with watched(client, self.scenario) as arrivals:
                await self._bring_about(client, arrivals, [_WARM_UP])
                figures = await self._figures(client, arrivals)
            objects = self.scenario.count + 1
            counts = self.heads.counts() if self.heads else None
            return figures, await faults_of(client, self.scenario, NAMESPACE, objects, counts)

    async def _figures(self, client: ApiClient, arrivals: Arrivals) -> Figures:
        names, count = self.scenario.names, self.scenario.count
        questions, wrote, before = self._questions(), writes_by_kind(self.plane), self._used()
        await self._bring_about(client, arrivals, names)
        await asyncio.sleep(self.settings.settle)
        after, questions = self._used(), self._questions() - questions
        settled = await self._settled_writes()
        await asyncio.sleep(self.settings.quiet)
        later = writes_by_kind(self.plane) - settled
        self._check_alive()
        seconds, made = arrivals.seconds(names), self._without_ours(settled - wrote)
        used = used_since(before, after, count)
        return Figures(
            per_second=count / arrivals.elapsed(names),
            p50=percentile(seconds, 0.5),
            p99=percentile(seconds, 0.99),
            system={name: used[name] for name in self.system.sessions},
            plane={name: one for name, one in used.items() if name not in self.system.sessions},
            writes=made.total() / count,
            writes_by_kind={kind: number / count for kind, number in made.most_common()},
            writes_after=later.total(),
            writes_after_by_kind=dict(later.most_common()),
            questions=questions / count,
        )

    async def _bring_about(self, client: ApiClient, arrivals: Arrivals, names: Iterable[str]) -> None:
        names, port = list(names), self.heads.port if self.heads else 0

        async def create(name: str) -> None:
            arrivals.note_created(name)
            await client.create(self.scenario.resource, NAMESPACE, self.scenario.manifest(name, port))

        await for_each(names, create)
        await arrivals.all_there(names, patience=self.settings.patience, dead=self._dead)

    async def _settled_writes(self) -> Counter[str]:
        """The writes so far, once there were none between two looks; or after some looks, however many there are."""
        wrote = writes_by_kind(self.plane)
        for _ in range(_LOOKS):
            await asyncio.sleep(self.settings.settle)
            last, wrote = wrote, writes_by_kind(self.plane)
            if wrote == last:
                break
        return wrote

    def _without_ours(self, writes: Counter[str]) -> Counter[str]:
        """Writes without the objects that were applied, and without kwok's, one of each pod's status."""
        ours = {f"POST {self.scenario.resource.plural}": self.scenario.count}
        kwok = {"PATCH pods/status": self.scenario.count * PODS_EACH}
        return writes - Counter(ours) - Counter(kwok)

    def _used(self) -> dict[str, Usage]:
        self._check_alive()
        heads = {} if self.heads is None else {"ray-heads": self.heads.session}
        sessions = {**plane_sessions(self.plane), **heads, **self.system.sessions}
        return {name: usage(session) for name, session in sessions.items()}

    def _dead(self) -> str | None:
        return self.system.dead() or dead_of_plane(self.plane)

    def _check_alive(self) -> None:
        """What ends after its work has failed too. Raises Failed."""
        if (what := self._dead()) is not None:
            raise Failed(f"all are there, and {what}")

    def _questions(self) -> int:
        return self.heads.counts().questions if self.heads else 0
