"""RayJobs that run on a cluster which others made, on a real API server: it is used, and never touched."""

from __future__ import annotations

from typing import Any

import pytest

from muster.controllers.rayjob import teardown
from muster.kube.resource import JOBS, PODGROUPS, RAYCLUSTERS, RAYJOBS, SERVICES
from tests.integration.observed import Observed
from tests.integration.operators import eventually
from tests.integration.ray_dashboard import RayDashboards
from tests.integration.ray_manifests import ray_cluster, ray_job

pytest_plugins = ("tests.integration.controller_fixtures",)
pytestmark = pytest.mark.usefixtures("operator")

MODES = pytest.mark.parametrize("mode", ["K8sJobMode", "HTTPMode"])


async def shared(seen: Observed, name: str = "shared") -> dict[str, Any]:
    """A cluster that stands alone and is ready."""
    await seen.api.create(RAYCLUSTERS, seen.namespace, ray_cluster(name))
    await seen.cluster_state(name, "ready")
    return await seen.get(RAYCLUSTERS, name) or {}


async def create(seen: Observed, entrypoint: str = "run", cluster: str = "shared", **spec: Any) -> None:
    manifest = ray_job("demo", entrypoint, clusterSelector={"ray.io/cluster": cluster}, **spec)
    del manifest["spec"]["rayClusterSpec"]
    await seen.api.create(RAYJOBS, seen.namespace, manifest)


async def edit(seen: Observed, **spec: Any) -> None:
    await seen.api.patch(RAYJOBS, seen.namespace, "demo", {"spec": spec})


async def runs(seen: Observed) -> dict[str, Any]:
    job = await seen.until(
        RAYJOBS, "demo", lambda job: (job.get("status") or {}).get("jobStatus") == "RUNNING", "the job runs in Ray"
    )
    return dict(job["status"])


async def untouched(seen: Observed, before: dict[str, Any]) -> None:
    """The cluster and its gang are as they were."""
    after = await seen.get(RAYCLUSTERS, before["metadata"]["name"])
    assert after is not None
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert not after["metadata"].get("deletionTimestamp")
    assert after["spec"] == before["spec"]
    group = await seen.get(PODGROUPS, f"ray-{before['metadata']['name']}-pg")
    assert group is not None
    assert group["spec"]["minMember"] == 3


@MODES
@pytest.mark.parametrize("entrypoint", ["succeed", "fail"])
async def test_a_job_runs_on_the_selected_cluster_and_leaves_it_as_it_was(
    seen: Observed, dashboards: RayDashboards, mode: str, entrypoint: str
) -> None:
    before = await shared(seen)
    await create(seen, entrypoint, submissionMode=mode, shutdownAfterJobFinishes=True)
    status = await seen.job_state("demo", "Complete" if entrypoint == "succeed" else "Failed")
    assert status["rayClusterName"] == "shared"
    assert dashboards.submissions == [("shared-head-svc", status["jobId"])]
    await seen.until(RAYJOBS, "demo", lambda job: not job["metadata"].get("finalizers"), "it is cleaned up after")
    await untouched(seen, before)
    assert await seen.names(PODGROUPS) == {"ray-shared-pg"}
    assert "demo-head-svc" not in await seen.names(SERVICES)


async def test_the_submitter_waits_for_no_gang(seen: Observed) -> None:
    await shared(seen)
    await create(seen)
    await seen.job_state("demo", "Running")
    (submitter,) = await seen.all(JOBS)
    pod = submitter["spec"]["template"]
    assert not pod["spec"].get("schedulingGates")
    assert pod["spec"].get("schedulerName") == "default-scheduler"
    assert "scheduling.k8s.io/group-name" not in (pod["metadata"].get("annotations") or {})


async def test_a_job_waits_for_the_cluster_that_it_names_and_says_so(seen: Observed) -> None:
    await create(seen, "succeed")
    note = await seen.event("RayClusterNotFound", "shared")
    assert "spec.clusterSelector" in note
    await seen.until(
        RAYJOBS, "demo", lambda job: "shared" in job["status"].get("message", ""), "the status says it too"
    )
    await shared(seen)
    await seen.job_state("demo", "Complete")


async def test_a_job_may_turn_to_another_cluster_while_it_waits(seen: Observed) -> None:
    await create(seen, "succeed", cluster="mistyped")
    await seen.event("RayClusterNotFound", "mistyped")
    before = await shared(seen)
    await edit(seen, clusterSelector={"ray.io/cluster": "shared"})
    status = await seen.job_state("demo", "Complete")
    assert (status["rayClusterName"], status.get("failed") or 0) == ("shared", 0)
    await untouched(seen, before)


async def test_suspending_stops_the_job_and_leaves_the_cluster(seen: Observed, dashboards: RayDashboards) -> None:
    before = await shared(seen)
    await create(seen)
    first = await runs(seen)
    await edit(seen, suspend=True)
    await seen.job_state("demo", "Suspended")
    assert dashboards.stops == [first["jobId"]]
    assert not await seen.names(JOBS)
    await untouched(seen, before)
    await edit(seen, suspend=False)
    assert (await runs(seen))["jobId"] != first["jobId"]


