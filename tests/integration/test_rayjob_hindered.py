"""What goes wrong beside a RayJob does not keep it from its end, nor its end from being carried out."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from muster.controllers.clock import timestamp
from muster.kube.config import Connection
from muster.kube.resource import JOBS, PODGROUPS, PODS, RAYCLUSTERS, RAYJOBS, SERVICES
from tests.integration.fault_proxy import Answer, FaultProxy, matching
from tests.integration.observed import Observed
from tests.integration.operators import Operator, eventually
from tests.integration.ray_dashboard import RayDashboards
from tests.integration.ray_manifests import ray_cluster, ray_job, template, worker_group
from tests.integration.stand_ins import StandIns

pytest_plugins = ("tests.integration.controller_fixtures",)

LONG_AGO = 1_700_000_000.0


@pytest.fixture
async def impatient_operator(
    connection: Connection, namespace: str, dashboards: RayDashboards, stand_ins: StandIns
) -> AsyncIterator[Operator]:
    async with Operator(connection, namespace, dashboards, status_check_timeout=1.0) as operator:
        yield operator


async def runs(seen: Observed) -> dict[str, Any]:
    job = await seen.until(
        RAYJOBS, "demo", lambda job: (job.get("status") or {}).get("jobStatus") == "RUNNING", "the job runs in Ray"
    )
    return dict(job["status"])


async def start(seen: Observed, entrypoint: str = "run", **spec: Any) -> dict[str, Any]:
    await seen.api.create(RAYJOBS, seen.namespace, ray_job("demo", entrypoint, **spec))
    return await runs(seen)


async def ended(seen: Observed, operator: Operator, **status: Any) -> None:
    """The operator dies just after it has written that the job failed, and comes back."""
    await operator.kill()
    body = {"status": {"jobDeploymentStatus": "Failed", "failed": 1, **status}}
    await seen.api.patch(RAYJOBS, seen.namespace, "demo", body, subresource="status")
    await operator.start()


async def let_go(seen: Observed) -> None:
    await seen.until(RAYJOBS, "demo", lambda job: not job["metadata"].get("finalizers"), "the finalizer is gone")


async def test_a_service_of_somebody_else_does_not_keep_a_job_from_its_end(seen: Observed, operator: Operator) -> None:
    service = {"metadata": {"name": "demo-head-svc"}, "spec": {"ports": [{"port": 80}], "clusterIP": "None"}}
    await seen.api.create(SERVICES, seen.namespace, {"apiVersion": "v1", "kind": "Service", **service})
    await seen.api.create(RAYJOBS, seen.namespace, ray_job("demo"))
    status = await seen.job_state("demo", "Complete")
    assert "give the RayJob another name" in await seen.event("NameTaken", "Service demo-head-svc exists already")
    assert status["message"] == "the job is SUCCEEDED"


async def test_a_cluster_edited_into_nonsense_does_not_keep_a_job_from_its_end(
    seen: Observed, operator: Operator, dashboards: RayDashboards
) -> None:
    status = await start(seen)
    bad = {"workerGroupSpecs": [worker_group(template=template(cpu="lots"))]}
    await seen.api.patch(RAYCLUSTERS, seen.namespace, status["rayClusterName"], {"spec": bad})
    await seen.event("InvalidRayClusterSpec", "requests")
    dashboards.run_of(status["jobId"]).end("SUCCEEDED")
    await seen.job_state("demo", "Complete")


JUNK: dict[str, Any] = {"status": {"conditions": [{}]}}
"""Our schema takes it, and Volcano's: a condition has neither type nor status."""


