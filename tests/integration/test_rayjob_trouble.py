"""Pods that can't run, as they show on their RayJob; on a real API server. The test reports for the kubelets."""

from __future__ import annotations

from typing import Any

import pytest

from muster.controllers.raycluster import memory
from muster.kube.resource import JOBS, PODS, RAYJOBS
from tests.integration.observed import Observed
from tests.integration.operators import eventually
from tests.integration.ray_dashboard import RayDashboards
from tests.integration.ray_manifests import cluster_spec, ray_job, template, worker_group
from tests.integration.stand_ins import StandIns

pytest_plugins = ("tests.integration.controller_fixtures",)
pytestmark = pytest.mark.usefixtures("operator")


async def create(seen: Observed, *, fail_fast: bool = False, **spec: Any) -> None:
    manifest = ray_job("demo", "run", **spec)
    if fail_fast:
        manifest["metadata"]["annotations"] = {"muster.dev/fail-fast": "true"}
    await seen.api.create(RAYJOBS, seen.namespace, manifest)


async def pod_of(seen: Observed, group: str) -> str:
    """The name of a pod of the group, as soon as there is one."""

    async def found() -> str | None:
        return next((pod["metadata"]["name"] for pod in await seen.pods(group)), None)

    return str(await eventually(found, f"a pod of {group}"))


async def report(seen: Observed, pod: str, reason: str, message: str = "", **more: Any) -> None:
    """What a kubelet reports of a container that waits."""
    state = {"waiting": {"reason": reason, "message": message}}
    status = {"name": "ray", "ready": False, "restartCount": 0, "image": "", "imageID": "", "state": state, **more}
    patch = {"status": {"phase": "Pending", "containerStatuses": [status]}}
    await seen.api.patch(PODS, seen.namespace, pod, patch, subresource="status")


async def reason_is(seen: Observed, reason: str | None) -> dict[str, Any]:
    job = await seen.until(
        RAYJOBS, "demo", lambda job: (job.get("status") or {}).get("reason") == reason, f"the reason is {reason}"
    )
    return dict(job["status"])


@pytest.mark.parametrize("group", ["headgroup", "workers"])
async def test_an_image_that_can_not_be_pulled_shows_on_the_job_until_it_can(
    seen: Observed, stand_ins: StandIns, group: str
) -> None:
    stand_ins.holds_back = lambda pod: True
    await create(seen)
    name = await pod_of(seen, group)
    await report(seen, name, "ErrImagePull", "manifest unknown")
    status = await reason_is(seen, "ImagePullBackOff")
    assert name in status["message"]
    assert "manifest unknown" in status["message"]
    await report(seen, name, "ImagePullBackOff", "Back-off pulling image")
    await report(seen, name, "ContainerCreating")
    await reason_is(seen, None)
    stand_ins.holds_back = lambda pod: False
    await seen.job_state("demo", "Running")
    (note,) = [note for note in await seen.events("ImagePullBackOff", RAYJOBS) if name in note]
    assert "manifest unknown" in note


