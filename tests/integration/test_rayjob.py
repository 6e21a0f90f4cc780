"""The way of a RayJob, on a real API server: its states, its gang, its end."""

from __future__ import annotations

import time
from typing import Any

import pytest

from muster.controllers.clock import seconds_of
from muster.kube.resource import JOBS, PODGROUPS, PODS, QUEUES, RAYCLUSTERS, RAYJOBS, SERVICES
from tests.integration.observed import Observed
from tests.integration.operators import eventually
from tests.integration.ray_dashboard import RayDashboards
from tests.integration.ray_manifests import cluster_spec, queue, ray_job, template, worker_group
from tests.integration.stand_ins import StandIns

pytest_plugins = ("tests.integration.controller_fixtures",)
pytestmark = pytest.mark.usefixtures("operator")

FINALIZER = "ray.io/rayjob-finalizer"
MODES = pytest.mark.parametrize("mode", ["K8sJobMode", "HTTPMode"])


async def create(seen: Observed, manifest: dict[str, Any]) -> None:
    await seen.api.create(RAYJOBS, seen.namespace, manifest)


async def edit(seen: Observed, name: str, **spec: Any) -> None:
    await seen.api.patch(RAYJOBS, seen.namespace, name, {"spec": spec})


async def runs(seen: Observed) -> dict[str, Any]:
    """Wait until Ray runs the job; the RayJob's status."""
    job = await seen.until(
        RAYJOBS, "demo", lambda job: (job.get("status") or {}).get("jobStatus") == "RUNNING", "the job runs in Ray"
    )
    return dict(job["status"])


async def released(seen: Observed, name: str) -> None:
    await seen.until(PODGROUPS, f"ray-{name}-pg", lambda pg: not pg["spec"].get("minMember"), "the gang holds nothing")


@MODES
async def test_a_job_goes_its_way_to_complete_and_gives_everything_back(
    seen: Observed, dashboards: RayDashboards, mode: str
) -> None:
    await create(seen, ray_job("demo", submissionMode=mode, shutdownAfterJobFinishes=True))
    status = await seen.job_state("demo", "Complete")
    assert (status["jobStatus"], status["succeeded"]) == ("SUCCEEDED", 1)
    assert status["startTime"] <= status["endTime"]
    assert status["dashboardURL"].endswith(f"{status['rayClusterName']}-head-svc")
    assert [submission for _, submission in dashboards.submissions] == [status["jobId"]]
    await seen.gone(RAYCLUSTERS, PODS)
    await released(seen, "demo")
    assert await seen.names(JOBS) == ({"demo"} if mode == "K8sJobMode" else set())
    job = await seen.get(RAYJOBS, "demo")
    assert job is not None
    assert not job["metadata"].get("finalizers")


async def test_the_gang_stands_before_the_cluster_and_keeps_a_place_for_the_submitter(seen: Observed) -> None:
    await create(seen, ray_job("demo", "run", labels={"volcano.sh/queue-name": f"{seen.namespace}-q"}))
    await seen.job_state("demo", "Running")
    group = await seen.get(PODGROUPS, "ray-demo-pg")
    assert group is not None
    assert group["spec"]["minMember"] == 3
    assert group["spec"]["queue"] == f"{seen.namespace}-q"
    assert "submittergroup" in group["metadata"]["annotations"]["muster.dev/companions"]
    (cluster,) = await seen.all(RAYCLUSTERS)
    assert int(group["metadata"]["creationTimestamp"] <= cluster["metadata"]["creationTimestamp"])
    assert await seen.names(PODGROUPS) == {"ray-demo-pg"}
    assert await seen.get(QUEUES, f"{seen.namespace}-q") is not None
    pods = await seen.pods()
    assert {pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] for pod in pods} == {"ray-demo-pg"}
    (submitter,) = await seen.all(JOBS)
    pod_template = submitter["spec"]["template"]
    assert pod_template["metadata"]["annotations"]["volcano.sh/task-spec"] == "submittergroup"
    assert {"demo-head-svc", f"{cluster['metadata']['name']}-head-svc"} <= await seen.names(SERVICES)


