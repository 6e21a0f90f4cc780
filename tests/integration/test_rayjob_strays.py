"""Whoever edits a RayJob's status leaves no cluster behind, and runs no program twice; on a real API server."""

from __future__ import annotations

from typing import Any

import pytest

from muster.kube.errors import Conflict
from muster.kube.resource import JOBS, PODS, RAYCLUSTERS, RAYJOBS
from tests.integration.observed import Object, Observed
from tests.integration.operators import Operator, eventually
from tests.integration.ray_dashboard import RayDashboards
from tests.integration.ray_manifests import ray_cluster, ray_job
from tests.integration.stand_ins import StandIns

pytest_plugins = ("tests.integration.controller_fixtures",)

HOLD = {"metadata": {"finalizers": ["example.com/not-yet"]}}
LET_GO = {"metadata": {"finalizers": None}}
MODES = pytest.mark.parametrize("mode", ["K8sJobMode", "HTTPMode"])


async def runs(seen: Observed, *, not_as: str = "") -> Object:
    """The status once Ray runs the job, under another id than `not_as`."""

    def holds(job: Object) -> bool:
        status = job.get("status") or {}
        return status.get("jobStatus") == "RUNNING" and status.get("jobId") != not_as

    job = await seen.until(RAYJOBS, "demo", holds, "the job runs in Ray")
    return dict(job["status"])


async def start(seen: Observed, **spec: Any) -> Object:
    await seen.api.create(RAYJOBS, seen.namespace, ray_job("demo", "run", **spec))
    return await runs(seen)


async def write(seen: Observed, status: Any) -> None:
    """What a user does with kubectl."""
    await seen.api.patch(RAYJOBS, seen.namespace, "demo", {"status": status}, subresource="status")


async def stray(seen: Observed, name: str, *, controller: bool = True) -> Object:
    """A further cluster of the job's."""
    job = await seen.get(RAYJOBS, "demo")
    assert job is not None
    owner = {"apiVersion": "ray.io/v1", "kind": "RayJob", "name": "demo", "uid": job["metadata"]["uid"]}
    cluster = ray_cluster(name)
    cluster["metadata"]["ownerReferences"] = [{**owner, "controller": controller, "blockOwnerDeletion": controller}]
    return await seen.api.create(RAYCLUSTERS, seen.namespace, cluster)


async def only(seen: Observed, *names: str) -> None:
    """Wait until these are all clusters that are left, and no others have pods."""

    async def holds() -> bool:
        of = {pod["metadata"]["labels"]["ray.io/cluster"] for pod in await seen.pods()}
        return await seen.names(RAYCLUSTERS) == set(names) and of <= set(names)

    await eventually(holds, f"the clusters {names} are left")


@MODES
@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(None, id="wiped"),
        pytest.param({"jobDeploymentStatus": ""}, id="new"),
        pytest.param({"jobDeploymentStatus": "Suspended"}, id="suspended"),
        pytest.param({"jobDeploymentStatus": None, "rayClusterName": None}, id="without its cluster"),
    ],
)
async def test_a_job_that_is_made_to_begin_anew_waits_for_the_last_pod_of_its_cluster(
    seen: Observed, operator: Operator, dashboards: RayDashboards, mode: str, edit: Object | None
) -> None:
    first = await start(seen, submissionMode=mode)
    (head,) = await seen.pods("headgroup")
    await seen.api.patch(PODS, seen.namespace, head["metadata"]["name"], HOLD)
    await write(seen, edit)
    await seen.job_state("demo", "Retrying")
    await only(seen)
    (left,) = await seen.all(PODS)
    assert left["metadata"]["name"] == head["metadata"]["name"]
    assert await seen.names(JOBS) == set()
    assert (await seen.job_state("demo", "Retrying")).get("rayClusterName") == first["rayClusterName"]
    await seen.api.patch(PODS, seen.namespace, head["metadata"]["name"], LET_GO)
    again = await runs(seen, not_as=first["jobId"])
    await only(seen, again["rayClusterName"])
    assert not again.get("failed")
    assert len(dashboards.submissions) == 2
    dashboards.run_of(again["jobId"]).end("SUCCEEDED")
    await seen.job_state("demo", "Complete")


async def test_an_attempt_begins_with_nothing_of_an_earlier_one_in_its_status(
    seen: Observed, operator: Operator, stand_ins: StandIns
) -> None:
    stand_ins.holds_back = lambda pod: True
    await seen.api.create(RAYJOBS, seen.namespace, ray_job("demo", suspend=True, shutdownAfterJobFinishes=True))
    await seen.job_state("demo", "Suspended")
    old = {
        "jobDeploymentStatus": "",
        "jobStatus": "RUNNING",
        "dashboardURL": "x:8265",
        "rayJobInfo": {"startTime": "2026-01-01T00:00:00Z"},
        "jobStatusCheckFailureStartTime": "2026-01-01T00:00:00Z",
        "reason": "AppFailed",
        "message": "no",
    }
    await operator.kill()
    await write(seen, old)
    await seen.api.patch(RAYJOBS, seen.namespace, "demo", {"spec": {"suspend": False}})
    await operator.start()
    status = await seen.job_state("demo", "Initializing")
    assert not status.keys() & (old.keys() - {"jobDeploymentStatus", "message"})
    assert status.get("message") != "no"


