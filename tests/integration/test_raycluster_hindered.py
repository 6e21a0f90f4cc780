"""What the API server refuses, or a dead node never confirms, is told and does not hold a RayCluster for ever."""

from __future__ import annotations

from typing import Any

import pytest

from muster.controllers.raycluster import place
from muster.kube.resource import PODS, RAYCLUSTERS, Resource
from tests.integration.observed import Observed, conditions
from tests.integration.ray_manifests import ray_cluster

pytest_plugins = ("tests.integration.controller_fixtures",)
pytestmark = pytest.mark.usefixtures("operator")

QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
POD_GROUPS = "count/podgroups.scheduling.volcano.sh"


async def create(seen: Observed, manifest: dict[str, Any]) -> None:
    await seen.api.create(RAYCLUSTERS, seen.namespace, manifest)


async def test_a_pod_group_that_is_refused_is_told_and_made_up_for(seen: Observed) -> None:
    spec = {"hard": {POD_GROUPS: "0"}}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": spec}
    await seen.api.create(QUOTAS, seen.namespace, quota)
    counted = {"status": {**spec, "used": {POD_GROUPS: "0"}}}
    await seen.api.patch(QUOTAS, seen.namespace, "none", counted, subresource="status")
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
