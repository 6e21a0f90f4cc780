"""What is deleted after the end of a RayJob, on a real API server."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from muster.controllers.clock import seconds_of
from muster.controllers.deletion_defaults import DeletionDefaults
from muster.kube.config import Connection
from muster.kube.resource import JOBS, PODGROUPS, PODS, RAYCLUSTERS, RAYJOBS
from tests.integration.observed import Observed
from tests.integration.operators import Operator, eventually
from tests.integration.ray_dashboard import RayDashboards
from tests.integration.ray_manifests import ray_cluster, ray_job
from tests.integration.stand_ins import StandIns

pytest_plugins = ("tests.integration.controller_fixtures",)


def rule(policy: str, ttl: int = 0, **condition: str) -> dict[str, Any]:
    return {"policy": policy, "condition": {"ttlSeconds": ttl, **condition}}


async def create(seen: Observed, entrypoint: str, *rules: dict[str, Any], **spec: Any) -> None:
    if rules:
        spec["deletionStrategy"] = {"deletionRules": list(rules)}
    await seen.api.create(RAYJOBS, seen.namespace, ray_job("demo", entrypoint, **spec))


async def job(seen: Observed) -> dict[str, Any]:
    found = await seen.get(RAYJOBS, "demo")
    assert found is not None
    return found


async def edit(seen: Observed, **spec: Any) -> None:
    await seen.api.patch(RAYJOBS, seen.namespace, "demo", {"spec": spec})


@pytest.mark.usefixtures("operator")
async def test_a_failed_job_goes_in_stages(seen: Observed) -> None:
    stages = [rule("DeleteWorkers", 0, jobStatus="FAILED"), rule("DeleteCluster", 4, jobStatus="FAILED")]
    await create(seen, "fail", rule("DeleteCluster", 0, jobStatus="SUCCEEDED"), *stages)
    status = await seen.job_state("demo", "Failed")

    async def only_the_head() -> bool:
        groups = [pod["metadata"]["labels"]["ray.io/group"] for pod in await seen.pods()]
        return groups == ["headgroup"]

    await eventually(only_the_head, "only the head is left")
    await seen.until(PODGROUPS, "ray-demo-pg", lambda pg: pg["spec"]["minMember"] == 1, "the gang is the head")
    (cluster,) = await seen.all(RAYCLUSTERS)
    assert [group["suspend"] for group in cluster["spec"]["workerGroupSpecs"]] == [True]
    await seen.gone(RAYCLUSTERS, PODS)
    assert time.time() >= (seconds_of(status["endTime"]) or 0) + 4
    await seen.until(PODGROUPS, "ray-demo-pg", lambda pg: not pg["spec"].get("minMember"), "the gang holds nothing")
    assert (await job(seen))["status"]["jobDeploymentStatus"] == "Failed"


@pytest.mark.usefixtures("operator")
async def test_a_job_may_delete_itself_with_everything(seen: Observed) -> None:
    await create(seen, "succeed", rule("DeleteSelf", 0, jobStatus="SUCCEEDED"))
    await seen.until(RAYJOBS, "demo", lambda job: True, "it is there")
    await seen.gone(RAYJOBS, RAYCLUSTERS, PODS, JOBS, PODGROUPS)


@pytest.mark.usefixtures("operator")
async def test_a_deadline_counts_as_a_failure_where_no_rule_names_it(seen: Observed, dashboards: RayDashboards) -> None:
    rules = [rule("DeleteCluster", 0, jobStatus=status) for status in ("SUCCEEDED", "FAILED")]
    await create(seen, "run", *rules, submissionMode="HTTPMode")
    await seen.until(RAYJOBS, "demo", lambda job: (job.get("status") or {}).get("jobStatus") == "RUNNING", "it runs")
    await edit(seen, activeDeadlineSeconds=1)
    await seen.job_state("demo", "Failed")
    await seen.gone(RAYCLUSTERS, PODS)


@pytest.mark.usefixtures("operator")
async def test_an_end_without_a_rule_is_told(seen: Observed) -> None:
    await create(seen, "fail", rule("DeleteCluster", 0, jobStatus="SUCCEEDED"))
    status = await seen.job_state("demo", "Failed")
    note = await seen.event("NoDeletionRule", "spec.deletionStrategy.deletionRules")
    assert "FAILED" in note
    assert await seen.names(RAYCLUSTERS) == {status["rayClusterName"]}


@pytest.mark.usefixtures("operator")
async def test_the_older_form_deletes_by_success_and_failure(seen: Observed) -> None:
    strategy = {"onSuccess": {"policy": "DeleteCluster"}, "onFailure": {"policy": "DeleteNone"}}
    await create(seen, "succeed", deletionStrategy=strategy)
    await seen.job_state("demo", "Complete")
    await seen.gone(RAYCLUSTERS, PODS)


@pytest.mark.usefixtures("operator")
async def test_a_strategy_that_can_not_be_destroys_nothing_until_it_is_corrected(
    seen: Observed, dashboards: RayDashboards
) -> None:
    await create(seen, "run", rule("DeleteCluster", 0, jobStatus="SUCCEEDED"))
    status = (
        await seen.until(RAYJOBS, "demo", lambda job: (job.get("status") or {}).get("jobStatus") == "RUNNING", "runs")
    )["status"]
    await edit(seen, shutdownAfterJobFinishes=True)
    await seen.event("InvalidRayJobSpec", "deletionStrategy")
    dashboards.run_of(status["jobId"]).end("SUCCEEDED")
    await seen.job_state("demo", "Complete")
    await seen.until(RAYJOBS, "demo", lambda job: not job["metadata"].get("finalizers"), "it is cleaned up after")
    assert await seen.names(RAYCLUSTERS) == {status["rayClusterName"]}
    await edit(seen, shutdownAfterJobFinishes=None)
    await seen.gone(RAYCLUSTERS)


@pytest.mark.usefixtures("operator")
async def test_a_job_on_a_selected_cluster_deletes_only_itself(seen: Observed) -> None:
    await seen.api.create(RAYCLUSTERS, seen.namespace, ray_cluster("shared"))
    manifest = ray_job("demo", clusterSelector={"ray.io/cluster": "shared"})
    del manifest["spec"]["rayClusterSpec"]
    manifest["spec"]["deletionStrategy"] = {"deletionRules": [rule("DeleteSelf", 0, jobStatus="SUCCEEDED")]}
    await seen.api.create(RAYJOBS, seen.namespace, manifest)
    await seen.gone(RAYJOBS, JOBS)
    assert await seen.names(RAYCLUSTERS) == {"shared"}
    assert len(await seen.pods()) == 3


@pytest.fixture
async def strict(
    connection: Connection, namespace: str, dashboards: RayDashboards, stand_ins: StandIns
) -> AsyncIterator[Operator]:
    """Give an operator whose administrator has said something about finished jobs."""
    defaults = DeletionDefaults(delete_jobs=True, cluster_ttl=1)
    async with Operator(connection, namespace, dashboards, deletion_defaults=defaults) as operator:
        yield operator


@pytest.mark.usefixtures("strict")
async def test_an_administrator_sets_what_happens_where_nobody_says_anything(seen: Observed) -> None:
    await create(seen, "succeed")
    await seen.job_state("demo", "Complete")
    await seen.gone(RAYCLUSTERS)
    assert await job(seen)


@pytest.mark.usefixtures("strict")
async def test_an_administrator_may_have_the_jobs_deleted_with_their_clusters(seen: Observed) -> None:
    await create(seen, "succeed", shutdownAfterJobFinishes=True)
    await seen.gone(RAYJOBS, RAYCLUSTERS, PODS, JOBS)


@pytest.mark.usefixtures("operator")
async def test_a_job_that_can_not_be_stopped_for_what_its_specs_have_become_leaves_no_cluster(seen: Observed) -> None:
    await create(seen, "run", shutdownAfterJobFinishes=True, submissionMode="HTTPMode")
    await seen.job_state("demo", "Running")
    (cluster,) = await seen.all(RAYCLUSTERS)
    twice = [*cluster["spec"]["workerGroupSpecs"], *cluster["spec"]["workerGroupSpecs"]]
    change = {"spec": {"workerGroupSpecs": twice}}
    await seen.api.patch(RAYCLUSTERS, seen.namespace, cluster["metadata"]["name"], change)
    await edit(seen, rayClusterSpec=None, activeDeadlineSeconds=1)
    await seen.job_state("demo", "Failed")
    await seen.gone(RAYCLUSTERS, PODS)