@pytest.mark.parametrize("answer", [Answer(404, "HTTP404"), Answer(500, "InternalError"), Answer(409, "Conflict")])
async def test_a_gang_that_can_not_be_had_does_not_keep_a_job_from_its_end(
    proxy: FaultProxy, seen: Observed, dashboards: RayDashboards, stand_ins: StandIns, answer: Answer
) -> None:
    """As it is when somebody has deleted the CRD of PodGroups."""
    async with Operator(proxy.connection(), seen.namespace, dashboards):
        status = await start(seen, shutdownAfterJobFinishes=True, ttlSecondsAfterFinished=0)
        proxy.inject(answer, when=matching("POST", "/podgroups$"), times=None)
        await seen.api.delete(PODGROUPS, seen.namespace, "ray-demo-pg")
        dashboards.run_of(status["jobId"]).end("SUCCEEDED")
        await seen.job_state("demo", "Complete")
        await seen.gone(RAYCLUSTERS, PODS)


async def test_a_status_that_others_have_spoilt_does_not_keep_a_job_from_its_end(
    seen: Observed, operator: Operator, dashboards: RayDashboards
) -> None:
    status = await start(seen)
    await seen.api.patch(PODGROUPS, seen.namespace, "ray-demo-pg", JUNK)
    dashboards.run_of(status["jobId"]).end("SUCCEEDED")
    await seen.job_state("demo", "Complete")


async def test_a_status_that_others_have_spoilt_does_not_hold_up_a_suspension(
    seen: Observed, operator: Operator
) -> None:
    await start(seen, shutdownAfterJobFinishes=True)
    await seen.api.create(RAYCLUSTERS, seen.namespace, ray_cluster("alone"))
    await seen.cluster_state("alone", "ready")
    suspend = {"spec": {"suspend": True}}
    for name, resource in (("demo", RAYJOBS), ("alone", RAYCLUSTERS)):
        await seen.api.patch(PODGROUPS, seen.namespace, f"ray-{name}-pg", JUNK)
        await seen.api.patch(resource, seen.namespace, name, suspend)
    await seen.job_state("demo", "Suspended")
    await seen.cluster_state("alone", "suspended")
    await seen.gone(PODS)
    assert [one["spec"]["minMember"] for one in await seen.all(PODGROUPS)] == [0, 0]


async def test_a_bad_edit_of_a_running_job_is_told_and_ray_is_still_listened_to(
    seen: Observed, operator: Operator, dashboards: RayDashboards, stand_ins: StandIns
) -> None:
    status = await start(seen)
    stand_ins.submitters_run = False
    await seen.api.patch(RAYJOBS, seen.namespace, "demo", {"spec": {"submitterPodTemplate": template(cpu="lots")}})
    await seen.event("InvalidRayJobSpec", "spec.submitterPodTemplate")
    dashboards.run_of(status["jobId"]).end("SUCCEEDED")
    await seen.until(RAYJOBS, "demo", lambda job: job["status"]["jobStatus"] == "SUCCEEDED", "Ray's word is stored")


async def test_ray_is_told_to_stop_however_long_the_operator_was_away(
    seen: Observed, operator: Operator, dashboards: RayDashboards
) -> None:
    status = await start(seen, submissionMode="HTTPMode")
    await ended(seen, operator, reason="DeadlineExceeded", endTime=timestamp(LONG_AGO))
    await let_go(seen)
    assert dashboards.stops == [status["jobId"]]


async def test_a_submitter_that_could_run_a_job_again_whose_head_was_silent_is_removed(
    seen: Observed, operator: Operator, dashboards: RayDashboards, stand_ins: StandIns
) -> None:
    await start(seen)
    stand_ins.submitters_run = False
    dashboards.down = True
    await ended(seen, operator, reason="JobStatusCheckTimeoutExceeded", endTime=timestamp(LONG_AGO))
    await seen.gone(JOBS)
    await let_go(seen)


async def test_a_submitter_that_looks_for_a_cluster_that_is_gone_is_removed(
    seen: Observed, operator: Operator, stand_ins: StandIns
) -> None:
    status = await start(seen)
    stand_ins.submitters_run = False
    # Its first pod has given up; the next one would look for minutes.
    await seen.api.patch(JOBS, seen.namespace, "demo", {"status": {"failed": 1}}, subresource="status")
    await seen.api.delete(RAYCLUSTERS, seen.namespace, status["rayClusterName"])
    assert (await seen.job_state("demo", "Failed"))["reason"] == "RayClusterLost"
    await seen.gone(JOBS)
    await let_go(seen)