async def test_a_job_with_all_annotations_that_an_object_may_have_runs(seen: Observed) -> None:
    job = ray_job("demo", "run")
    job["metadata"]["annotations"] = {"big": "x" * (256 * 1024 - 12), "note": "kept"}
    await create(seen, job)
    await seen.job_state("demo", "Running")
    group = await seen.get(PODGROUPS, "ray-demo-pg")
    assert group is not None
    assert set(group["metadata"]["annotations"]) == {"note", "muster.dev/companions"}
    (cluster,) = await seen.all(RAYCLUSTERS)
    assert cluster["metadata"]["annotations"]["note"] == "kept"


@MODES
async def test_a_failing_program_fails_the_job_with_rays_words(seen: Observed, mode: str) -> None:
    await create(seen, ray_job("demo", "fail", submissionMode=mode))
    status = await seen.job_state("demo", "Failed")
    assert (status["jobStatus"], status["reason"]) == ("FAILED", "AppFailed")
    assert "the job is FAILED" in status["message"]
    await seen.event("AppFailed", "the job is FAILED")


async def test_of_what_ray_says_no_more_is_stored_than_can_be(seen: Observed, dashboards: RayDashboards) -> None:
    await create(seen, ray_job("demo", "run"))
    run = dashboards.run_of((await runs(seen))["jobId"])
    run.words = f"Job entrypoint command failed: {'x' * 1_700_000} the last line"
    run.end("FAILED")
    message = (await seen.job_state("demo", "Failed"))["message"]
    assert message.startswith("Job entrypoint command failed: x")
    assert message.endswith("x the last line FAILED")


async def test_a_kept_cluster_keeps_its_gang_and_the_submitters_place_is_free(seen: Observed) -> None:
    await create(seen, ray_job("demo"))
    status = await seen.job_state("demo", "Complete")
    group = await seen.until(
        PODGROUPS,
        "ray-demo-pg",
        lambda pg: "muster.dev/companions" not in (pg["metadata"].get("annotations") or {}),
        "no place is kept for the submitter any more",
    )
    assert group["spec"]["minMember"] == 3
    await seen.api.patch(
        RAYCLUSTERS,
        seen.namespace,
        status["rayClusterName"],
        {"spec": {"workerGroupSpecs": [worker_group(replicas=1)]}},
    )
    await seen.until(PODGROUPS, "ray-demo-pg", lambda pg: pg["spec"]["minMember"] == 2, "the gang follows the cluster")
    await seen.api.delete(RAYCLUSTERS, seen.namespace, status["rayClusterName"])
    await released(seen, "demo")


async def test_a_job_says_why_it_waits(seen: Observed, stand_ins: StandIns) -> None:
    stand_ins.holds_back = lambda pod: True
    await create(seen, ray_job("demo"))
    await seen.until(
        RAYJOBS, "demo", lambda job: "waits for its place" in (job.get("status") or {}).get("message", ""), "it waits"
    )
    refusal = {"type": "Unschedulable", "status": "True", "message": "needs 3 CPU, queue q has 1 free"}
    await seen.api.patch(PODGROUPS, seen.namespace, "ray-demo-pg", {"status": {"conditions": [refusal]}})
    await seen.until(
        RAYJOBS,
        "demo",
        lambda job: "needs 3 CPU, queue q has 1 free" in job["status"].get("message", ""),
        "it says why",
    )
    assert "PodGroup ray-demo-pg" in await seen.event("Unschedulable", refusal["message"])
    other = {**refusal, "message": "needs 3 CPU, queue q has 2 free"}
    await seen.api.patch(PODGROUPS, seen.namespace, "ray-demo-pg", {"status": {"conditions": [other]}})
    await seen.until(RAYJOBS, "demo", lambda job: "q has 2 free" in job["status"].get("message", ""), "it has changed")
    assert len(await seen.events("Unschedulable", RAYJOBS)) == 1
    stand_ins.holds_back = lambda pod: False
    status = await seen.job_state("demo", "Complete")
    assert "waits" not in status.get("message", "")