async def test_a_worker_that_crashes_under_a_running_job_shows_and_the_job_goes_on(
    seen: Observed, dashboards: RayDashboards
) -> None:
    await create(seen)
    status = (
        await seen.until(RAYJOBS, "demo", lambda job: (job.get("status") or {}).get("jobStatus") == "RUNNING", "runs")
    )["status"]
    crash = {"restartCount": 3, "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}}}
    await report(seen, await pod_of(seen, "workers"), "CrashLoopBackOff", "back-off", **crash)
    told = await reason_is(seen, "CrashLoopBackOff")
    assert "exit code 1" in told["message"]
    dashboards.run_of(status["jobId"]).end("SUCCEEDED")
    done = await seen.job_state("demo", "Complete")
    assert done.get("reason") is None
    assert "the job is SUCCEEDED" in done["message"]


async def test_a_worker_that_crashes_while_a_user_is_waited_for_shows(seen: Observed) -> None:
    await create(seen, submissionMode="InteractiveMode")
    await seen.job_state("demo", "Waiting")
    name = await pod_of(seen, "workers")
    crash = {"restartCount": 3, "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}}}
    await report(seen, name, "CrashLoopBackOff", "back-off", **crash)
    assert name in (await reason_is(seen, "CrashLoopBackOff"))["message"]
    await report(seen, name, "ContainerCreating")
    assert "spec.jobId" in (await reason_is(seen, None))["message"]


async def test_what_can_not_heal_fails_a_job_that_wants_to_fail_fast_and_is_not_retried(
    seen: Observed, stand_ins: StandIns
) -> None:
    stand_ins.holds_back = lambda pod: True
    await create(seen, fail_fast=True, backoffLimit=3)
    await report(seen, await pod_of(seen, "workers"), "InvalidImageName", "couldn't parse image name")
    status = await seen.job_state("demo", "Failed")
    assert (status["reason"], status["failed"]) == ("InvalidImageName", 1)
    assert "couldn't parse image name" in status["message"]


async def test_a_pull_that_may_yet_succeed_has_its_tries_before_a_job_fails_fast(
    seen: Observed, stand_ins: StandIns
) -> None:
    stand_ins.holds_back = lambda pod: True
    await create(seen, fail_fast=True)
    name = await pod_of(seen, "headgroup")
    await report(seen, name, "ErrImagePull", "timeout")
    await reason_is(seen, "ImagePullBackOff")
    assert (await seen.job_state("demo", "Initializing"))["jobId"]
    # So long ago that the kubelet has had its tries.
    await seen.api.patch(
        PODS, seen.namespace, name, {"status": {"startTime": "2026-01-01T00:00:00Z"}}, subresource="status"
    )
    await report(seen, await pod_of(seen, "workers"), "ErrImagePull", "timeout")
    assert (await seen.job_state("demo", "Failed"))["reason"] == "ImagePullBackOff"


async def test_workers_that_are_replaced_again_and_again_fail_a_job_fast(
    seen: Observed, stand_ins: StandIns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "_FIRST_DELAY", 0.1)
    group = worker_group(replicas=1, template=template(restartPolicy="Never"))
    stand_ins.holds_back = lambda pod: pod["metadata"]["labels"].get("ray.io/group") == "workers"
    await create(seen, fail_fast=True, rayClusterSpec=cluster_spec(group))
    crashed: set[str] = set()

    async def another() -> str | None:
        names = {pod["metadata"]["name"] for pod in await seen.pods("workers")} - crashed
        return next(iter(names), None)

    for _ in range(3):
        name = str(await eventually(another, "another worker"))
        crashed.add(name)
        ended = {"terminated": {"exitCode": 1, "reason": "Error"}}
        status = {"name": "ray", "ready": False, "restartCount": 0, "image": "", "imageID": "", "state": ended}
        patch = {"status": {"phase": "Failed", "containerStatuses": [status]}}
        await seen.api.patch(PODS, seen.namespace, name, patch, subresource="status")
    failed = await seen.job_state("demo", "Failed")
    assert failed["reason"] == "CrashLoopBackOff"
    assert "3 pods in its place" in failed["message"]


async def test_a_submitter_that_can_not_start_shows_and_fails_a_job_fast(seen: Observed, stand_ins: StandIns) -> None:
    stand_ins.submitters_run = False
    await create(seen, fail_fast=True)
    await seen.job_state("demo", "Running")
    (job,) = await seen.all(JOBS)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "demo", "uid": job["metadata"]["uid"], "controller": True}
    template = job["spec"]["template"]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "demo-x", "labels": template["metadata"]["labels"], "ownerReferences": [owner]},
        "spec": template["spec"],
    }
    stand_ins.holds_back = lambda pod: pod["metadata"]["name"] == "demo-x"
    await seen.api.create(PODS, seen.namespace, pod)
    await report(seen, "demo-x", "InvalidImageName", "no image")
    status = await seen.job_state("demo", "Failed")
    assert status["reason"] == "InvalidImageName"
    assert status["message"].startswith("Submitter pod demo-x")
