"""All cases at once under each operator: applied, left to settle, looked at; then jobs end, and all settles again."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from muster.kube.client import ApiClient
from muster.kube.config import load_connection
from tests.cluster import kuberay
from tests.cluster.control_plane import CRDS, ControlPlane, crd_documents
from tests.differential.heads import Heads
from tests.differential.kubelets import Kubelets
from tests.differential.manifests import Case
from tests.differential.normal_form import NormalForm
from tests.differential.side import Side, quiet
from tests.integration.operators import Operator
from tests.integration.permissions import account_of_muster

KUBERAY = "KubeRay"
MUSTER = "Muster"

# The batch scheduler whose place Muster takes; and gates that are closed in this version and open in later ones.
_GATES = "RayMultiHostIndexing=true,RayJobDeletionPolicy=true"
_FLAGS = ("--batch-scheduler=volcano", f"--feature-gates={_GATES}", "--reconcile-concurrency=4")
_SETTLED = 6.0
"""Seconds without a write: KubeRay looks again after 2 or 3."""
_PATIENCE = 300.0


@dataclass
class Seen:
    """What one operator made of the cases: once they ran, and once their jobs had ended."""

    running: dict[str, NormalForm] = field(default_factory=dict)
    ended: dict[str, NormalForm] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    """What the API server did not take, with its words."""


@dataclass
class Planes:
    """One control plane for each operator, both with KubeRay's CRDs: so a manifest is the same object for both."""

    kuberay: ControlPlane
    muster: ControlPlane


@contextlib.contextmanager
def planes() -> Iterator[Planes]:
    """Run the control planes for the length of the block."""
    kuberay.operator_binary()
    with ExitStack() as stack:
        both = [stack.enter_context(ControlPlane.start(crds=False)) for _ in range(2)]
        volcano = [one for one in crd_documents(CRDS) if "volcano" in one["metadata"]["name"]]
        for plane in both:
            plane.api.install_crds([*volcano, *kuberay.crds()], deadline_seconds=120.0)
        yield Planes(*both)


def run(cases: Sequence[Case]) -> dict[str, Seen]:
    """What each operator makes of the cases."""
    with planes() as both:
        return asyncio.run(_run(both, cases))


async def _run(both: Planes, cases: Sequence[Case]) -> dict[str, Seen]:
    async with AsyncExitStack() as stack:
        heads = {name: await stack.enter_async_context(Heads().serve()) for name in _names(both)}
        sides = {
            await stack.enter_async_context(_side(name, plane, cases, heads[name])): heads[name]
            for name, plane in _names(both).items()
        }
        environment, flags = heads[KUBERAY].proxy, _FLAGS
        stack.enter_context(kuberay.running_operator(both.kuberay, flags=flags, environment=environment))
        connection = load_connection(account_of_muster(both.muster))
        await stack.enter_async_context(Operator(connection, None, heads[MUSTER], poll_interval=1.0))
        await asyncio.gather(*(side.apply(cases) for side in sides))
        seen = {side.name: Seen(refused=side.refused) for side in sides}
        await quiet(sides, seconds=_SETTLED, within=_PATIENCE)
        for side in sides:
            seen[side.name].running = {case.name: side.look(case.name) for case in cases}
        for one in heads.values():
            one.end_all()
        await quiet(sides, seconds=_SETTLED, within=_PATIENCE)
        for side in sides:
            seen[side.name].ended = {case.name: side.look(case.name) for case in cases}
        return seen


def _names(both: Planes) -> dict[str, ControlPlane]:
    return {KUBERAY: both.kuberay, MUSTER: both.muster}


@contextlib.asynccontextmanager
async def _side(name: str, plane: ControlPlane, cases: Sequence[Case], heads: Heads) -> AsyncIterator[Side]:
    """A side with its namespaces made, followed, and with kubelets at work."""
    async with ApiClient(load_connection(plane.kubeconfig), user_agent="test") as api:
        side = Side(name, api, "case", cases)
        await side.make_namespaces()
        async with side.there.followed(), Kubelets(api, heads).at_work():
            yield side


def samples_folder() -> Path:
    """The folder of KubeRay's samples."""
    return kuberay.source() / "config"
