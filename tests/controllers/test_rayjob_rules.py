"""Deadlines, the sentence that says why a job waits, and the submitter's state: pure rules of the RayJob reconciler."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from muster.api.rayjob import RayJobSpec
from muster.controllers.context import ObservedRayCluster
from muster.controllers.rayjob.cluster import is_ready, readable_status
from muster.controllers.rayjob.deadlines import deadlines
from muster.controllers.rayjob.look import Look
from muster.controllers.rayjob.sidecar import head_has_begun
from muster.controllers.rayjob.submission import SubmitterState
from muster.controllers.rayjob.submitter import submitter_of
from muster.controllers.rayjob.waiting import why_waiting
from muster.kube.objects import Job, ObjectMeta, OwnerReference, PodGroup


@pytest.mark.parametrize(
    ("spec", "running", "expected"),
    [
        pytest.param({}, False, [], id="none"),
        pytest.param({"activeDeadlineSeconds": -1, "preRunningDeadlineSeconds": 0}, False, [], id="no numbers for one"),
        pytest.param({"activeDeadlineSeconds": 60}, False, [(1060, "DeadlineExceeded")], id="active"),
        pytest.param({"activeDeadlineSeconds": 60}, True, [(1060, "DeadlineExceeded")], id="active while running"),
        pytest.param({"preRunningDeadlineSeconds": 9}, False, [(1009, "PreRunningDeadlineExceeded")], id="before"),
        pytest.param({"preRunningDeadlineSeconds": 9}, True, [], id="before is over once it runs"),
        pytest.param(
            {"activeDeadlineSeconds": 5, "preRunningDeadlineSeconds": 9},
            False,
            [(1005, "DeadlineExceeded"), (1009, "PreRunningDeadlineExceeded")],
            id="the earlier one first",
        ),
    ],
)
def test_deadlines_count_from_the_start_of_the_attempt(
    spec: dict[str, Any], running: bool, expected: list[tuple[float, str]]
) -> None:
    found = deadlines(RayJobSpec.parse(spec), 1000.0, 1000.0, running=running)
    assert [(deadline.at, deadline.reason) for deadline in found] == expected


def test_the_time_to_be_active_is_the_jobs_and_the_time_to_get_to_run_is_each_attempts() -> None:
    spec = RayJobSpec.parse({"activeDeadlineSeconds": 60, "preRunningDeadlineSeconds": 9})
    found = {deadline.reason.value: deadline.at for deadline in deadlines(spec, 1000.0, 1040.0, running=False)}
    assert found == {"DeadlineExceeded": 1060.0, "PreRunningDeadlineExceeded": 1049.0}


def group(phase: str, refusal: str | None = None, **annotations: str) -> PodGroup:
    conditions = [{"type": "Unschedulable", "status": "True", "message": refusal}] if refusal else []
    metadata = {"name": "pg", "annotations": {key.replace("__", "/"): value for key, value in annotations.items()}}
    raw = {"metadata": metadata, "status": {"phase": phase, "conditions": conditions}}
    return msgspec.convert(raw, PodGroup)


FAILURE = {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"}
NO_HEAD, NO_WORKER = ({**FAILURE, "reason": f"FailedCreate{each}Pod"} for each in ("Head", "Worker"))
HEAD_WAITS = {"type": "HeadPodReady", "status": "False", "reason": "ImagePullBackOff", "message": "no such image"}
HEAD_READY = {"type": "HeadPodReady", "status": "True"}
REASON = {"muster.dev__reason": '{"code": "Quota", "message": "queue q is full"}'}
UP = {"head": {"podIP": "10.0.0.1"}}


@pytest.mark.parametrize(
    ("cluster", "pod_group", "expected"),
    [
        pytest.param({"conditions": [FAILURE]}, group("Pending", "no room"), "exceeded quota", id="pods are refused"),
        pytest.param(
            {"conditions": [HEAD_WAITS, {"type": "RayClusterSuspended", "status": "True"}]},
            group("Pending", "no room"),
            "The RayCluster is suspended: set spec.rayClusterSpec.suspend",
            id="suspended",
        ),
        pytest.param(
            {"conditions": [{"type": "RayClusterSuspending", "status": "True"}]},
            group("Running"),
            "The RayCluster is suspended",
            id="suspending",
        ),
        pytest.param(
            {"conditions": [NO_HEAD]},
            group("Pending", "no room"),
            "The RayCluster's head pod can't be made: exceeded quota",
            id="the head is refused",
        ),
        pytest.param(
            {"conditions": [NO_WORKER]},
            None,
            "A worker pod of the RayCluster can't be made: exceeded quota",
            id="worker",
        ),
        pytest.param(
            {},
            group("Pending", "13/13 tasks in gang unschedulable: larger than the whole cluster"),
            "The gang waits: larger than the whole cluster",
            id="no prefix twice",
        ),
        pytest.param({}, group("Pending", "2 of 3 fit"), "The gang waits: 2 of 3 fit", id="the scheduler's condition"),
        pytest.param({}, group("Pending", **REASON), "The gang waits: queue q is full", id="the annotation's message"),
        pytest.param({}, group("Inqueue"), "The gang waits for its place", id="no word yet"),
        pytest.param(
            {"conditions": [HEAD_WAITS], **UP}, group("Running"), "ImagePullBackOff: no such image", id="the head pod"
        ),
        pytest.param(
            {"conditions": [HEAD_READY], **UP, "readyWorkerReplicas": 1, "desiredWorkerReplicas": 3},
            group("Running"),
            "1 of 3 workers are ready",
            id="the workers",
        ),
    ],
)
def test_a_waiting_job_says_who_keeps_it_waiting(
    cluster: dict[str, Any], pod_group: PodGroup | None, expected: str
) -> None:
    assert expected in why_waiting(cluster, pod_group)


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([], SubmitterState.ACTIVE),
        ([("Complete", "True")], SubmitterState.COMPLETE),
        ([("FailureTarget", "True"), ("Failed", "True")], SubmitterState.FAILED),
        ([("Failed", "False")], SubmitterState.ACTIVE),
        ([("Suspended", "True")], SubmitterState.ACTIVE),
    ],
)
def test_the_submitter_is_what_the_conditions_of_its_job_say(
    conditions: list[tuple[str, str]], expected: SubmitterState
) -> None:
    raw = {"status": {"conditions": [{"type": kind, "status": status} for kind, status in conditions]}}
    assert submitter_of(msgspec.convert(raw, Job)).state is expected


@pytest.mark.parametrize(
    "status",
    [
        {"state": "ready", "observedGeneration": "abc"},
        {"state": "ready", "conditions": ["x"]},
        {"state": "ready", "head": "x"},
        {"state": ["ready"]},
    ],
)
def test_a_cluster_whose_status_others_have_spoilt_is_not_ready(status: dict[str, Any]) -> None:
    references = [OwnerReference(api_version="ray.io/v1", kind="RayJob", name="demo", uid="u", controller=True)]
    meta = ObjectMeta(name="demo-x", namespace="team", uid="c", generation=1, owner_references=references)
    look = cast(Look, SimpleNamespace(job=SimpleNamespace(metadata=SimpleNamespace(uid="u"))))
    sound = ObservedRayCluster(metadata=meta, status={"state": "ready", "observedGeneration": 1})
    assert is_ready(look, sound)
    spoilt = ObservedRayCluster(metadata=meta, status=status)
    assert not is_ready(look, spoilt)
    assert not head_has_begun(spoilt)
    assert why_waiting(readable_status(spoilt), None) == "The head pod is not ready"
