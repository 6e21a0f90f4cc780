"""Controllers and scheduler together, on nodes with room for one generation of a cluster and no more."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from muster.kube.client import ApiClient
from muster.kube.config import Connection
from muster.kube.errors import NotFound
from muster.kube.resource import PODS, RAYCLUSTERS
from tests.integration.gang_objects import Gangs
from tests.integration.observed import Observed
from tests.integration.operators import Operator, eventually
from tests.integration.ray_dashboard import RayDashboards
from tests.integration.ray_manifests import ray_cluster, template, worker_group
from tests.integration.running_engine import RunningEngine, engine, gangs
from tests.integration.stand_ins import StandIns

__all__ = ["engine", "gangs"]

pytest_plugins = ("tests.integration.controller_fixtures",)


@pytest.fixture
async def muster(
    connection: Connection, engine: RunningEngine, gangs: Gangs, dashboards: RayDashboards, stand_ins: StandIns
) -> AsyncIterator[None]:
    """Run both; pods start once they are bound."""
    stand_ins.holds_back = lambda pod: not pod["spec"].get("nodeName")
    await engine.start()
    async with Operator(connection, gangs.namespace, dashboards, scheduler_name=gangs.scheduler):
        yield


async def finish_going(api: ApiClient, namespace: str) -> None:
    """What kubelets do: confirm that the pods which are to go have gone."""
    for pod in await api.list(PODS, namespace):
        if pod["metadata"].get("deletionTimestamp"):
            try:
                await api.delete(PODS, namespace, pod["metadata"]["name"], grace_seconds=0)
            except NotFound:
                continue


async def bound(seen: Observed) -> dict[str, str]:
    """The UIDs of the pods that have a node, and which."""
    return {pod["metadata"]["uid"]: pod["spec"]["nodeName"] for pod in await seen.pods() if pod["spec"].get("nodeName")}


async def create(seen: Observed, *groups: dict[str, Any], **spec: Any) -> None:
    await seen.api.create(RAYCLUSTERS, seen.namespace, ray_cluster("demo", *groups, **spec))


@pytest.mark.usefixtures("muster")
async def test_a_recreated_cluster_takes_the_place_of_its_former_generation(seen: Observed, gangs: Gangs) -> None:
    for name in ("a", "b", "c"):
        await gangs.node(name, cpu="1")
    await create(seen, worker_group(replicas=2), upgradeStrategy={"type": "Recreate"})
    await seen.cluster_state("demo", "ready")
    old = await bound(seen)
    assert len(old) == 3
    await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", {"spec": {"rayVersion": "2.53.0"}})

    async def again() -> bool:
        await finish_going(seen.api, seen.namespace)
        now = await bound(seen)
        return len(now) == 3 and not now.keys() & old.keys()

    await eventually(again, "three other pods are bound")
    await seen.cluster_state("demo", "ready")


@pytest.mark.usefixtures("muster")
async def test_the_autoscalers_workers_are_placed_as_room_comes(seen: Observed, gangs: Gangs) -> None:
    await gangs.node("a", cpu="1500m")  # the head and its autoscaler
    await gangs.node("b", cpu="1")
    await create(seen, worker_group(replicas=1, minReplicas=1), enableInTreeAutoscaling=True)
    await seen.cluster_state("demo", "ready")
    more = {"spec": {"workerGroupSpecs": [worker_group(replicas=3, minReplicas=1, template=template())]}}
    await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", more)
    for number, name in ((3, "c"), (4, "d")):
        await gangs.node(name, cpu="1")

        async def one_more(wanted: int = number) -> bool:
            return len(await bound(seen)) == wanted

        await eventually(one_more, f"{number} pods are bound")
    await seen.cluster_state("demo", "ready")
