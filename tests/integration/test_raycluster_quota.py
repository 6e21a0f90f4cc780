"""A ResourceQuota with room for one gang of two: one of them runs, the other waits without a pod for its turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from muster.kube.errors import ApiError
from muster.kube.resource import PODS, RAYCLUSTERS, RAYJOBS, RESOURCEQUOTAS
from tests.integration.observed import Observed
from tests.integration.operators import Operator, eventually
from tests.integration.ray_manifests import cluster_spec, ray_cluster, ray_job, worker_group
from tests.integration.stand_ins import StandIns

pytest_plugins = ("tests.integration.controller_fixtures",)
pytestmark = pytest.mark.usefixtures("operator")

Object = dict[str, Any]


@asynccontextmanager
async def quota(seen: Observed, pods: int) -> AsyncIterator[None]:
    """A quota, and the controller that counts pods which are gone out of it again."""
    spec = {"hard": {"pods": str(pods)}}
    await seen.api.create(RESOURCEQUOTAS, seen.namespace, {"metadata": {"name": "few"}, "spec": spec})

    async def count() -> None:
        while True:
            with suppress(ApiError):
                found = await seen.api.get(RESOURCEQUOTAS, seen.namespace, "few")
                used = str(len(await seen.all(PODS)))
                if (found.get("status") or {}).get("used") != {"pods": used}:
                    version = {"resourceVersion": found["metadata"]["resourceVersion"]}
                    body = {"metadata": version, "status": {**spec, "used": {"pods": used}}}
                    await seen.api.patch(RESOURCEQUOTAS, seen.namespace, "few", body, subresource="status")
            await asyncio.sleep(0.05)

    task = asyncio.create_task(count())
    try:

        async def enforced() -> bool:
            return bool((await seen.all(RESOURCEQUOTAS))[0].get("status"))

        await eventually(enforced, "the quota is enforced")
        yield
    finally:
        task.cancel()


@pytest.fixture(autouse=True)
def whole_gangs(stand_ins: StandIns) -> None:
    """Like the scheduler, start no pod before all three of its cluster are there."""

    def cluster_of(pod: Object) -> str:
        return str(pod["metadata"]["labels"]["ray.io/cluster"])

    def incomplete(pod: Object) -> bool:
        there = [one for one in stand_ins.there(PODS) if cluster_of(one) == cluster_of(pod)]
        return len(there) < 3 and pod["status"]["phase"] == "Pending"

    stand_ins.holds_back = incomplete


async def create(seen: Observed, *clusters: Object) -> None:
    for cluster in clusters:
        await seen.api.create(RAYCLUSTERS, seen.namespace, cluster)


async def ready_ones(seen: Observed) -> list[str]:
    found = await seen.all(RAYCLUSTERS)
    return [one["metadata"]["name"] for one in found if (one.get("status") or {}).get("state") == "ready"]


async def test_of_two_gangs_that_hold_each_other_up_one_runs_and_then_the_other(seen: Observed) -> None:
    async with quota(seen, 4):
        await create(seen, ray_cluster("one"), ray_cluster("two"))
        (first,) = await eventually(lambda: ready_ones(seen), "one of the two runs")
        (second,) = {"one", "two"} - {first}

        async def waits_without_a_pod() -> bool:
            cluster = await seen.get(RAYCLUSTERS, second)
            reason = ((cluster or {}).get("status") or {}).get("reason", "")
            clusters = {pod["metadata"]["labels"]["ray.io/cluster"] for pod in await seen.pods()}
            return reason.startswith("forbidden: exceeded quota: few, requested: pods=1") and clusters == {first}

        await eventually(waits_without_a_pod, "the other waits, holds no pod and says why")
        await seen.event("QuotaExceeded", "exceeded quota: few")
        await seen.api.delete(RAYCLUSTERS, seen.namespace, first)
        await seen.cluster_state(second, "ready")


async def test_two_jobs_run_one_after_the_other_and_the_one_that_waits_says_why(seen: Observed) -> None:
    async with quota(seen, 4):
        jobs = ("one", "two")
        for name in jobs:
            job = ray_job(name, submissionMode="HTTPMode", shutdownAfterJobFinishes=True)
            await seen.api.create(RAYJOBS, seen.namespace, job)

        async def told() -> bool:
            messages = [(job.get("status") or {}).get("message", "") for job in await seen.all(RAYJOBS)]
            return any("exceeded quota: few" in message for message in messages)

        await eventually(told, "the job that waits tells the quota's message")
        for name in jobs:
            await seen.job_state(name, "Complete")


async def test_a_gang_that_never_fits_goes_when_its_user_makes_it_smaller(seen: Observed, stand_ins: StandIns) -> None:
    stand_ins.holds_back = lambda pod: len(stand_ins.there(PODS)) < 3 or not smaller
    smaller: Object = {}
    async with quota(seen, 3):
        await create(seen, ray_cluster("demo", worker_group(replicas=5)))
        await seen.event("QuotaExceeded")

        async def tried_again() -> bool:
            return len(await stand_ins.all_that_ever_were(PODS)) > 8

        await eventually(tried_again, "it tries again and again")
        assert len(await seen.events("CreatedWorkerPod")) == 1
        assert len(await seen.events("FailedToCreateWorkerPod")) == 1
        smaller["spec"] = {"workerGroupSpecs": [worker_group(replicas=2)]}
        await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", smaller)
        status = await seen.cluster_state("demo", "ready")
    assert not status.get("reason")


async def test_a_gang_that_runs_gives_nothing_back(seen: Observed, operator: Operator) -> None:
    async with quota(seen, 4):
        await create(seen, ray_cluster("demo"))
        await seen.cluster_state("demo", "ready")
        before = {pod["metadata"]["uid"] for pod in await seen.pods()}
        more = {"spec": {"workerGroupSpecs": [worker_group(replicas=5)]}}
        await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", more)
        await seen.event("FailedToCreateWorkerPod", "exceeded quota")
        await operator.kill()
        await operator.start()
        await seen.until(
            RAYCLUSTERS, "demo", lambda one: "exceeded quota" in one["status"].get("reason", ""), "is told"
        )
        assert before <= {pod["metadata"]["uid"] for pod in await seen.pods()}
        assert await seen.events("QuotaExceeded") == []


async def test_with_the_autoscaler_the_least_members_come_before_all_others(
    seen: Observed, stand_ins: StandIns
) -> None:
    def incomplete(pod: Object) -> bool:
        return len([one for one in stand_ins.there(PODS) if one["metadata"]["labels"]["ray.io/group"] == "must"]) < 2

    stand_ins.holds_back = incomplete
    groups = (worker_group("many", 5), worker_group("must", 2, minReplicas=2))
    version = {"autoscalerOptions": {"version": "v1"}}
    async with quota(seen, 4):
        await create(seen, ray_cluster("demo", *groups, enableInTreeAutoscaling=True, **version))
        await seen.event("QuotaExceeded")
        await seen.cluster_state("demo", "ready")
        assert len(await seen.pods("must")) == 2


async def test_a_restart_in_between_changes_nothing(seen: Observed, operator: Operator) -> None:
    async with quota(seen, 4):
        await create(seen, ray_cluster("one"), ray_cluster("two"))
        for _ in range(3):
            await seen.event("QuotaExceeded")
            await operator.kill()
            await operator.start()
        assert await eventually(lambda: ready_ones(seen), "one of the two runs")


def test_the_manifests_are_gangs_of_three() -> None:
    groups = cluster_spec()["workerGroupSpecs"]
    assert 1 + sum(group["replicas"] for group in groups) == 3