async def test_a_suspension_does_not_wait_for_ever_for_a_dashboard(
    seen: Observed, dashboards: RayDashboards, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(teardown, "STOP_SECONDS", 2.0)
    before = await shared(seen)
    await create(seen, submissionMode="HTTPMode")
    job_id = (await runs(seen))["jobId"]
    dashboards.down = True
    await edit(seen, suspend=True)
    suspended = await seen.job_state("demo", "Suspended")
    assert f"ray job stop {job_id}" in suspended["message"]
    assert "shared" in await seen.event("RayJobNotStopped", job_id)
    await untouched(seen, before)
    dashboards.down = False
    await edit(seen, suspend=False)
    status = await runs(seen)
    assert status["jobId"] != job_id
    assert "may still run" not in status.get("message", "")


async def test_a_suspension_that_waits_for_a_dashboard_says_so(seen: Observed, dashboards: RayDashboards) -> None:
    await shared(seen)
    await create(seen, submissionMode="HTTPMode")
    status = await runs(seen)
    dashboards.down = True
    await edit(seen, suspend=True)
    await seen.until(
        RAYJOBS,
        "demo",
        lambda job: job["status"]["jobDeploymentStatus"] == "Suspending" and "shared" in job["status"]["message"],
        "the status says what it waits for",
    )
    dashboards.down = False
    assert "message" not in await seen.job_state("demo", "Suspended")
    assert dashboards.stops == [status["jobId"]]


async def test_a_job_whose_id_could_not_be_used_again_is_not_suspended(
    seen: Observed, dashboards: RayDashboards
) -> None:
    await shared(seen)
    await create(seen, jobId="mine")
    await runs(seen)
    await edit(seen, suspend=True)
    await seen.event("InvalidRayJobSpec", "spec.suspend")
    run = dashboards.run_of("mine")
    looks = run.looks

    async def looked_on() -> bool:
        return run.looks > looks + 2

    await eventually(looked_on, "the job is looked at as before")
    assert not dashboards.stops


async def test_a_deleted_job_is_stopped_once_its_dashboard_answers(seen: Observed, dashboards: RayDashboards) -> None:
    before = await shared(seen)
    await create(seen, submissionMode="HTTPMode")
    status = await runs(seen)
    dashboards.down = True
    await seen.api.delete(RAYJOBS, seen.namespace, "demo")
    await seen.until(RAYJOBS, "demo", lambda job: job["metadata"].get("deletionTimestamp"), "it is being deleted")
    dashboards.down = False
    await seen.gone(RAYJOBS)
    assert dashboards.stops == [status["jobId"]]
    await untouched(seen, before)


@pytest.mark.parametrize(
    ("change", "state"),
    [({"activeDeadlineSeconds": 1}, "Failed"), ({"suspend": True}, "Suspending")],
    ids=["failed", "being suspended"],
)
async def test_a_job_that_is_deleted_before_ray_could_stop_it_is_stopped_yet(
    seen: Observed, dashboards: RayDashboards, change: dict[str, Any], state: str
) -> None:
    before = await shared(seen)
    await create(seen, submissionMode="HTTPMode")
    status = await runs(seen)
    dashboards.down = True
    await edit(seen, **change)
    await seen.job_state("demo", state)
    await seen.api.delete(RAYJOBS, seen.namespace, "demo")
    await seen.until(RAYJOBS, "demo", lambda job: job["metadata"].get("deletionTimestamp"), "it is being deleted")
    dashboards.down = False
    await seen.gone(RAYJOBS)
    assert dashboards.stops == [status["jobId"]]
    await untouched(seen, before)


async def test_a_deadline_stops_the_job_on_the_selected_cluster(seen: Observed, dashboards: RayDashboards) -> None:
    before = await shared(seen)
    await create(seen, shutdownAfterJobFinishes=True)
    status = await runs(seen)
    await edit(seen, activeDeadlineSeconds=1)
    assert (await seen.job_state("demo", "Failed"))["reason"] == "DeadlineExceeded"

    async def stopped() -> bool:
        return dashboards.stops == [status["jobId"]]

    await eventually(stopped, "the job is stopped in Ray")
    await untouched(seen, before)


async def test_a_job_whose_selected_cluster_goes_away_fails(seen: Observed) -> None:
    await shared(seen)
    await create(seen, submissionMode="InteractiveMode")
    await seen.job_state("demo", "Waiting")
    await seen.api.delete(RAYCLUSTERS, seen.namespace, "shared")
    assert (await seen.job_state("demo", "Failed"))["reason"] == "RayClusterLost"
    assert "ray-demo-pg" not in await seen.names(PODGROUPS)


async def turn_to_a_cluster_of_its_own(seen: Observed, **spec: Any) -> None:
    own = ray_job("demo", "run")["spec"]["rayClusterSpec"]
    await edit(seen, clusterSelector=None, rayClusterSpec=own, **spec)


async def test_a_job_that_runs_goes_on_where_it_runs_whatever_the_spec_says_since(
    seen: Observed, dashboards: RayDashboards
) -> None:
    before = await shared(seen)
    await create(seen, submissionMode="HTTPMode")
    status = await runs(seen)
    run = dashboards.run_of(status["jobId"])
    looks = run.looks
    await turn_to_a_cluster_of_its_own(seen, backoffLimit=1)

    async def looked_on() -> bool:
        return run.looks > looks + 3

    await eventually(looked_on, "the job is looked at as before")
    run.end("SUCCEEDED")
    assert (await seen.job_state("demo", "Complete"))["jobId"] == status["jobId"]
    assert await seen.names(PODGROUPS) == {"ray-shared-pg"}
    assert dashboards.submissions == [("shared-head-svc", status["jobId"])]
    await untouched(seen, before)


async def test_suspending_stops_the_job_also_when_the_spec_means_another_cluster_since(
    seen: Observed, dashboards: RayDashboards
) -> None:
    before = await shared(seen)
    await create(seen, submissionMode="HTTPMode")
    status = await runs(seen)
    await turn_to_a_cluster_of_its_own(seen, suspend=True, shutdownAfterJobFinishes=True)
    await seen.job_state("demo", "Suspended")
    assert dashboards.stops == [status["jobId"]]
    await untouched(seen, before)