async def test_a_dashboard_that_never_takes_the_job_fails_it(
    seen: Observed, impatient_operator: Operator, dashboards: RayDashboards
) -> None:
    dashboards.takes_jobs = False
    await seen.api.create(RAYJOBS, seen.namespace, ray_job("demo", submissionMode="HTTPMode"))
    status = await seen.job_state("demo", "Failed")
    assert status["reason"] == "SubmissionFailed"
    assert "no agent" in status["message"]


async def test_a_login_page_is_no_word_of_rays(seen: Observed, operator: Operator, dashboards: RayDashboards) -> None:
    dashboards.takes_jobs, dashboards.login_page = False, "<html>Please log in</html>"
    await seen.api.create(RAYJOBS, seen.namespace, ray_job("demo", submissionMode="HTTPMode"))
    job = await seen.until(
        RAYJOBS, "demo", lambda job: "not JSON" in (job.get("status") or {}).get("message", ""), "it is told"
    )
    assert "the dashboard answered 200: not JSON: <html>Please log in</html>" in job["status"]["message"]
    assert (job["status"]["jobDeploymentStatus"], job["status"].get("jobStatus")) == ("Running", None)
    dashboards.takes_jobs, dashboards.login_page = True, None
    await seen.job_state("demo", "Complete")
    assert len(dashboards.submissions) == 1


async def test_a_job_that_ray_took_behind_a_proxy_that_changes_answers_is_submitted_once(
    seen: Observed, operator: Operator, dashboards: RayDashboards
) -> None:
    dashboards.login_page = "<html>Please log in</html>"
    await seen.api.create(RAYJOBS, seen.namespace, ray_job("demo", submissionMode="HTTPMode"))
    await seen.job_state("demo", "Complete")
    assert len(dashboards.submissions) == 1


async def test_dashboards_that_do_not_answer_hold_up_no_other_job(
    connection: Connection, seen: Observed, dashboards: RayDashboards, stand_ins: StandIns
) -> None:
    dashboards.timeout, dashboards.hangs = 1000.0, {"hang"}
    async with Operator(connection, seen.namespace, dashboards, concurrency=2, most_at_once=2):
        for name in ("one", "two", "three"):
            await seen.api.create(RAYJOBS, seen.namespace, ray_job(name, "hang", submissionMode="HTTPMode"))
            await seen.job_state(name, "Running")

        async def all_are_asked_about() -> bool:
            return len(dashboards.submissions) == 3

        await eventually(all_are_asked_about, "the three dashboards are asked")
        await seen.api.create(RAYJOBS, seen.namespace, ray_job("demo", submissionMode="HTTPMode"))
        await seen.job_state("demo", "Complete")


@pytest.fixture
async def slow_operator(
    connection: Connection, namespace: str, dashboards: RayDashboards, stand_ins: StandIns
) -> AsyncIterator[Operator]:
    """Asks dashboards of its own accord only once in a test."""
    async with Operator(connection, namespace, dashboards, poll_interval=1000.0) as operator:
        yield operator


async def test_a_dashboard_is_asked_in_its_time_whatever_it_says_and_however_often_the_job_is_woken(
    seen: Observed, slow_operator: Operator, dashboards: RayDashboards
) -> None:
    dashboards.fickle = {"run"}
    status = await start(seen, submissionMode="HTTPMode")
    for text in ("one", "two", "three"):
        news = {"status": {"reason": text}}
        await seen.api.patch(RAYCLUSTERS, seen.namespace, status["rayClusterName"], news, subresource="status")
    # News of its submitter is news of the job.
    await seen.api.create(RAYJOBS, seen.namespace, ray_job("other"))
    await seen.job_state("other", "Complete")
    assert dashboards.run_of(status["jobId"]).looks == 1


