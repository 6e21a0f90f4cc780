"""Writes that fail, or land unseen, where a cluster has a token and its state in a Redis: nothing is left, or twice."""

from __future__ import annotations

import pytest

from muster.kube.resource import JOBS, PODGROUPS, PODS, RAYCLUSTERS, SECRETS, SERVICES
from tests.integration.fault_proxy import Answer, Drop, FaultProxy, LoseAnswer, SpoilAnswer, matching
from tests.integration.faults import Fault
from tests.integration.observed import Observed
from tests.integration.operators import Operator
from tests.integration.ray_dashboard import RayDashboards
from tests.integration.ray_manifests import ray_cluster
from tests.integration.stand_ins import StandIns

pytest_plugins = ("tests.integration.controller_fixtures",)

OPTIONS = {"gcsFaultToleranceOptions": {"redisAddress": "redis:6379"}, "authOptions": {"mode": "token"}}
JOB = "demo-redis-cleanup"


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(LoseAnswer(), id="it lands and nobody is told"),
        pytest.param(SpoilAnswer(), id="it lands and is denied"),
        pytest.param(Drop(), id="it never arrives"),
        pytest.param(Answer(500, "InternalError"), id="500"),
        pytest.param(Answer(409, "Conflict"), id="409"),
    ],
)
@pytest.mark.parametrize(
    ("verb", "path"),
    [("POST", "/secrets$"), ("GET", "/secrets/demo$"), ("POST", "/jobs$"), ("PATCH", "/rayclusters/demo$")],
)
async def test_a_cluster_comes_and_goes_all_the_same(
    proxy: FaultProxy,
    seen: Observed,
    stand_ins: StandIns,
    dashboards: RayDashboards,
    fault: Fault,
    verb: str,
    path: str,
) -> None:
    proxy.inject(fault, when=matching(verb, path), times=2)
    async with Operator(proxy.connection(), seen.namespace, dashboards) as operator:
        await seen.api.create(RAYCLUSTERS, seen.namespace, ray_cluster("demo", **OPTIONS))
        await seen.cluster_state("demo", "ready")
        assert await seen.names(SECRETS) == {"demo"}
        # Once more, now for the write that drops the finalizer.
        proxy.inject(fault, when=matching(verb, path), times=2)
        await seen.api.delete(RAYCLUSTERS, seen.namespace, "demo")
        await seen.until(JOBS, JOB, lambda job: True, "the cleanup Job")
        await operator.kill()
        await operator.start()
        await stand_ins.end_submitter(JOB, succeeded=True)
        await seen.gone(RAYCLUSTERS, PODS, SERVICES, JOBS, PODGROUPS)
    assert len(await stand_ins.all_that_ever_were(JOBS)) == 1
