"""What the API server refuses, or a dead node never confirms, is told and does not hold a RayCluster for ever."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from muster.controllers.raycluster import place
from muster.kube.resource import PODS, RAYCLUSTERS, Resource
from tests.integration.observed import Observed, conditions
from tests.integration.ray_manifests import ray_cluster, template, worker_group
from tests.integration.stand_ins import StandIns

pytest_plugins = ("tests.integration.controller_fixtures",)
pytestmark = pytest.mark.usefixtures("operator")

QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
POD_GROUPS = "count/podgroups.scheduling.volcano.sh"


async def create(seen: Observed, manifest: dict[str, Any]) -> None:
    await seen.api.create(RAYCLUSTERS, seen.namespace, manifest)


async def allow(seen: Observed, **hard: str) -> None:
    """Make a ResourceQuota `none`, with the count that its controller would make of an empty namespace."""
    spec = {"hard": hard}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": spec}
    await seen.api.create(QUOTAS, seen.namespace, quota)
    counted = {"status": {**spec, "used": dict.fromkeys(hard, "0")}}
    await seen.api.patch(QUOTAS, seen.namespace, "none", counted, subresource="status")


@asynccontextmanager
async def longest_pause() -> AsyncIterator[list[float]]:
    """The event loop's pauses in seconds, the longest last; the operator under test runs on this loop."""
    pauses = [0.0]

    async def tick() -> None:
        before = time.monotonic()
        while True:
            await asyncio.sleep(0.01)
            now = time.monotonic()
            pauses.append(max(pauses[-1], now - before))
            before = now

    task = asyncio.create_task(tick())
    try:
        yield pauses
    finally:
        task.cancel()


async def test_a_number_of_workers_that_can_not_be_had_does_not_keep_the_operator_busy(
    seen: Observed, stand_ins: StandIns
) -> None:
    stand_ins.holds_back = lambda pod: True
    await allow(seen, pods="1")
    async with longest_pause() as pauses:
        await create(seen, ray_cluster("demo", worker_group(replicas=90_000, maxReplicas=None)))
        await seen.event("FailedToCreateWorkerPod", "exceeded quota")
        await seen.until(
            RAYCLUSTERS, "demo", lambda one: "exceeded quota" in (one.get("status") or {}).get("reason", ""), "is told"
        )
    assert pauses[-1] < 5.0, "a Lease would be lost"
    # The head is given back; nobody takes it out of the quota's count here, so that it does not come again.
    await seen.gone(PODS)


async def test_a_pod_group_that_is_refused_is_told_and_made_up_for(seen: Observed) -> None:
    await allow(seen, **{POD_GROUPS: "0"})
    await create(seen, ray_cluster("demo"))
    await seen.event("FailedToReconcile", "exceeded quota")
    refused = await seen.until(
        RAYCLUSTERS, "demo", lambda one: "exceeded quota" in (one.get("status") or {}).get("reason", ""), "it is told"
    )
    assert conditions(refused["status"])["ReplicaFailure"] == "True"
    assert await seen.nothing_made()
    await seen.api.delete(QUOTAS, seen.namespace, "none")
    status = await seen.cluster_state("demo", "ready")
    assert "ReplicaFailure" not in conditions(status)


async def test_a_suspension_does_not_wait_for_ever_for_a_dead_node(
    seen: Observed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, "STUCK_SECONDS", 2.0)
    await create(seen, ray_cluster("demo"))
    await seen.cluster_state("demo", "ready")
    (stuck,) = [pod["metadata"]["name"] for pod in await seen.pods("headgroup")]
    hold = {"metadata": {"finalizers": ["example.com/never-confirmed"]}}
    await seen.api.patch(PODS, seen.namespace, stuck, hold)
    await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", {"spec": {"suspend": True}})
    await seen.cluster_state("demo", "suspended")
    assert await seen.names(PODS) == {stuck}
    await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", {"spec": {"suspend": False}})
    await seen.cluster_state("demo", "ready")
    await seen.api.patch(PODS, seen.namespace, stuck, {"metadata": {"finalizers": None}})


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        ({"workerGroupSpecs": [worker_group(), worker_group()]}, "workerGroupSpecs[1].groupName"),
        ({"workerGroupSpecs": [worker_group(template=template(cpu="lots"))]}, "requests"),
        ({"workerGroupSpecs": [worker_group(template=template(nodeNmae="n"))]}, "nodeNmae"),
        ({"workerGroupSpecs": [worker_group(minReplicas=5, maxReplicas=2)]}, "workerGroupSpecs[0]"),
    ],
    ids=["two of a name", "no amount", "no such field", "minimum above maximum"],
)
async def test_a_cluster_whose_spec_can_not_work_is_suspended_all_the_same(
    seen: Observed, bad: dict[str, Any], field: str
) -> None:
    await create(seen, ray_cluster("demo"))
    await seen.cluster_state("demo", "ready")
    await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", {"spec": bad})
    assert field in await seen.event("InvalidRayClusterSpec")
    await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", {"spec": {"suspend": True}})
    await seen.cluster_state("demo", "suspended")
    await seen.until(RAYCLUSTERS, "demo", lambda one: field in one["status"].get("reason", ""), "it is told")
    assert await seen.names(PODS) == set()
    good = {"suspend": False, "workerGroupSpecs": [worker_group()]}
    await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", {"spec": good})
    await seen.until(RAYCLUSTERS, "demo", lambda one: one["status"]["state"] == "ready", "it is ready again")
