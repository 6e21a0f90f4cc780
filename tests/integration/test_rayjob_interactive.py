"""RayJobs in InteractiveMode, on a real API server: the user submits, and says which job counts."""

from __future__ import annotations

from typing import Any

import pytest

from muster.kube.resource import JOBS, PODGROUPS, PODS, RAYCLUSTERS, RAYJOBS, SERVICES
from muster.ray.job_info import Submission
from muster.ray.jobs_api import RayJobsClient
from tests.integration.observed import Observed
from tests.integration.operators import eventually
from tests.integration.ray_dashboard import RayDashboards
from tests.integration.ray_manifests import ray_job

pytest_plugins = ("tests.integration.controller_fixtures",)
pytestmark = pytest.mark.usefixtures("operator")


async def begin(seen: Observed, **spec: Any) -> dict[str, Any]:
    """Create the job and wait until it waits for its user; its status."""
    manifest = ray_job("demo", submissionMode="InteractiveMode", **spec)
    await seen.api.create(RAYJOBS, seen.namespace, manifest)
    return await seen.job_state("demo", "Waiting")


async def edit(seen: Observed, **spec: Any) -> None:
    await seen.api.patch(RAYJOBS, seen.namespace, "demo", {"spec": spec})


async def submit(dashboard: str, job_id: str, entrypoint: str = "run") -> None:
    """What the user does by hand."""
    async with RayJobsClient(f"http://{dashboard}") as ray:
        await ray.submit(Submission(job_id, entrypoint))


async def test_the_job_that_the_user_submits_and_names_is_followed_to_its_end(
    seen: Observed, dashboards: RayDashboards
) -> None:
    status = await begin(seen, shutdownAfterJobFinishes=True)
    assert not status.get("jobId")
    assert status["dashboardURL"].endswith(f"{status['rayClusterName']}-head-svc")
    assert "spec.jobId" in status["message"]
    await submit(status["dashboardURL"], "mine")
    await edit(seen, jobId="mine")
    await seen.until(RAYJOBS, "demo", lambda job: job["status"].get("jobStatus") == "RUNNING", "the job is followed")
    assert "demo-head-svc" in await seen.names(SERVICES)
    dashboards.run_of("mine").end("SUCCEEDED")
    status = await seen.job_state("demo", "Complete")
    assert (status["jobId"], status["jobStatus"]) == ("mine", "SUCCEEDED")
    assert [submission for _, submission in dashboards.submissions] == ["mine"]
    assert not await seen.names(JOBS)
    await seen.gone(RAYCLUSTERS, PODS)


async def test_an_id_that_ray_does_not_know_is_told_and_can_be_corrected(
    seen: Observed, dashboards: RayDashboards
) -> None:
    status = await begin(seen)
    await edit(seen, jobId="mien")
    await seen.until(RAYJOBS, "demo", lambda job: "no job mien" in job["status"].get("message", ""), "it is told")
    await submit(status["dashboardURL"], "mine", "succeed")
    await edit(seen, jobId="mine")
    assert (await seen.job_state("demo", "Complete"))["jobId"] == "mine"
    assert len(dashboards.submissions) == 1


async def test_an_id_that_ray_can_not_have_is_told_and_not_followed(seen: Observed, dashboards: RayDashboards) -> None:
    status = await begin(seen)
    await edit(seen, jobId="x" * 70_000)
    await seen.until(RAYJOBS, "demo", lambda job: "spec.jobId: has 70000" in job["status"]["message"], "it is told")
    assert (await seen.job_state("demo", "Waiting")).get("jobId") is None
    await submit(status["dashboardURL"], "mine", "succeed")
    await edit(seen, jobId="mine")
    assert (await seen.job_state("demo", "Complete"))["jobId"] == "mine"


async def test_a_job_that_waits_for_its_user_can_be_suspended_and_resumed(seen: Observed) -> None:
    first = await begin(seen, shutdownAfterJobFinishes=True)
    await edit(seen, suspend=True)
    status = await seen.job_state("demo", "Suspended")
    assert not status.get("rayClusterName")
    await seen.gone(RAYCLUSTERS, PODS)
    await seen.until(PODGROUPS, "ray-demo-pg", lambda pg: not pg["spec"].get("minMember"), "the gang holds nothing")
    await edit(seen, suspend=False)
    assert (await seen.job_state("demo", "Waiting"))["rayClusterName"] != first["rayClusterName"]


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ("activeDeadlineSeconds", "DeadlineExceeded"),
        ("preRunningDeadlineSeconds", "PreRunningDeadlineExceeded"),
    ],
)
async def test_no_user_is_waited_for_beyond_a_deadline(seen: Observed, field: str, reason: str) -> None:
    await begin(seen)
    await edit(seen, **{field: 1})
    assert (await seen.job_state("demo", "Failed"))["reason"] == reason


async def test_a_cluster_lost_while_its_user_is_waited_for_fails_the_job(seen: Observed) -> None:
    status = await begin(seen)
    await seen.api.delete(RAYCLUSTERS, seen.namespace, status["rayClusterName"])
    assert (await seen.job_state("demo", "Failed"))["reason"] == "RayClusterLost"


async def test_a_job_whose_mode_is_changed_while_it_waits_is_handed_over(
    seen: Observed, dashboards: RayDashboards
) -> None:
    await begin(seen)
    await edit(seen, submissionMode="HTTPMode")
    status = await seen.job_state("demo", "Complete")
    assert [submission for _, submission in dashboards.submissions] == [status["jobId"]]


async def test_a_deleted_job_takes_the_users_job_and_everything_else_with_it(
    seen: Observed, dashboards: RayDashboards
) -> None:
    status = await begin(seen)
    await submit(status["dashboardURL"], "mine")
    await edit(seen, jobId="mine")
    await seen.until(RAYJOBS, "demo", lambda job: job["status"].get("jobStatus") == "RUNNING", "the job is followed")
    await seen.api.delete(RAYJOBS, seen.namespace, "demo")
    await seen.gone(RAYJOBS, RAYCLUSTERS, PODS, PODGROUPS, SERVICES)
    assert dashboards.stops == ["mine"]


async def test_a_bad_edit_while_the_user_is_waited_for_is_told_and_changes_nothing(
    seen: Observed, dashboards: RayDashboards
) -> None:
    status = await begin(seen)
    await edit(seen, runtimeEnvYAML="a: [1")
    await seen.event("InvalidRayJobSpec", "runtimeEnvYAML")
    await submit(status["dashboardURL"], "mine", "succeed")
    await edit(seen, jobId="mine")

    async def complete() -> bool:
        job = await seen.get(RAYJOBS, "demo")
        return job is not None and job["status"]["jobDeploymentStatus"] == "Complete"

    await eventually(complete, "the job is followed to its end all the same")
    assert await seen.names(RAYCLUSTERS) == {status["rayClusterName"]}