async def test_a_dashboard_that_is_to_stop_a_job_is_asked_in_its_time_whatever_it_says(
    seen: Observed, slow_operator: Operator, dashboards: RayDashboards
) -> None:
    dashboards.fickle = {"run"}
    await seen.api.create(RAYCLUSTERS, seen.namespace, ray_cluster("shared"))
    await seen.cluster_state("shared", "ready")
    status = await start(seen, submissionMode="HTTPMode", clusterSelector={"ray.io/cluster": "shared"})
    await seen.api.patch(RAYJOBS, seen.namespace, "demo", {"spec": {"suspend": True}})
    await seen.until(RAYJOBS, "demo", lambda job: "gives no answer" in job["status"].get("message", ""), "silence told")
    await seen.api.create(RAYJOBS, seen.namespace, ray_job("other"))
    await seen.job_state("other", "Complete")
    assert dashboards.run_of(status["jobId"]).looks == 3


async def test_nothing_that_a_dashboard_does_keeps_a_deleted_job(
    seen: Observed, operator: Operator, dashboards: RayDashboards, monkeypatch: pytest.MonkeyPatch
) -> None:
    await start(seen)

    def broken(*_: object) -> None:
        raise RuntimeError("nobody has thought of this")

    monkeypatch.setattr(dashboards, "connect", broken)
    await seen.api.delete(RAYJOBS, seen.namespace, "demo")
    await seen.gone(RAYJOBS, RAYCLUSTERS)


async def gives_everything_back(seen: Observed) -> None:
    """The deadline of the job passes, and its nodes are free."""
    await seen.api.patch(RAYJOBS, seen.namespace, "demo", {"spec": {"activeDeadlineSeconds": 1}})
    assert (await seen.job_state("demo", "Failed"))["reason"] == "DeadlineExceeded"
    await seen.gone(RAYCLUSTERS, PODS)
    group = await seen.get(PODGROUPS, "ray-demo-pg")
    assert group is not None
    assert not group["spec"].get("minMember")


async def test_a_job_whose_id_no_url_can_have_gives_its_nodes_back(seen: Observed, operator: Operator) -> None:
    await start(seen, submissionMode="HTTPMode", shutdownAfterJobFinishes=True)
    forged = {"status": {"jobId": "x" * 70_000}}
    await seen.api.patch(RAYJOBS, seen.namespace, "demo", forged, subresource="status")
    await seen.until(
        RAYJOBS, "demo", lambda job: job["status"].get("jobStatusCheckFailureStartTime"), "the failing look is noted"
    )
    await gives_everything_back(seen)


async def test_what_nobody_has_thought_of_while_a_job_is_stopped_keeps_no_nodes(
    seen: Observed, operator: Operator, dashboards: RayDashboards, monkeypatch: pytest.MonkeyPatch
) -> None:
    await start(seen, submissionMode="HTTPMode", shutdownAfterJobFinishes=True)

    def broken(*_: object) -> None:
        raise RuntimeError("nobody has thought of this")

    monkeypatch.setattr(dashboards, "connect", broken)
    await gives_everything_back(seen)


async def test_a_submitter_that_can_not_be_deleted_keeps_no_nodes(
    proxy: FaultProxy, seen: Observed, dashboards: RayDashboards, stand_ins: StandIns
) -> None:
    stand_ins.submitters_run = False
    proxy.inject(Answer(403, "Forbidden"), when=matching("DELETE", "/jobs/"), times=1000)
    async with Operator(proxy.connection(), seen.namespace, dashboards):
        await seen.api.create(RAYJOBS, seen.namespace, ray_job("demo", shutdownAfterJobFinishes=True))
        await seen.job_state("demo", "Running")
        await gives_everything_back(seen)
        await seen.event("FailedToDeleteRayJobSubmitter")


async def test_a_retry_does_not_wait_for_pods_that_only_carry_the_clusters_label(
    seen: Observed, operator: Operator, dashboards: RayDashboards
) -> None:
    status = await start(seen, submissionMode="HTTPMode", backoffLimit=1)
    metadata = {"name": "orphan", "labels": {"ray.io/cluster": status["rayClusterName"], "ray.io/group": "none"}}
    orphan = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, **template()}
    await seen.api.create(PODS, seen.namespace, orphan)
    dashboards.run_of(status["jobId"]).end("FAILED")

    async def again() -> bool:
        return len(dashboards.submissions) == 2

    await eventually(again, "the second attempt runs")
    assert "orphan" in await seen.names(PODS)