async def test_a_closed_queue_keeps_a_job_from_making_pods_until_it_opens(seen: Observed) -> None:
    name = f"{seen.namespace}-closed"
    await seen.api.create(QUEUES, None, queue(name))
    await seen.api.patch(QUEUES, None, name, {"status": {"state": "Closed"}}, subresource="status")
    await create(seen, ray_job("demo", labels={"volcano.sh/queue-name": name}))
    note = await seen.event("QueueClosed", name)
    assert "volcano.sh/queue-name" in note
    await seen.until(RAYJOBS, "demo", lambda job: name in job["status"].get("message", ""), "the status says it too")
    assert await seen.names(PODGROUPS) == {"ray-demo-pg"}
    assert not await seen.names(RAYCLUSTERS)
    await seen.api.patch(QUEUES, None, name, {"status": {"state": "Open"}}, subresource="status")
    await seen.job_state("demo", "Complete")


async def test_a_gang_that_waits_takes_a_changed_spec_and_keeps_its_place(seen: Observed, stand_ins: StandIns) -> None:
    stand_ins.holds_back = lambda pod: True
    await create(seen, ray_job("demo"))
    await eventually(lambda: _pods_of_cpu(seen, ["1", "1", "1"]), "three pods wait")
    before = await seen.get(PODGROUPS, "ray-demo-pg")
    smaller = worker_group(replicas=1, template=template("500m"))
    await edit(seen, "demo", rayClusterSpec=cluster_spec(smaller))
    await seen.event("UpdatedRayCluster", "spec.rayClusterSpec")
    await eventually(lambda: _pods_of_cpu(seen, ["1", "500m"]), "the head stays, one smaller worker waits")
    group = await seen.until(PODGROUPS, "ray-demo-pg", lambda pg: pg["spec"]["minMember"] == 2, "the gang is smaller")
    assert before is not None
    assert group["metadata"]["uid"] == before["metadata"]["uid"]
    stand_ins.holds_back = lambda pod: False
    await seen.job_state("demo", "Complete")
    assert len(await seen.all(RAYCLUSTERS)) == 1


async def _pods_of_cpu(seen: Observed, requests: list[str]) -> bool:
    """Whether the Ray pods there are request so much processor time, in whatever order."""
    found = [pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] for pod in await seen.pods()]
    return sorted(found) == sorted(requests)


async def test_a_changed_spec_does_not_touch_the_cluster_of_a_job_that_runs(
    seen: Observed, dashboards: RayDashboards
) -> None:
    await create(seen, ray_job("demo", "run", shutdownAfterJobFinishes=True))
    await runs(seen)
    await edit(seen, "demo", rayClusterSpec=cluster_spec(worker_group(replicas=1)), activeDeadlineSeconds=1000)
    # The job's next state comes after the controller has seen the edit.
    await edit(seen, "demo", suspend=True)
    await seen.until(RAYJOBS, "demo", lambda job: job["status"]["jobDeploymentStatus"] != "Running", "it is suspended")
    assert not await seen.events("UpdatedRayCluster")


async def test_what_is_edited_in_the_cluster_itself_stays(seen: Observed, stand_ins: StandIns) -> None:
    stand_ins.holds_back = lambda pod: True
    await create(seen, ray_job("demo"))
    await eventually(lambda: _pods_of_cpu(seen, ["1", "1", "1"]), "three pods wait")
    (cluster,) = await seen.all(RAYCLUSTERS)
    one = {"spec": {"workerGroupSpecs": [worker_group(replicas=1)]}}
    await seen.api.patch(RAYCLUSTERS, seen.namespace, cluster["metadata"]["name"], one)
    await seen.until(PODGROUPS, "ray-demo-pg", lambda pg: pg["spec"]["minMember"] == 2, "the gang follows the cluster")
    await edit(seen, "demo", activeDeadlineSeconds=1000)
    stand_ins.holds_back = lambda pod: False
    await seen.job_state("demo", "Complete")
    assert not await seen.events("UpdatedRayCluster")


# --- refusal --------------------------------------------------------------------------------------------------------

BAD_LIMITS = cluster_spec(worker_group(minReplicas=5, maxReplicas=2))


