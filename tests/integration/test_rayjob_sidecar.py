"""RayJobs in SidecarMode, on a real API server. The test does what the container in the head pod would."""

from __future__ import annotations

from typing import Any

import pytest

from muster.kube.resource import JOBS, PODGROUPS, PODS, RAYCLUSTERS, RAYJOBS
from muster.ray.job_info import Submission
from muster.ray.jobs_api import RayJobsClient
from tests.integration.observed import Observed
from tests.integration.operators import eventually
from tests.integration.ray_dashboard import RayDashboards
from tests.integration.ray_manifests import ray_job
from tests.integration.stand_ins import StandIns

pytest_plugins = ("tests.integration.controller_fixtures",)
pytestmark = pytest.mark.usefixtures("operator")

NAME = "ray-job-submitter"


async def create(seen: Observed, entrypoint: str = "run", **spec: Any) -> None:
    await seen.api.create(RAYJOBS, seen.namespace, ray_job("demo", entrypoint, submissionMode="SidecarMode", **spec))


async def head(seen: Observed) -> dict[str, Any]:
    """The head pod, as soon as there is one."""

    async def found() -> dict[str, Any] | None:
        return next(iter(await seen.pods("headgroup")), None)

    return await eventually(found, "a head pod")


def submitter(pod: dict[str, Any]) -> dict[str, Any]:
    (container,) = [one for one in pod["spec"]["containers"] if one["name"] == NAME]
    return dict(container)


async def submit(seen: Observed, dashboards: RayDashboards) -> str:
    """What `muster submit` does in the head pod; the job's id."""
    pod = await head(seen)
    env = {variable["name"]: variable.get("value") for variable in submitter(pod)["env"]}
    service = f"{pod['metadata']['labels']['ray.io/cluster']}-head-svc"
    async with RayJobsClient(f"http://127.0.0.1:{dashboards.port}/{seen.namespace}/{service}") as ray:
        await ray.submit(Submission.from_json(env["MUSTER_SUBMISSION"], env["RAY_JOB_SUBMISSION_ID"]))
    return str(env["RAY_JOB_SUBMISSION_ID"])


async def end_submitter(seen: Observed, exit_code: int) -> None:
    """What the kubelet reports of it."""
    pod = await head(seen)
    state = {"terminated": {"exitCode": exit_code, "reason": "Completed" if exit_code == 0 else "Error"}}
    ended = {"name": NAME, "ready": False, "restartCount": 0, "image": "", "imageID": "", "state": state}
    name = pod["metadata"]["name"]
    await seen.api.patch(PODS, seen.namespace, name, {"status": {"containerStatuses": [ended]}}, subresource="status")


async def test_the_submitter_is_in_the_head_and_the_job_goes_its_way(seen: Observed, dashboards: RayDashboards) -> None:
    await create(seen, shutdownAfterJobFinishes=True)
    await seen.job_state("demo", "Running")
    (cluster,) = await seen.all(RAYCLUSTERS)
    assert cluster["metadata"]["annotations"]["ray.io/disable-provisioned-head-restart"] == "true"
    assert cluster["metadata"]["labels"]["ray.io/job-submission-mode"] == "SidecarMode"
    pod = await head(seen)
    assert pod["spec"]["restartPolicy"] == "Never"
    assert submitter(pod)["command"] == ["muster", "submit"]
    group = await seen.get(PODGROUPS, "ray-demo-pg")
    assert group is not None
    assert (group["spec"]["minMember"], group["spec"]["minResources"]["cpu"]) == (3, "3050m")
    assert "muster.dev/companions" not in (group["metadata"].get("annotations") or {})
    job_id = await submit(seen, dashboards)
    await seen.until(RAYJOBS, "demo", lambda job: job["status"].get("jobStatus") == "RUNNING", "it runs")
    dashboards.run_of(job_id).end("SUCCEEDED")
    await end_submitter(seen, 0)
    status = await seen.job_state("demo", "Complete")
    assert (status["jobId"], status["jobStatus"]) == (job_id, "SUCCEEDED")
    assert not await seen.names(JOBS)
    await seen.gone(RAYCLUSTERS, PODS)


