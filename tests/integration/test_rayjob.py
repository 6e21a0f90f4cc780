"""The way of a RayJob, on a real API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from muster.kube.client import ApiClient
from muster.kube.config import Connection
from muster.kube.resource import JOBS, PODGROUPS, PODS, RAYCLUSTERS, RAYJOBS
from tests.integration.operators import Operator, eventually
from tests.integration.ray_dashboard import RayDashboards
from tests.integration.ray_manifests import ray_job
from tests.integration.stand_ins import StandIns


@pytest.fixture
async def dashboards() -> AsyncIterator[RayDashboards]:
    async with RayDashboards().serve() as dashboards:
        yield dashboards


@pytest.fixture
async def stand_ins(api: ApiClient, namespace: str) -> AsyncIterator[StandIns]:
    async with StandIns(api, namespace).at_work() as stand_ins:
        yield stand_ins


@pytest.fixture
async def operator(
    connection: Connection, namespace: str, dashboards: RayDashboards, stand_ins: StandIns
) -> AsyncIterator[Operator]:
    async with Operator(connection, namespace, dashboards) as operator:
        yield operator


async def reaches(api: ApiClient, namespace: str, name: str, state: str, within: float = 30.0) -> dict[str, Any]:
    async def status() -> dict[str, Any] | None:
        job = await api.get(RAYJOBS, namespace, name)
        found: dict[str, Any] = job.get("status") or {}
        return found if found.get("jobDeploymentStatus") == state else None

    try:
        return await eventually(status, f"RayJob {name} is {state}", within)
    except AssertionError as error:
        job = await api.get(RAYJOBS, namespace, name)
        raise AssertionError(f"{error}; status: {job.get('status')}") from None


@pytest.mark.parametrize("mode", ["K8sJobMode", "HTTPMode"])
async def test_a_job_goes_its_way_to_complete(
    api: ApiClient, namespace: str, operator: Operator, dashboards: RayDashboards, mode: str
) -> None:
    await api.create(RAYJOBS, namespace, ray_job("demo", submissionMode=mode, shutdownAfterJobFinishes=True))
    status = await reaches(api, namespace, "demo", "Complete")
    assert status["jobStatus"] == "SUCCEEDED"
    assert len(dashboards.submissions) == 1