@pytest.mark.parametrize(
    ("field", "bad", "good"),
    [
        pytest.param("rayClusterSpec", {"rayClusterSpec": None}, {"rayClusterSpec": cluster_spec()}, id="no cluster"),
        pytest.param(
            "containers",
            {"rayClusterSpec": cluster_spec(headGroupSpec={"template": {"spec": {"containers": []}}})},
            {"rayClusterSpec": cluster_spec()},
            id="no containers",
        ),
        pytest.param("minReplicas", {"rayClusterSpec": BAD_LIMITS}, {"rayClusterSpec": cluster_spec()}, id="limits"),
        pytest.param("entrypoint", {"entrypoint": ""}, {"entrypoint": "succeed"}, id="nothing to run"),
        pytest.param("submissionMode", {"submissionMode": "Pigeon"}, {"submissionMode": "HTTPMode"}, id="mode"),
        pytest.param("runtimeEnvYAML", {"runtimeEnvYAML": "a: [1"}, {"runtimeEnvYAML": "env_vars: {}"}, id="YAML"),
        pytest.param("backoffLimit", {"backoffLimit": -1}, {"backoffLimit": 0}, id="negative number"),
    ],
)
async def test_a_spec_that_can_not_work_is_refused_by_its_field_and_recovers(
    seen: Observed, field: str, bad: dict[str, Any], good: dict[str, Any]
) -> None:
    await create(seen, ray_job("demo", **bad))
    status = await seen.job_state("demo", "ValidationFailed")
    assert field in status["message"]
    assert status["reason"] == "ValidationFailed"
    await seen.event("InvalidRayJobSpec", field)
    assert await seen.nothing_made()
    await edit(seen, "demo", **good)
    status = await seen.job_state("demo", "Complete")
    assert status.get("reason") is None


async def test_a_job_refused_while_it_waits_holds_nothing_and_starts_anew_when_corrected(
    seen: Observed, stand_ins: StandIns
) -> None:
    stand_ins.holds_back = lambda pod: True
    await create(seen, ray_job("demo"))
    first = await seen.until(
        RAYJOBS, "demo", lambda job: "waits" in (job.get("status") or {}).get("message", ""), "waits"
    )
    await edit(seen, "demo", runtimeEnvYAML="a: [1")
    await seen.job_state("demo", "ValidationFailed")
    await seen.gone(RAYCLUSTERS, PODS)
    await released(seen, "demo")
    stand_ins.holds_back = lambda pod: False
    await edit(seen, "demo", runtimeEnvYAML=None)
    status = await seen.job_state("demo", "Complete")
    assert status["rayClusterName"] != first["status"]["rayClusterName"]