async def test_a_job_that_is_over_before_its_cluster_is_ready_is_seen(
    seen: Observed, dashboards: RayDashboards, stand_ins: StandIns
) -> None:
    stand_ins.holds_back = lambda pod: pod["metadata"]["labels"]["ray.io/group"] != "headgroup"
    await create(seen)
    job_id = await submit(seen, dashboards)
    dashboards.run_of(job_id).end("SUCCEEDED")
    await end_submitter(seen, 0)
    assert (await seen.job_state("demo", "Complete"))["jobStatus"] == "SUCCEEDED"


async def test_a_submitter_that_ends_does_not_end_the_job(seen: Observed, dashboards: RayDashboards) -> None:
    await create(seen)
    job_id = await submit(seen, dashboards)
    await seen.until(
        RAYJOBS, "demo", lambda job: (job.get("status") or {}).get("jobStatus") == "RUNNING", "the job runs"
    )
    await end_submitter(seen, 137)
    run = dashboards.run_of(job_id)
    looks = run.looks

    async def looked_on() -> bool:
        return run.looks > looks + 3

    await eventually(looked_on, "the job is still being looked at")
    run.end("SUCCEEDED")
    await seen.job_state("demo", "Complete")


async def test_a_submitter_that_gives_up_fails_the_job_and_its_head_does_not_stay_to_try_again(seen: Observed) -> None:
    await create(seen)
    await seen.job_state("demo", "Running")
    await end_submitter(seen, 3)
    status = await seen.job_state("demo", "Failed")
    assert status["reason"] == "SubmissionFailed"
    assert "exit code 3" in status["message"]
    await seen.gone(RAYCLUSTERS, PODS)


async def test_a_head_that_is_lost_fails_the_job_which_is_never_run_again_unasked(
    seen: Observed, dashboards: RayDashboards
) -> None:
    await create(seen)
    await submit(seen, dashboards)
    await seen.until(
        RAYJOBS, "demo", lambda job: (job.get("status") or {}).get("jobStatus") == "RUNNING", "the job runs"
    )
    pod = await head(seen)
    dashboards.down = True
    await seen.api.delete(PODS, seen.namespace, pod["metadata"]["name"], grace_seconds=0)
    status = await seen.job_state("demo", "Failed")
    assert status["reason"] == "RayJobLost"
    assert "head pod" in status["message"]
    await seen.gone(RAYCLUSTERS, PODS)


async def test_a_lost_head_is_retried_on_another_cluster_where_the_spec_asks_for_it(
    seen: Observed, dashboards: RayDashboards
) -> None:
    await create(seen, backoffLimit=1)
    first = await submit(seen, dashboards)
    await seen.until(
        RAYJOBS, "demo", lambda job: (job.get("status") or {}).get("jobStatus") == "RUNNING", "the job runs"
    )
    pod = await head(seen)
    await seen.api.delete(PODS, seen.namespace, pod["metadata"]["name"], grace_seconds=0)
    dashboards.lose_everything()
    await seen.until(
        RAYJOBS,
        "demo",
        lambda job: (
            job["status"].get("jobId") not in (None, first) and job["status"]["jobDeploymentStatus"] == "Running"
        ),
        "the second attempt is up",
    )
    second = await submit(seen, dashboards)
    dashboards.run_of(second).end("SUCCEEDED")
    await end_submitter(seen, 0)
    assert (await seen.job_state("demo", "Complete"))["failed"] == 1


async def test_a_changed_entrypoint_reaches_a_head_that_waits_for_its_place(
    seen: Observed, stand_ins: StandIns
) -> None:
    stand_ins.holds_back = lambda pod: True
    await create(seen, "old")
    await head(seen)
    await seen.api.patch(RAYJOBS, seen.namespace, "demo", {"spec": {"entrypoint": "new"}})

    async def has_the_new_one() -> bool:
        env = {one["name"]: one.get("value") for one in submitter(await head(seen))["env"]}
        return '"entrypoint": "new"' in env["MUSTER_SUBMISSION"]

    await eventually(has_the_new_one, "the head has the new entrypoint")
