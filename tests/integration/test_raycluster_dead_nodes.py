"""Pods on nodes that do not answer any more are replaced; those on nodes that answer are left to their kubelets."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest

from muster.kube.client import ApiClient
from muster.kube.config import Connection
from muster.kube.resource import NODES, RAYCLUSTERS, SECRETS
from tests.integration.observed import Observed
from tests.integration.operators import Operator, eventually
from tests.integration.ray_dashboard import RayDashboards
from tests.integration.ray_manifests import ray_cluster, template, worker_group
from tests.integration.stand_ins import StandIns, now

pytest_plugins = ("tests.integration.controller_fixtures",)


@pytest.fixture
async def nodes(api: ApiClient) -> AsyncIterator[list[str]]:
    names = [f"node-{uuid.uuid4().hex[:6]}" for _ in range(2)]
    for name in names:
        await api.create(NODES, None, {"metadata": {"name": name}})
        await report(api, name, "True")
    yield names
    for name in names:
        await api.delete(NODES, None, name)


@pytest.fixture
async def operator(
    connection: Connection, seen: Observed, dashboards: RayDashboards, stand_ins: StandIns
) -> AsyncIterator[Operator]:
    async with Operator(connection, seen.namespace, dashboards, dead_node_timeout=2.0) as operator:
        yield operator


async def report(api: ApiClient, node: str, ready: str) -> None:
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": now(), "lastHeartbeatTime": now()}
    await api.patch(NODES, None, node, {"status": {"conditions": [condition]}}, subresource="status")


def on(node: str) -> dict[str, Any]:
    return template(nodeName=node, tolerations=[{"operator": "Exists"}])


async def replaced(seen: Observed, group: str, before: dict[str, Any]) -> None:
    async def another() -> bool:
        found = [pod["metadata"]["uid"] for pod in await seen.pods(group)]
        return len(found) == 1 and found != [before["metadata"]["uid"]]

    await eventually(another, f"another pod of {group}")


async def test_head_and_worker_of_a_dead_node_are_replaced_and_their_neighbour_is_not(
    seen: Observed, nodes: list[str], operator: Operator
) -> None:
    dead, alive = nodes
    cluster = ray_cluster(
        "demo",
        worker_group("there", 1, template=on(dead)),
        worker_group("here", 1, template=on(alive)),
        headGroupSpec={"rayStartParams": {}, "template": on(dead)},
    )
    await seen.api.create(RAYCLUSTERS, seen.namespace, cluster)
    await seen.cluster_state("demo", "ready")
    before = {group: (await seen.pods(group))[0] for group in ("headgroup", "there", "here")}
    await report(seen.api, alive, "False")
    await report(seen.api, dead, "Unknown")
    await replaced(seen, "headgroup", before["headgroup"])
    await replaced(seen, "there", before["there"])
    await seen.event("DeletedHeadPod", f"its node {dead} has not answered")
    await seen.event("DeletedWorkerPod", f"its node {dead} has not answered")
    (neighbour,) = await seen.pods("here")
    assert neighbour["metadata"]["uid"] == before["here"]["metadata"]["uid"]


async def test_what_keeps_new_pods_back_does_not_keep_those_of_a_dead_node(
    seen: Observed, nodes: list[str], operator: Operator
) -> None:
    await seen.api.create(SECRETS, seen.namespace, {"metadata": {"name": "mine"}, "stringData": {"auth_token": "x"}})
    auth = {"mode": "token", "secretName": "mine"}
    cluster = ray_cluster("demo", worker_group(replicas=1, template=on(nodes[0])), authOptions=auth)
    await seen.api.create(RAYCLUSTERS, seen.namespace, cluster)
    await seen.cluster_state("demo", "ready")
    (before,) = await seen.pods("workers")
    await seen.api.delete(SECRETS, seen.namespace, "mine")
    await report(seen.api, nodes[0], "Unknown")
    await seen.event("DeletedWorkerPod", f"its node {nodes[0]} has not answered")
    await seen.event("AuthTokenMissing", "mine")
    await seen.api.create(SECRETS, seen.namespace, {"metadata": {"name": "mine"}, "stringData": {"auth_token": "x"}})
    await replaced(seen, "workers", before)


async def test_a_node_that_was_dead_before_the_operator_started_is_noticed(
    seen: Observed, nodes: list[str], operator: Operator
) -> None:
    cluster = ray_cluster("demo", worker_group(replicas=1, template=on(nodes[0])))
    await seen.api.create(RAYCLUSTERS, seen.namespace, cluster)
    await seen.cluster_state("demo", "ready")
    (before,) = await seen.pods("workers")
    await operator.kill()
    await report(seen.api, nodes[0], "Unknown")
    await operator.start()
    await replaced(seen, "workers", before)
