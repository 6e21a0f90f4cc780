"""The operator beside Kubernetes' own controllers: what they count, collect and run is not played by the tests here."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from muster.app import Component, Operator
from muster.kube.client import ApiClient
from muster.kube.config import load_connection
from muster.kube.errors import NotFound
from muster.kube.resource import (
    JOBS,
    NAMESPACES,
    PODGROUPS,
    PODS,
    RAYCLUSTERS,
    RAYJOBS,
    RESOURCEQUOTAS,
    SECRETS,
    SERVICES,
)
from tests.cluster.control_plane import ControlPlane
from tests.integration.observed import Observed
from tests.integration.operators import eventually
from tests.integration.permissions import account_of_muster
from tests.integration.ray_manifests import ray_cluster, ray_job, template, worker_group
from tests.operator_options import operator_options

REDIS = {"gcsFaultToleranceOptions": {"redisAddress": "redis:6379"}, "authOptions": {"mode": "token"}}
ALL = (RAYCLUSTERS, PODS, SERVICES, JOBS, PODGROUPS, SECRETS)
OPTIONS = operator_options(components=frozenset({Component.CONTROLLERS, Component.SCHEDULER}))

Object = dict[str, Any]


@pytest.fixture
async def seen(full_control_plane: ControlPlane) -> AsyncIterator[Observed]:
    """Give a fresh namespace, with a running operator and a node."""
    account = load_connection(account_of_muster(full_control_plane))
    administrator = load_connection(full_control_plane.kubeconfig)
    node, namespace = (f"{kind}-{uuid.uuid4().hex[:6]}" for kind in ("node", "test"))
    full_control_plane.add_node(node, cpu="64")
    async with ApiClient(administrator) as api, ApiClient(account) as client:
        await api.create(NAMESPACES, None, {"metadata": {"name": namespace, "labels": {"node": node}}})
        task = asyncio.create_task(Operator(OPTIONS, account, client).run())
        try:
            yield Observed(api, namespace)
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            with suppress(NotFound):
                await api.delete(NAMESPACES, None, namespace)


async def node_of(seen: Observed) -> str:
    namespace = await seen.api.get(NAMESPACES, None, seen.namespace)
    return str(namespace["metadata"]["labels"]["node"])


async def states(seen: Observed) -> dict[str, str]:
    found = await seen.all(RAYCLUSTERS)
    return {one["metadata"]["name"]: (one.get("status") or {}).get("state", "") for one in found}


async def test_two_gangs_in_a_quota_for_one_run_one_after_the_other(seen: Observed) -> None:
    quota = {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "4", "requests.cpu": "4"}}}
    await seen.api.create(RESOURCEQUOTAS, seen.namespace, quota)
    await seen.until(RESOURCEQUOTAS, "few", lambda one: one.get("status", {}).get("used"), "the quota is enforced")
    small = {"requests": {"cpu": "500m"}}
    group = worker_group(template=template())
    group["template"]["spec"]["containers"][0]["resources"] = small
    head = template()
    head["spec"]["containers"][0]["resources"] = small
    for name in ("one", "two"):
        # wait-gcs-ready counts in the quota of CPU, too, but is smaller than what it waits in front of.
        cluster = ray_cluster(name, group, headGroupSpec={"rayStartParams": {}, "template": head})
        await seen.api.create(RAYCLUSTERS, seen.namespace, cluster)

    async def one_runs() -> str | None:
        return next((name for name, state in (await states(seen)).items() if state == "ready"), None)

    first = await eventually(one_runs, "one of the two runs")
    (second,) = {"one", "two"} - {first}
    await seen.until(
        RAYCLUSTERS, second, lambda one: "exceeded quota: few" in one["status"].get("reason", ""), "the other is told"
    )

    async def only_the_first_has_pods() -> bool:
        return {pod["metadata"]["labels"]["ray.io/cluster"] for pod in await seen.pods()} == {first}

    await eventually(only_the_first_has_pods, "the other holds no pod")
    await seen.api.delete(RAYCLUSTERS, seen.namespace, first)
    await seen.cluster_state(second, "ready")


async def a_cluster_on_redis(seen: Observed) -> None:
    """A cluster whose pods name their node: no scheduler is there for the cleanup pod, which takes the head's place."""
    there = template(nodeName=await node_of(seen))
    group = worker_group(replicas=1, template=there)
    cluster = ray_cluster("demo", group, headGroupSpec={"rayStartParams": {}, "template": there}, **REDIS)
    await seen.api.create(RAYCLUSTERS, seen.namespace, cluster)
    await seen.cluster_state("demo", "ready")


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
async def test_a_deleted_cluster_on_redis_leaves_nothing(seen: Observed, propagation: str) -> None:
    await a_cluster_on_redis(seen)
    await seen.api.delete(RAYCLUSTERS, seen.namespace, "demo", propagation=propagation)
    job = await seen.until(JOBS, "demo-redis-cleanup", lambda one: True, "the cleanup Job")
    # In the foreground it has an owner only where the garbage collector was done with the cluster before it was made.
    assert propagation == "Foreground" or "ownerReferences" in job["metadata"]
    await seen.gone(RAYCLUSTERS, SECRETS, SERVICES, PODGROUPS)
    await seen.event("CreatedRedisCleanupJob")
    assert await seen.events("ForceDeletedStuckCluster") == []
    assert await seen.events("FailedRedisCleanup") == []
    await seen.gone(*ALL, within=180.0)