async def looked_at(dashboards: RayDashboards, job_id: str, times: int) -> None:
    run = dashboards.run_of(job_id)
    goal = run.looks + times

    async def often_enough() -> bool:
        return run.looks >= goal

    await eventually(often_enough, f"the job is looked at {times} times more")


async def test_two_problems_that_stand_are_told_once_for_each_edit(
    seen: Observed, operator: Operator, dashboards: RayDashboards
) -> None:
    status = await start(seen, submissionMode="HTTPMode")
    for edit in ({"ttlSecondsAfterFinished": -5, "entrypointResources": "no json"}, {"ttlSecondsAfterFinished": -6}):
        await seen.api.patch(RAYJOBS, seen.namespace, "demo", {"spec": edit})
        await looked_at(dashboards, status["jobId"], 5)
    notes = await seen.events("InvalidRayJobSpec")
    assert len(notes) == 2
    assert all("spec.ttlSecondsAfterFinished" in note and "spec.entrypointResources" in note for note in notes)


async def test_two_names_that_others_have_are_told_once(
    seen: Observed, operator: Operator, dashboards: RayDashboards
) -> None:
    service = {"metadata": {"name": "demo-head-svc"}, "spec": {"ports": [{"port": 80}], "clusterIP": "None"}}
    await seen.api.create(SERVICES, seen.namespace, {"apiVersion": "v1", "kind": "Service", **service})
    status = await start(seen, submissionMode="HTTPMode")
    await seen.api.patch(PODGROUPS, seen.namespace, "ray-demo-pg", {"metadata": {"ownerReferences": None}})
    await seen.event("NameTaken", "ray-demo-pg")
    await looked_at(dashboards, status["jobId"], 5)
    assert len(await seen.events("NameTaken")) == 2


async def test_a_deadline_between_two_attempts_ends_the_job_and_is_no_attempt(
    seen: Observed, operator: Operator, dashboards: RayDashboards
) -> None:
    status = await start(seen, submissionMode="HTTPMode", backoffLimit=1)
    (head,) = await seen.pods("headgroup")
    hold = {"metadata": {"finalizers": ["example.com/not-yet"]}}
    await seen.api.patch(PODS, seen.namespace, head["metadata"]["name"], hold)
    dashboards.run_of(status["jobId"]).end("FAILED")
    assert (await seen.job_state("demo", "Retrying"))["failed"] == 1
    await seen.api.patch(RAYJOBS, seen.namespace, "demo", {"spec": {"activeDeadlineSeconds": 1}})
    ended = await seen.job_state("demo", "Failed")
    assert (ended["reason"], ended["failed"]) == ("DeadlineExceeded", 1)
    await seen.api.patch(PODS, seen.namespace, head["metadata"]["name"], {"metadata": {"finalizers": None}})


async def test_the_submitter_of_each_attempt_is_told_of(
    seen: Observed, operator: Operator, dashboards: RayDashboards
) -> None:
    await seen.api.create(RAYJOBS, seen.namespace, ray_job("demo", "fail", backoffLimit=1))
    await seen.job_state("demo", "Failed")

    async def both() -> bool:
        return len(await seen.events("CreatedRayJobSubmitter")) == 2

    await eventually(both, "both submitters were told of")


async def test_muster_asks_the_head_pod_wherever_its_users_have_its_service_lead(
    seen: Observed, operator: Operator, dashboards: RayDashboards
) -> None:
    status = await start(seen, submissionMode="HTTPMode")
    away = {"type": "ExternalName", "externalName": "other-head-svc.other.svc.cluster.local"}
    name = f"{status['rayClusterName']}-head-svc"
    await seen.api.patch(SERVICES, seen.namespace, name, {"spec": away})
    await looked_at(dashboards, status["jobId"], 5)
    assert dashboards.asked == {"10.0.0.1"}


