"""Writes that fail, or land without an answer: the cluster comes about all the same, and no pod is made twice."""

from __future__ import annotations

import pytest

from muster.kube.client import ApiClient
from muster.kube.config import Connection
from muster.kube.resource import PODS, RAYCLUSTERS, SERVICES
from tests.integration.fault_proxy import Answer, Drop, FaultProxy, LoseAnswer, SpoilAnswer, matching
from tests.integration.faults import Fault
from tests.integration.observed import Observed
from tests.integration.operators import Operator, eventually
from tests.integration.ray_dashboard import RayDashboards
from tests.integration.ray_manifests import ray_cluster, worker_group
from tests.integration.stand_ins import StandIns

pytest_plugins = ("tests.integration.controller_fixtures",)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(LoseAnswer(), id="it lands and nobody is told"),
        pytest.param(SpoilAnswer(), id="it lands and is denied"),
        pytest.param(Drop(), id="it never arrives"),
        pytest.param(Answer(500, "InternalError"), id="500"),
        pytest.param(Answer(429, "TooManyRequests", retry_after=1), id="429"),
        pytest.param(Answer(409, "Conflict"), id="409"),
        pytest.param(Answer(403, "Forbidden", "exceeded quota"), id="403"),
    ],
)
@pytest.mark.parametrize("what", ["pods", "services", "podgroups"])
async def test_a_create_that_goes_wrong_is_made_up_for_once(
    proxy: FaultProxy, seen: Observed, stand_ins: StandIns, dashboards: RayDashboards, fault: Fault, what: str
) -> None:
    injection = proxy.inject(fault, when=matching("POST", f"/{what}$"), times=2)
    async with Operator(proxy.connection(), seen.namespace, dashboards):
        await seen.api.create(RAYCLUSTERS, seen.namespace, ray_cluster("demo"))
        status = await seen.cluster_state("demo", "ready")
    assert injection.hits == 2 or isinstance(fault, LoseAnswer | SpoilAnswer)
    assert not status.get("reason")
    assert len(await seen.pods()) == 3
    assert len(await stand_ins.all_that_ever_were(PODS)) == 3
    assert len(await stand_ins.all_that_ever_were(SERVICES)) == 1


async def test_a_delete_whose_answer_is_lost_takes_no_second_pod(
    proxy: FaultProxy, seen: Observed, stand_ins: StandIns, dashboards: RayDashboards
) -> None:
    async with Operator(proxy.connection(), seen.namespace, dashboards):
        await seen.api.create(RAYCLUSTERS, seen.namespace, ray_cluster("demo", worker_group(replicas=3)))
        await seen.cluster_state("demo", "ready")
        injection = proxy.inject(LoseAnswer(), when=matching("DELETE", "/pods/"), times=1)
        fewer = {"spec": {"workerGroupSpecs": [worker_group(replicas=2)]}}
        await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", fewer)

        async def two_are_left() -> bool:
            return injection.hits == 1 and len(await seen.pods("workers")) == 2

        await eventually(two_are_left, "two workers are left")
        await seen.until(
            RAYCLUSTERS,
            "demo",
            lambda one: one["status"]["desiredWorkerReplicas"] == 2 and not one["status"].get("reason"),
            "the cluster has come to rest",
        )
    assert len(await seen.pods("workers")) == 2
    assert len(await stand_ins.all_that_ever_were(PODS)) == 4


async def test_a_refused_watch_comes_back(
    connection: Connection, api: ApiClient, proxy: FaultProxy, seen: Observed, stand_ins: StandIns
) -> None:
    """kopf gives up when its credentials are refused; the watch on the custom resources starts again."""
    refused = proxy.inject(Answer(401, "Unauthorized"), when=matching("GET", "/rayclusters"), times=6)
    async with RayDashboards().serve() as dashboards, Operator(proxy.connection(), seen.namespace, dashboards):
        await seen.api.create(RAYCLUSTERS, seen.namespace, ray_cluster("demo"))
        await seen.cluster_state("demo", "ready")
    assert refused.hits == 6