@pytest.mark.parametrize("limit", [0, 1])
async def test_a_running_job_whose_cluster_is_named_no_more_fails_and_its_cluster_goes(
    seen: Observed, operator: Operator, dashboards: RayDashboards, limit: int
) -> None:
    first = await start(seen, submissionMode="HTTPMode", backoffLimit=limit)
    await write(seen, {"rayClusterName": None})
    told = await seen.event("RayClusterLost")
    assert "status.rayClusterName has been taken away" in told
    assert "None" not in told
    if limit:
        again = await runs(seen, not_as=first["jobId"])
        await only(seen, again["rayClusterName"])
    else:
        assert (await seen.job_state("demo", "Failed"))["reason"] == "RayClusterLost"
        await seen.gone(RAYCLUSTERS, PODS)


@pytest.mark.parametrize("name", [None, "demo-other"])
async def test_a_job_that_waits_and_is_made_to_name_another_cluster_begins_anew_without_the_first(
    seen: Observed, operator: Operator, stand_ins: StandIns, name: str | None
) -> None:
    stand_ins.holds_back = lambda pod: True
    await seen.api.create(RAYJOBS, seen.namespace, ray_job("demo"))
    job = await seen.until(
        RAYJOBS, "demo", lambda job: "waits" in (job.get("status") or {}).get("message", ""), "the gang waits"
    )
    before = (job["status"]["rayClusterName"], name)
    await write(seen, {"rayClusterName": name})

    def anew(job: Object) -> bool:
        status = job["status"]
        return status.get("jobDeploymentStatus") == "Initializing" and status.get("rayClusterName") not in before

    again = await seen.until(RAYJOBS, "demo", anew, "the job begins anew")
    await only(seen, again["status"]["rayClusterName"])


@pytest.mark.parametrize("ends", [False, True])
async def test_a_cluster_that_the_status_does_not_name_goes_and_the_jobs_stays(
    seen: Observed, operator: Operator, dashboards: RayDashboards, ends: bool
) -> None:
    status = await start(seen, submissionMode="HTTPMode")
    if ends:
        dashboards.run_of(status["jobId"]).end("SUCCEEDED")
        await seen.job_state("demo", "Complete")
    await stray(seen, "demo-guest", controller=False)
    await stray(seen, "demo-stray")
    await only(seen, status["rayClusterName"], "demo-guest")
    if not ends:
        dashboards.run_of(status["jobId"]).end("SUCCEEDED")
    assert (await seen.job_state("demo", "Complete"))["rayClusterName"] == status["rayClusterName"]


async def test_several_strays_go_before_a_retry_begins(
    seen: Observed, operator: Operator, dashboards: RayDashboards
) -> None:
    first = await start(seen, submissionMode="HTTPMode")
    await operator.kill()
    await stray(seen, "demo-stray-1")
    await stray(seen, "demo-stray-2")
    await write(seen, None)
    await operator.start()
    again = await runs(seen, not_as=first["jobId"])
    await only(seen, again["rayClusterName"])


@pytest.mark.parametrize("state", ["", "Suspended", "Suspending"])
async def test_a_suspended_job_keeps_no_cluster_whatever_its_status_says(
    seen: Observed, operator: Operator, state: str
) -> None:
    await start(seen, submissionMode="HTTPMode", shutdownAfterJobFinishes=True)
    await operator.kill()
    await seen.api.patch(RAYJOBS, seen.namespace, "demo", {"spec": {"suspend": True}})
    await write(seen, {"rayClusterName": None, "jobDeploymentStatus": state})
    await operator.start()
    await seen.gone(RAYCLUSTERS, PODS)
    status = await seen.job_state("demo", "Suspended")
    assert not status.keys() & {"rayClusterName", "jobId", "jobStatus", "message"}


async def test_a_refused_job_keeps_no_cluster_whatever_its_status_says(seen: Observed, operator: Operator) -> None:
    first = await start(seen, submissionMode="HTTPMode")
    await operator.kill()
    await seen.api.patch(RAYJOBS, seen.namespace, "demo", {"spec": {"backoffLimit": -1}})
    await write(seen, None)
    await operator.start()
    await seen.job_state("demo", "ValidationFailed")
    await seen.gone(RAYCLUSTERS, PODS)
    await seen.api.patch(RAYJOBS, seen.namespace, "demo", {"spec": {"backoffLimit": 0}})
    await runs(seen, not_as=first["jobId"])


async def test_a_patch_without_a_change_tells_whether_an_object_has_changed(seen: Observed) -> None:
    made = await seen.api.create(RAYJOBS, seen.namespace, ray_job("demo"))
    version = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}}
    same = await seen.api.patch(RAYJOBS, seen.namespace, "demo", version)
    assert same["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    await write(seen, {"message": "x"})
    with pytest.raises(Conflict):
        await seen.api.patch(RAYJOBS, seen.namespace, "demo", version)