async def test_a_job_of_another_cluster_that_the_status_is_made_to_name_is_not_stopped(
    seen: Observed, operator: Operator, dashboards: RayDashboards
) -> None:
    status = await start(seen, submissionMode="HTTPMode")
    await seen.api.create(RAYJOBS, seen.namespace, ray_job("evil", "run", jobId=status["jobId"]))
    await seen.job_state("evil", "Running")
    await operator.kill()
    # The other's job id is that of the own spec; the other's cluster is slipped into the status.
    forged = {"status": {"rayClusterName": status["rayClusterName"]}}
    await seen.api.patch(RAYJOBS, seen.namespace, "evil", forged, subresource="status")
    await seen.api.delete(RAYJOBS, seen.namespace, "evil")
    await operator.start()

    async def is_gone() -> bool:
        return await seen.get(RAYJOBS, "evil") is None

    await eventually(is_gone, "the RayJob is gone")
    assert dashboards.stops == []


async def test_a_status_that_names_no_possible_cluster_is_told_and_can_be_put_right(
    seen: Observed, operator: Operator, dashboards: RayDashboards
) -> None:
    status = await start(seen, submissionMode="HTTPMode")
    forged = {"status": {"rayClusterName": "../../../x"}}
    await seen.api.patch(RAYJOBS, seen.namespace, "demo", forged, subresource="status")
    told = await seen.event("InvalidRayJobStatus", "status.rayClusterName")
    assert '"../../../x" can\'t be the name of a RayCluster' in told
    assert f'{{"status":{{"rayClusterName":"{status["rayClusterName"]}"}}}}' in told
    job = await seen.until(RAYJOBS, "demo", lambda job: job["status"].get("message") == told, "the status says so, too")
    assert (job["status"]["jobDeploymentStatus"], job["status"]["jobStatus"]) == ("Running", "RUNNING")
    right = {"status": {"rayClusterName": status["rayClusterName"]}}
    await seen.api.patch(RAYJOBS, seen.namespace, "demo", right, subresource="status")
    dashboards.run_of(status["jobId"]).end("SUCCEEDED")
    assert (await seen.job_state("demo", "Complete"))["message"] == "the job is SUCCEEDED"


async def test_a_job_whose_status_names_no_possible_cluster_can_be_deleted(seen: Observed, operator: Operator) -> None:
    await start(seen)
    forged = {"status": {"rayClusterName": "../x", "jobDeploymentStatus": "Suspending"}}
    await seen.api.patch(RAYJOBS, seen.namespace, "demo", forged, subresource="status")
    await seen.event("InvalidRayJobStatus", "status.rayClusterName")
    await seen.api.delete(RAYJOBS, seen.namespace, "demo")
    await seen.gone(RAYJOBS, RAYCLUSTERS)


async def test_a_state_that_nobody_knows_is_told_and_a_suspension_leads_out_of_it(
    seen: Observed, operator: Operator, dashboards: RayDashboards
) -> None:
    first = await start(seen, submissionMode="HTTPMode", shutdownAfterJobFinishes=True)
    strange = {"status": {"jobDeploymentStatus": "Foo"}}
    await seen.api.patch(RAYJOBS, seen.namespace, "demo", strange, subresource="status")
    note = await seen.event("UnknownJobDeploymentStatus", 'status.jobDeploymentStatus: "Foo"')
    assert "Initializing, " in note
    assert "set spec.suspend to true" in note
    assert await seen.names(RAYCLUSTERS) == {first["rayClusterName"]}
    await seen.api.patch(RAYJOBS, seen.namespace, "demo", {"spec": {"suspend": True}})
    await seen.job_state("demo", "Suspended")
    await seen.gone(RAYCLUSTERS, PODS)
    await seen.api.patch(RAYJOBS, seen.namespace, "demo", {"spec": {"suspend": False}})
    assert (await runs(seen))["jobId"] != first["jobId"]


