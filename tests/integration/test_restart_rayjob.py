"""The controllers are killed around every single write of a RayJob's way, and started anew with nothing remembered.

Whatever the write (P5): the job ends as it would have ended, it was submitted once, and nothing was made twice. The
dashboard here is a stand-in, because the question is what Muster does, write by write; real Ray is used end to end.
"""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from muster.kube.client import ApiClient
from muster.kube.config import Connection
from muster.kube.resource import JOBS, NAMESPACES, PODGROUPS, PODS, RAYCLUSTERS, RAYJOBS, SERVICES
from tests.integration.fault_proxy import FaultProxy, KillHere, Phase, ProxiedRequest, Write
from tests.integration.observed import Observed
from tests.integration.operators import Operator, eventually
from tests.integration.ray_dashboard import RayDashboards
from tests.integration.ray_manifests import ray_job
from tests.integration.stand_ins import StandIns

AT_ONCE = 4
"""Runs side by side, each in a namespace of its own."""

STAGES = [
    {"policy": "DeleteWorkers", "condition": {"jobStatus": "FAILED"}},
    {"policy": "DeleteCluster", "condition": {"jobStatus": "FAILED", "ttlSeconds": 2}},
]
Test = Callable[[ProxiedRequest], bool]


def of_reconcilers(request: ProxiedRequest) -> bool:
    """Whether a write is of the way: nothing depends on Events and dry runs, and Queues are shared by all tests."""
    beside = any(kind in request.path for kind in ("/events", "/queues")) or "dryRun" in request.query
    return request.is_write and not beside


def stores(state: str) -> Test:
    """The write that stores this deployment status in a RayJob."""

    def when(request: ProxiedRequest) -> bool:
        status = request.body.get("status") if isinstance(request.body, dict) else None
        return "/rayjobs/" in request.path and (status or {}).get("jobDeploymentStatus") == state

    return when


@dataclass
class Stretch:
    """The writes of the way from one to another, both included; all of them by default."""

    begins: Test = of_reconcilers
    ends: Test = lambda request: False
    open: bool = False
    closed: bool = False

    def __call__(self, request: ProxiedRequest) -> bool:
        if not of_reconcilers(request) or self.closed:
            return False
        self.open = self.open or self.begins(request)
        self.closed = self.open and self.ends(request)
        return self.open


@dataclass
class Killing:
    """Strikes at one write: before it is passed on, or after it has landed and before anybody is told."""

    number: int
    phase: Phase
    struck: asyncio.Event = field(default_factory=asyncio.Event)
    at: str = "nothing: the way is shorter"

    def __call__(self, write: Write) -> None:
        if not self.struck.is_set() and (write.number, write.phase) == (self.number, self.phase):
            self.at = f"write {write.number}, {write.phase.value} {write.request.method} {write.request.path}"
            self.struck.set()
            raise KillHere


@dataclass(frozen=True)
class Way:
    """A RayJob, how it has to end, and the stretch of its way (at least `fewest` writes) on which the operator dies."""

    manifest: dict[str, Any]
    state: str
    end: dict[str, Any]
    stretch: Callable[[], Stretch]
    fewest: int
    clusters: int = 1


def way(name: str) -> Way:
    succeeded: dict[str, Any] = {
        "state": ("Complete", "SUCCEEDED"),
        "counts": (1, None),
        "reason": None,
        "submissions": 1,
    }
    failed: dict[str, Any] = {
        "state": ("Failed", "FAILED"),
        "counts": (None, 2),
        "reason": "AppFailed",
        "submissions": 2,
    }
    shutdown: dict[str, Any] = {"shutdownAfterJobFinishes": True}
    match name:
        case "K8sJobMode":
            manifest = ray_job("demo", **shutdown)
            return Way(manifest, "Complete", {**succeeded, "jobs": ["demo"]}, Stretch, 15)
        case "HTTPMode from Running on":
            manifest = ray_job("demo", submissionMode="HTTPMode", **shutdown)
            end = {**succeeded, "jobs": []}
            return Way(manifest, "Complete", end, lambda: Stretch(begins=stores("Running")), 5)
        case "deletion in stages from Failed on":
            manifest = ray_job("demo", "fail", submissionMode="HTTPMode", deletionStrategy={"deletionRules": STAGES})
            end = {**failed, "counts": (None, 1), "submissions": 1, "jobs": []}
            return Way(manifest, "Failed", end, lambda: Stretch(begins=stores("Failed")), 5)
        case _:
            manifest = ray_job("demo", "fail", backoffLimit=1, **shutdown)
            end = {**failed, "jobs": ["demo"]}
            return Way(manifest, "Failed", end, lambda: Stretch(stores("Retrying"), creates_cluster), 6, clusters=2)


