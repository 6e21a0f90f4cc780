"""Two operators at once, as when a Lease changes hands too late: they may get in each other's way, never do harm."""

from __future__ import annotations

import pytest

from muster.kube.config import Connection
from muster.kube.resource import JOBS, PODS, RAYCLUSTERS, RAYJOBS
from tests.integration.observed import Observed
from tests.integration.operators import Operator
from tests.integration.ray_dashboard import RayDashboards
from tests.integration.ray_manifests import ray_job
from tests.integration.stand_ins import StandIns

pytest_plugins = ("tests.integration.controller_fixtures",)


@pytest.mark.parametrize("mode", ["K8sJobMode", "HTTPMode"])
async def test_two_operators_make_one_cluster_and_run_the_job_once(
    connection: Connection, seen: Observed, stand_ins: StandIns, dashboards: RayDashboards, mode: str
) -> None:
    async with (
        Operator(connection, seen.namespace, dashboards),
        Operator(connection, seen.namespace, dashboards),
    ):
        manifest = ray_job("demo", submissionMode=mode, shutdownAfterJobFinishes=True)
        await seen.api.create(RAYJOBS, seen.namespace, manifest)
        status = await seen.job_state("demo", "Complete")
        await seen.gone(RAYCLUSTERS, PODS)
    assert (status["jobStatus"], status["succeeded"], status.get("failed") or 0) == ("SUCCEEDED", 1, 0)
    assert len(await stand_ins.all_that_ever_were(RAYCLUSTERS)) == 1
    assert len(await stand_ins.all_that_ever_were(JOBS)) == (1 if mode == "K8sJobMode" else 0)
    assert len(dashboards.runs) == 1