async def test_a_template_of_the_wrong_shape_is_refused_and_all_others_go_on(seen: Observed) -> None:
    broken = ray_job("broken")
    broken["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["containers"][0]["resources"] = "plenty"
    await create(seen, broken)
    await create(seen, ray_job("fine"))
    await seen.event("InvalidRayJobSpec", "resources")
    await seen.job_state("fine", "Complete")
    assert await seen.names(PODGROUPS) == {"ray-fine-pg"}


# --- suspension, retries, deadlines, deletion -----------------------------------------------------------------------


async def test_suspending_frees_everything_and_resuming_runs_again(
    seen: Observed, dashboards: RayDashboards, stand_ins: StandIns
) -> None:
    await create(seen, ray_job("demo", "run", shutdownAfterJobFinishes=True))
    first = await seen.job_state("demo", "Running")
    await edit(seen, "demo", suspend=True)
    status = await seen.job_state("demo", "Suspended")
    assert await seen.all(PODS) == []
    assert await seen.all(RAYCLUSTERS) == []
    assert await seen.all(JOBS) == []
    assert not status.get("rayClusterName")
    await released(seen, "demo")
    await edit(seen, "demo", suspend=False)
    again = await seen.job_state("demo", "Running")
    assert again["rayClusterName"] != first["rayClusterName"]

    async def running() -> bool:
        return (again["rayClusterName"] + "-head-svc", again["jobId"]) in dashboards.runs

    await eventually(running, "the job runs on the new cluster")
    dashboards.run_of(again["jobId"]).end("SUCCEEDED")
    await seen.job_state("demo", "Complete")
    service = await seen.get(SERVICES, "demo-head-svc")
    assert service is not None
    assert service["spec"]["selector"]["ray.io/cluster"] == again["rayClusterName"]


async def test_a_job_born_suspended_makes_nothing_until_it_is_released(seen: Observed) -> None:
    await create(seen, ray_job("demo", suspend=True, shutdownAfterJobFinishes=True))
    status = await seen.job_state("demo", "Suspended")
    assert not status.get("rayClusterName")
    assert await seen.nothing_made()
    await edit(seen, "demo", suspend=False)
    await seen.job_state("demo", "Complete")


async def test_a_failed_attempt_is_retried_on_a_new_cluster_once_the_old_pods_are_gone(
    seen: Observed, dashboards: RayDashboards
) -> None:
    await create(seen, ray_job("demo", "fail", backoffLimit=1))
    status = await seen.job_state("demo", "Failed")
    assert status["failed"] == 2
    assert len({service for service, _ in dashboards.submissions}) == 2
    assert len({submission for _, submission in dashboards.submissions}) == 2
    assert {pod["metadata"]["labels"]["ray.io/cluster"] for pod in await seen.pods()} == {status["rayClusterName"]}


async def test_the_time_to_be_active_goes_on_over_retries(seen: Observed, dashboards: RayDashboards) -> None:
    await create(seen, ray_job("demo", "run", backoffLimit=3, shutdownAfterJobFinishes=True))
    first = await runs(seen)
    dashboards.run_of(first["jobId"]).end("FAILED")
    again = (
        await seen.until(
            RAYJOBS,
            "demo",
            lambda job: job["status"].get("jobId") not in (None, first["jobId"]),
            "the second attempt has begun",
        )
    )["status"]
    assert again["startTime"] == first["startTime"]
    assert again["endTime"] >= again["startTime"]
    await edit(seen, "demo", activeDeadlineSeconds=1)
    status = await seen.job_state("demo", "Failed")
    assert (status["reason"], status["failed"]) == ("DeadlineExceeded", 2)


async def test_a_resumed_job_has_all_its_time_again(seen: Observed) -> None:
    await create(seen, ray_job("demo", "run", shutdownAfterJobFinishes=True))
    first = await seen.job_state("demo", "Running")
    await edit(seen, "demo", suspend=True)
    await seen.job_state("demo", "Suspended")

    async def a_second_later() -> bool:
        return time.time() >= (seconds_of(first["startTime"]) or 0) + 1

    await eventually(a_second_later, "another second has begun")
    await edit(seen, "demo", suspend=False)
    assert (await seen.job_state("demo", "Running"))["startTime"] > first["startTime"]


@MODES
async def test_a_deadline_ends_the_job_and_stops_it_in_ray(
    seen: Observed, dashboards: RayDashboards, mode: str
) -> None:
    await create(seen, ray_job("demo", "run", submissionMode=mode, backoffLimit=2))
    await runs(seen)
    await edit(seen, "demo", activeDeadlineSeconds=1)
    status = await seen.job_state("demo", "Failed")
    assert status["reason"] == "DeadlineExceeded"
    status = (
        await seen.until(RAYJOBS, "demo", lambda job: job["status"].get("jobStatus") == "STOPPED", "stopped in Ray")
    )["status"]
    assert dashboards.stops == [status["jobId"]]
    assert status["failed"] == 1, "a deadline is not retried"


@pytest.mark.parametrize(
    ("edited", "field"),
    [
        pytest.param({"activeDeadlineSeconds": -1}, "activeDeadlineSeconds", id="a deadline that can't be"),
        pytest.param({"suspend": True}, "suspend", id="a suspension that is refused"),
        pytest.param({"submissionMode": "Pigeon"}, "submissionMode", id="a mode that there is not"),
        pytest.param({"rayClusterSpec": None}, "rayClusterSpec", id="no cluster"),
        pytest.param({"entrypoint": None}, "entrypoint", id="nothing to run"),
    ],
)
async def test_a_bad_edit_of_a_running_job_is_told_and_changes_nothing(
    seen: Observed, dashboards: RayDashboards, edited: dict[str, Any], field: str
) -> None:
    await create(seen, ray_job("demo", "run"))
    before = await runs(seen)
    await edit(seen, "demo", **edited)
    await seen.event("InvalidRayJobSpec", f"spec.{field}")
    run = dashboards.run_of(before["jobId"])
    looks = run.looks

    async def looked_on() -> bool:
        return run.looks > looks + 2

    await eventually(looked_on, "the job is looked at as before")
    run.end("SUCCEEDED")
    status = await seen.job_state("demo", "Complete")
    assert status["rayClusterName"] == before["rayClusterName"]
    assert await seen.names(RAYCLUSTERS) == {before["rayClusterName"]}


async def test_a_job_that_ray_has_not_got_yet_is_handed_over_once_its_bad_edit_is_corrected(
    seen: Observed, dashboards: RayDashboards
) -> None:
    dashboards.down = True
    await create(seen, ray_job("demo", submissionMode="HTTPMode"))
    await seen.job_state("demo", "Running")
    await edit(seen, "demo", runtimeEnvYAML="a: [1")
    await seen.event("InvalidRayJobSpec", "runtimeEnvYAML")
    dashboards.down = False
    await seen.until(
        RAYJOBS, "demo", lambda job: "spec.runtimeEnvYAML" in job["status"].get("message", ""), "it is told"
    )
    assert not dashboards.submissions
    await edit(seen, "demo", runtimeEnvYAML=None)
    status = await seen.job_state("demo", "Complete")
    assert "runtimeEnvYAML" not in status.get("message", "")


async def test_a_time_to_live_that_can_not_be_destroys_nothing(seen: Observed, dashboards: RayDashboards) -> None:
    await create(seen, ray_job("demo", "run", shutdownAfterJobFinishes=True, ttlSecondsAfterFinished=1000))
    status = await runs(seen)
    await edit(seen, "demo", ttlSecondsAfterFinished=-5)
    dashboards.run_of(status["jobId"]).end("SUCCEEDED")
    await seen.event("InvalidRayJobSpec", "ttlSecondsAfterFinished")
    await seen.job_state("demo", "Complete")
    await seen.until(RAYJOBS, "demo", lambda job: not job["metadata"].get("finalizers"), "it is cleaned up after")
    assert await seen.names(RAYCLUSTERS) == {status["rayClusterName"]}
    await edit(seen, "demo", ttlSecondsAfterFinished=0)
    await seen.gone(RAYCLUSTERS)


@pytest.mark.parametrize(
    "shutdown",
    [
        {"shutdownAfterJobFinishes": True},
        {"shutdownAfterJobFinishes": False},
        {"shutdownAfterJobFinishes": True, "ttlSecondsAfterFinished": 1000},
    ],
    ids=["shut down", "kept", "kept for a while"],
)
async def test_a_job_that_does_not_get_a_place_in_time_fails_and_gives_everything_back(
    seen: Observed, stand_ins: StandIns, shutdown: dict[str, Any]
) -> None:
    stand_ins.holds_back = lambda pod: True
    await create(seen, ray_job("demo", preRunningDeadlineSeconds=2, **shutdown))
    status = await seen.job_state("demo", "Failed")
    assert status["reason"] == "PreRunningDeadlineExceeded"
    await seen.gone(RAYCLUSTERS, PODS)
    await released(seen, "demo")


async def test_a_gang_that_has_a_place_is_kept_with_its_failed_job(seen: Observed, stand_ins: StandIns) -> None:
    stand_ins.holds_back = lambda pod: True
    await create(seen, ray_job("demo"))
    pods = await eventually(lambda: _three(seen), "three pods")
    place = pods[0]["metadata"]
    await seen.api.patch(PODS, seen.namespace, place["name"], {"spec": {"schedulingGates": []}})
    await seen.api.bind(seen.namespace, place["name"], uid=place["uid"], node="node-1")
    await edit(seen, "demo", preRunningDeadlineSeconds=1)
    status = await seen.job_state("demo", "Failed")
    # Its place for the submitter is free when the look that decides on the cluster is over.
    group = await seen.until(
        PODGROUPS,
        "ray-demo-pg",
        lambda pg: "muster.dev/companions" not in (pg["metadata"].get("annotations") or {}),
        "no place is kept for the submitter any more",
    )
    assert group["spec"]["minMember"] == 3
    assert await seen.names(RAYCLUSTERS) == {status["rayClusterName"]}


async def _three(seen: Observed) -> list[dict[str, Any]]:
    pods = await seen.pods()
    return pods if len(pods) == 3 else []


async def test_the_cluster_is_kept_for_its_time_to_live(seen: Observed) -> None:
    await create(seen, ray_job("demo", shutdownAfterJobFinishes=True, ttlSecondsAfterFinished=3))
    status = await seen.job_state("demo", "Complete")
    await seen.gone(RAYCLUSTERS)
    assert time.time() >= (seconds_of(status["endTime"]) or 0) + 3


async def test_a_cluster_lost_under_the_job_fails_it_and_is_not_made_again(seen: Observed) -> None:
    await create(seen, ray_job("demo", "run"))
    status = await seen.job_state("demo", "Running")
    await seen.api.delete(RAYCLUSTERS, seen.namespace, status["rayClusterName"])
    status = await seen.job_state("demo", "Failed")
    assert status["reason"] == "RayClusterLost"
    assert status["rayClusterName"] in status["message"]
    assert await seen.all(RAYCLUSTERS) == []
    await released(seen, "demo")


@MODES
async def test_a_job_that_the_head_forgot_fails_and_is_never_run_again_unasked(
    seen: Observed, dashboards: RayDashboards, stand_ins: StandIns, mode: str
) -> None:
    await create(seen, ray_job("demo", "run", submissionMode=mode))
    await runs(seen)
    stand_ins.submitters_run = False
    dashboards.lose_everything()
    status = await seen.job_state("demo", "Failed")
    assert status["reason"] == "RayJobLost"
    assert "head" in status["message"]
    assert len(dashboards.submissions) == 1


async def test_a_second_run_under_the_same_id_is_stopped_and_the_job_counts_as_lost(
    seen: Observed, dashboards: RayDashboards
) -> None:
    await create(seen, ray_job("demo", "run", submissionMode="HTTPMode"))
    status = await runs(seen)
    dashboards.run_of(status["jobId"]).started += 60_000
    status = await seen.job_state("demo", "Failed")
    assert (status["reason"], status["jobStatus"]) == ("RayJobLost", "FAILED")

    async def stopped() -> bool:
        return dashboards.stops == [status["jobId"]]

    await eventually(stopped, "the second run is stopped")


async def test_a_submitter_that_could_run_a_lost_job_again_is_removed(
    seen: Observed, dashboards: RayDashboards, stand_ins: StandIns
) -> None:
    await create(seen, ray_job("demo", "run"))
    await runs(seen)
    stand_ins.submitters_run = False
    # Its first pod is gone; the next one would not know that the job was submitted before.
    await seen.api.patch(JOBS, seen.namespace, "demo", {"status": {"failed": 1}}, subresource="status")
    dashboards.lose_everything()
    assert (await seen.job_state("demo", "Failed"))["reason"] == "RayJobLost"
    await seen.gone(JOBS)
    assert len(dashboards.submissions) == 1


async def test_a_submitter_that_gives_up_fails_the_job_with_its_reason(seen: Observed, stand_ins: StandIns) -> None:
    stand_ins.submitters_run = False
    await create(seen, ray_job("demo"))
    await seen.job_state("demo", "Running")
    await stand_ins.end_submitter("demo", succeeded=False)
    status = await seen.job_state("demo", "Failed")
    assert status["reason"] == "SubmissionFailed"
    assert "BackoffLimitExceeded" in status["message"]


async def test_a_submitter_that_ends_early_does_not_end_the_job(
    seen: Observed, stand_ins: StandIns, dashboards: RayDashboards
) -> None:
    await create(seen, ray_job("demo", "run"))
    await runs(seen)
    stand_ins.submitters_run = False
    await stand_ins.end_submitter("demo", succeeded=True)
    status = (await seen.get(RAYJOBS, "demo") or {})["status"]
    looks = dashboards.run_of(status["jobId"]).looks

    async def looked_on() -> bool:
        return dashboards.run_of(status["jobId"]).looks > looks + 3

    await eventually(looked_on, "the job is still being looked at")
    assert (await seen.job_state("demo", "Running"))["jobStatus"] == "RUNNING"
    dashboards.run_of(status["jobId"]).end("SUCCEEDED")
    await seen.job_state("demo", "Complete")


async def test_a_silent_dashboard_is_borne_and_noted(seen: Observed, dashboards: RayDashboards) -> None:
    await create(seen, ray_job("demo", "run", submissionMode="HTTPMode"))
    status = await runs(seen)
    dashboards.down = True
    job = await seen.until(
        RAYJOBS, "demo", lambda job: job["status"].get("jobStatusCheckFailureStartTime"), "silence noted"
    )
    assert "gives no answer of use, and after 300 s without one the job fails: " in job["status"]["message"]
    dashboards.down = False
    job = await seen.until(
        RAYJOBS, "demo", lambda job: not job["status"].get("jobStatusCheckFailureStartTime"), "silence forgotten"
    )
    assert job["status"]["message"] == "the job is RUNNING"
    dashboards.run_of(status["jobId"]).end("SUCCEEDED")
    await seen.job_state("demo", "Complete")


async def test_deleting_a_running_job_stops_it_and_removes_everything(
    seen: Observed, dashboards: RayDashboards
) -> None:
    await create(seen, ray_job("demo", "run"))
    status = await runs(seen)
    job = await seen.get(RAYJOBS, "demo")
    assert job is not None
    assert job["metadata"]["finalizers"] == [FINALIZER]
    await seen.api.delete(RAYJOBS, seen.namespace, "demo")
    await seen.gone(RAYJOBS, RAYCLUSTERS, PODS, JOBS, PODGROUPS, SERVICES)
    assert dashboards.stops == [status["jobId"]]


async def test_a_deletion_does_not_wait_for_a_dashboard_that_is_down(seen: Observed, dashboards: RayDashboards) -> None:
    await create(seen, ray_job("demo", "run"))
    await runs(seen)
    dashboards.down = True
    await seen.api.delete(RAYJOBS, seen.namespace, "demo")
    await seen.gone(RAYJOBS, RAYCLUSTERS, PODS)


async def test_a_job_may_follow_another_of_its_name_at_once(seen: Observed) -> None:
    await create(seen, ray_job("demo", "run"))
    first = await seen.job_state("demo", "Running")
    await seen.api.delete(RAYJOBS, seen.namespace, "demo")
    await seen.gone(RAYJOBS)
    await create(seen, ray_job("demo"))
    status = await seen.job_state("demo", "Complete")
    assert status["rayClusterName"] != first["rayClusterName"]


async def test_a_job_of_another_controller_is_left_alone(seen: Observed) -> None:
    await create(seen, ray_job("foreign", managedBy="kueue.x-k8s.io/multikueue"))
    await create(seen, ray_job("ours"))
    await seen.job_state("ours", "Complete")
    foreign = await seen.get(RAYJOBS, "foreign")
    assert foreign is not None
    assert not foreign.get("status")
    assert not foreign["metadata"].get("finalizers")


async def test_a_job_given_to_another_controller_while_it_runs_is_left_alone_until_it_is_deleted(
    seen: Observed, dashboards: RayDashboards
) -> None:
    await create(seen, ray_job("demo", "run", submissionMode="HTTPMode"))
    status = await runs(seen)
    await edit(seen, "demo", managedBy="kueue.x-k8s.io/multikueue")
    await create(seen, ray_job("ours"))
    await seen.job_state("ours", "Complete")
    assert dashboards.stops == []
    for name in ("demo", "ours"):
        await seen.api.delete(RAYJOBS, seen.namespace, name)
    await seen.gone(RAYJOBS, within=20)
    assert dashboards.stops == [status["jobId"]]


@MODES
async def test_a_job_whose_head_is_not_to_come_again_is_lost_with_it_at_once(
    seen: Observed, dashboards: RayDashboards, mode: str
) -> None:
    manifest = ray_job("demo", "run", submissionMode=mode)
    manifest["metadata"]["annotations"] = {"ray.io/disable-provisioned-head-restart": "true"}
    await create(seen, manifest)
    await runs(seen)
    (head,) = await seen.pods("headgroup")
    dashboards.down = True
    await seen.api.delete(PODS, seen.namespace, head["metadata"]["name"], grace_seconds=0)
    status = await seen.job_state("demo", "Failed")
    assert (status["reason"], status["jobStatus"]) == ("RayJobLost", "FAILED")