async def test_a_job_in_a_state_that_nobody_knows_can_be_deleted(
    seen: Observed, operator: Operator, dashboards: RayDashboards
) -> None:
    status = await start(seen, submissionMode="HTTPMode")
    strange = {"status": {"jobDeploymentStatus": "Foo"}}
    await seen.api.patch(RAYJOBS, seen.namespace, "demo", strange, subresource="status")
    await seen.event("UnknownJobDeploymentStatus")
    await seen.api.delete(RAYJOBS, seen.namespace, "demo")
    await seen.gone(RAYJOBS, RAYCLUSTERS, PODS)
    assert dashboards.stops == [status["jobId"]]


async def test_a_job_whose_cluster_is_not_its_own_any_more_fails_and_says_so(
    seen: Observed, operator: Operator
) -> None:
    status = await start(seen, submissionMode="HTTPMode")
    disown = {"metadata": {"ownerReferences": None}}
    name = status["rayClusterName"]
    await seen.api.patch(RAYCLUSTERS, seen.namespace, name, disown)
    status = await seen.job_state("demo", "Failed")
    assert status["reason"] == "RayClusterLost"
    words = (
        f"RayCluster {name} is not the job's any more: there is no controlling owner in its metadata.ownerReferences"
    )
    assert words in status["message"]
    assert await seen.names(RAYCLUSTERS) == {name}


@pytest.mark.parametrize(
    ("method", "what", "reason", "spec"),
    [
        ("POST", "rayclusters$", "FailedToCreateRayCluster", {}),
        ("POST", "jobs$", "FailedToCreateRayJobSubmitter", {}),
        ("DELETE", "rayclusters/", "FailedToDeleteRayCluster", {"shutdownAfterJobFinishes": True}),
    ],
)
async def test_a_refused_write_is_told_in_kuberays_word_and_tried_again(
    proxy: FaultProxy,
    seen: Observed,
    dashboards: RayDashboards,
    stand_ins: StandIns,
    method: str,
    what: str,
    reason: str,
    spec: dict[str, Any],
) -> None:
    proxy.inject(Answer(500, "InternalError"), when=matching(method, f"/{what}"), times=1)
    async with Operator(proxy.connection(), seen.namespace, dashboards):
        await seen.api.create(RAYJOBS, seen.namespace, ray_job("demo", **spec))
        await seen.event(reason)
        await seen.job_state("demo", "Complete")
        if spec:
            await seen.gone(RAYCLUSTERS)


async def test_a_job_that_another_operator_began_goes_on_with_the_cluster_that_it_named(
    connection: Connection, seen: Observed, dashboards: RayDashboards, stand_ins: StandIns
) -> None:
    job = await seen.api.create(RAYJOBS, seen.namespace, ray_job("demo"))
    begun = {"jobDeploymentStatus": "Initializing", "rayClusterName": "demo-raycluster-abcde", "jobId": "demo-xyz12"}
    begun["startTime"] = timestamp(time.time())
    await seen.api.patch(RAYJOBS, seen.namespace, "demo", {"status": begun}, subresource="status")
    owner = {"apiVersion": "ray.io/v1", "kind": "RayJob", "name": "demo", "uid": job["metadata"]["uid"]}
    cluster = ray_cluster("demo-raycluster-abcde")
    cluster["metadata"]["ownerReferences"] = [{**owner, "controller": True, "blockOwnerDeletion": True}]
    cluster["metadata"]["labels"] = {"ray.io/originated-from-crd": "RayJob", "ray.io/originated-from-cr-name": "demo"}
    made = await seen.api.create(RAYCLUSTERS, seen.namespace, cluster)
    async with Operator(connection, seen.namespace, dashboards):
        status = await seen.job_state("demo", "Complete")
    assert (status["rayClusterName"], status["jobId"]) == ("demo-raycluster-abcde", "demo-xyz12")
    (left,) = await seen.all(RAYCLUSTERS)
    assert left["metadata"]["uid"] == made["metadata"]["uid"]