async def test_a_namespace_with_a_cluster_on_redis_goes(seen: Observed) -> None:
    await a_cluster_on_redis(seen)
    await seen.api.delete(NAMESPACES, None, seen.namespace)

    async def gone() -> bool:
        return await seen.get(NAMESPACES, seen.namespace) is None

    await eventually(gone, "the namespace is gone")


async def a_job_whose_submitter_has_no_room(seen: Observed, **spec: Any) -> None:
    """A quota for the pods of its cluster, and no more."""
    quota = {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "3"}}}
    await seen.api.create(RESOURCEQUOTAS, seen.namespace, quota)
    await seen.until(RESOURCEQUOTAS, "few", lambda one: one.get("status", {}).get("used"), "the quota is enforced")
    await seen.api.create(RAYJOBS, seen.namespace, ray_job("demo", "run", **spec))
    told = await seen.until(
        RAYJOBS, "demo", lambda one: (one.get("status") or {}).get("reason") == "SubmitterPodRefused", "it is told"
    )
    assert told["status"]["jobDeploymentStatus"] == "Running"
    assert "exceeded quota: few" in told["status"]["message"]
    assert "make room in the quota" in await seen.event("SubmitterPodRefused", "exceeded quota: few")


async def test_a_submitter_whose_pod_is_refused_shows_on_its_job_until_it_has_one(seen: Observed) -> None:
    await a_job_whose_submitter_has_no_room(seen)
    await seen.api.patch(RESOURCEQUOTAS, seen.namespace, "few", {"spec": {"hard": {"pods": "4"}}})
    await seen.until(RAYJOBS, "demo", lambda one: "reason" not in one["status"], "the refusal is taken back", 180.0)


async def test_a_deadline_ends_a_job_whose_submitter_is_refused(seen: Observed) -> None:
    await a_job_whose_submitter_has_no_room(seen)
    await seen.api.patch(RAYJOBS, seen.namespace, "demo", {"spec": {"activeDeadlineSeconds": 1}})
    assert (await seen.job_state("demo", "Failed"))["reason"] == "DeadlineExceeded"


async def test_a_redis_cleanup_job_whose_pod_is_refused_is_told(seen: Observed) -> None:
    await a_cluster_on_redis(seen)
    level = "pod-security.kubernetes.io/enforce"
    await seen.api.patch(NAMESPACES, None, seen.namespace, {"metadata": {"labels": {level: "restricted"}}})
    await seen.api.delete(RAYCLUSTERS, seen.namespace, "demo")
    assert "demo-redis-cleanup" in await seen.event("FailedToCreateRedisCleanupJob", "violates PodSecurity")
