"""The service in front of Ray Serve on a real API server."""

from __future__ import annotations

from typing import Any

import pytest

from muster.kube.resource import RAYCLUSTERS, SERVICES
from tests.integration.observed import Observed
from tests.integration.ray_manifests import ray_cluster

pytest_plugins = ("tests.integration.controller_fixtures",)
pytestmark = pytest.mark.usefixtures("operator")


def asking() -> dict[str, Any]:
    manifest = ray_cluster("demo")
    manifest["metadata"]["annotations"] = {"ray.io/enable-serve-service": "true"}
    return manifest


async def test_it_is_made_where_it_is_asked_for(seen: Observed) -> None:
    await seen.api.create(RAYCLUSTERS, seen.namespace, asking())
    await seen.cluster_state("demo", "ready")
    assert await seen.names(SERVICES) == {"demo-head-svc", "demo-serve-svc"}
    await seen.event("CreatedService", "demo-serve-svc")


async def test_one_of_somebody_else_is_not_taken_over(seen: Observed) -> None:
    foreign = {"metadata": {"name": "demo-serve-svc"}, "spec": {"ports": [{"port": 1}]}}
    await seen.api.create(SERVICES, seen.namespace, foreign)
    await seen.api.create(RAYCLUSTERS, seen.namespace, asking())
    await seen.event("NameTaken", "Service demo-serve-svc exists already")
    await seen.api.delete(SERVICES, seen.namespace, "demo-serve-svc")
    await seen.cluster_state("demo", "ready")