def creates_cluster(request: ProxiedRequest) -> bool:
    return request.method == "POST" and request.path.endswith("/rayclusters")


@pytest.mark.long
@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize(
    "name",
    [
        "K8sJobMode",
        "HTTPMode from Running on",
        "retry up to the second cluster",
        "deletion in stages from Failed on",
    ],
)
async def test_a_restart_around_any_write_changes_nothing(
    connection: Connection, api: ApiClient, name: str, phase: Phase
) -> None:
    slots, shorter = asyncio.Semaphore(AT_ONCE), asyncio.Event()

    async def one(number: int) -> None:
        try:
            killing = Killing(number, phase)
            await run_and_check(connection, api, way(name), killing)
            if not killing.struck.is_set():
                assert number > way(name).fewest
                shorter.set()
        finally:
            slots.release()

    async with asyncio.TaskGroup() as tasks:
        for number in itertools.count(1):
            await slots.acquire()
            if shorter.is_set():
                break
            tasks.create_task(one(number))


async def run_and_check(connection: Connection, api: ApiClient, way: Way, killing: Killing) -> None:
    """One run with one kill, in a namespace of its own."""
    namespace = f"test-{uuid.uuid4().hex[:8]}"
    await api.create(NAMESPACES, None, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    seen = Observed(api, namespace)
    async with (
        RayDashboards().serve() as dashboards,
        StandIns(api, namespace).at_work() as stand_ins,
        FaultProxy(connection) as proxy,
    ):
        seen.watches = stand_ins
        proxy.on_write(killing, when=way.stretch())
        operator = Operator(proxy.connection(), namespace, dashboards)
        await api.create(RAYJOBS, namespace, way.manifest)
        try:
            await run_with_restart(operator, killing, seen, way.state)
            await at_rest(seen)
            assert await end_state(seen, dashboards) == way.end, killing.at
            made = {resource.kind: len(uids) for resource, uids in stand_ins.ever.items()}
            assert made["RayCluster"] == way.clusters, killing.at
            assert made["Pod"] == 3 * way.clusters, killing.at
            assert made["Job"] == len(way.end["jobs"]) * way.clusters, killing.at
        except AssertionError as error:
            error.add_note(f"killed at {killing.at}")
            raise
        finally:
            await operator.kill()


async def run_with_restart(operator: Operator, killing: Killing, seen: Observed, state: str) -> None:
    """Until the job has got there; on the way it is killed where `killing` says, if the way goes that far."""
    await operator.start()
    arrival = asyncio.create_task(at_end(seen, state))
    strike = asyncio.create_task(killing.struck.wait())
    try:
        await asyncio.wait((arrival, strike), return_when=asyncio.FIRST_COMPLETED)
        if killing.struck.is_set():
            await operator.kill()
            await operator.start()
        await arrival
    finally:
        for task in (arrival, strike):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def at_end(seen: Observed, state: str) -> None:
    await seen.job_state("demo", state)
    await at_rest(seen)


async def at_rest(seen: Observed) -> None:
    """Wait until the finished job has given everything back."""
    await seen.gone(RAYCLUSTERS, PODS)
    await seen.until(PODGROUPS, "ray-demo-pg", lambda pg: not pg["spec"].get("minMember"), "the gang is released")
    await seen.until(RAYJOBS, "demo", lambda job: not job["metadata"].get("finalizers"), "the job may go")

    async def only_the_jobs_service() -> bool:
        return await seen.names(SERVICES) == {"demo-head-svc"}

    await eventually(only_the_jobs_service, "the services of former clusters are collected")


async def end_state(seen: Observed, dashboards: RayDashboards) -> dict[str, Any]:
    """What is left, without what differs every time (names, times)."""
    job = await seen.get(RAYJOBS, "demo")
    assert job is not None
    status = job["status"]
    assert await seen.names(PODGROUPS) == {"ray-demo-pg"}
    return {
        "state": (status["jobDeploymentStatus"], status["jobStatus"]),
        "counts": (status.get("succeeded") or None, status.get("failed") or None),
        "reason": status.get("reason"),
        "submissions": len(dashboards.submissions),
        "jobs": sorted(await seen.names(JOBS)),
    }
