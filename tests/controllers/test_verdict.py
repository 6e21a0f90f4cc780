"""The verdict on a running job, from what Ray, the submitter and the clock say."""

from __future__ import annotations

from typing import Any

import pytest

from muster.api.rayjob import JobStatus, RayJobInfo
from muster.controllers.clock import timestamp
from muster.controllers.rayjob.submission import Submitter, SubmitterState
from muster.controllers.rayjob.verdict import (
    RAY_JOB_LOST,
    Complete,
    Decision,
    Fail,
    Missing,
    Sight,
    Silent,
    Stay,
    Submit,
    judge,
)
from muster.ray import job_info
from muster.ray.job_info import JobInfo

NOW = 1_800_000_000.0
STARTED = NOW - 100
ACTIVE = Submitter(SubmitterState.ACTIVE)
DONE = Submitter(SubmitterState.COMPLETE)
BROKEN = Submitter(SubmitterState.FAILED, "Reason: BackoffLimitExceeded. Message: it has failed")
NONE = Submitter(SubmitterState.ABSENT)


def info(status: str, *, ended: float | None = None, started: float = STARTED, message: str = "said by Ray") -> JobInfo:
    end = None if ended is None else int(ended * 1000)
    return JobInfo("id", job_info.JobStatus(status), message, None, int(started * 1000), end)


def decision(
    answer: JobInfo | Missing | Silent | None,
    *,
    mode: str = "K8sJobMode",
    recorded: JobStatus = JobStatus.NEW,
    submitter: Submitter = ACTIVE,
    silent_for: float | None = None,
    times: RayJobInfo | None = None,
    head_gone: bool = False,
) -> Decision:
    sight = Sight(
        mode=mode,
        job_id="id",
        recorded=recorded,
        info=times,
        message="stored",
        answer=answer,
        submitter=submitter,
        silent_since=None if silent_for is None else NOW - silent_for,
        now=NOW,
        status_check_timeout=300,
        submitter_grace=300,
        head_gone=head_gone,
    )
    return judge(sight)


def reason(outcome: Decision) -> str | None:
    return outcome.reason if isinstance(outcome, Fail) else None


@pytest.mark.parametrize("submitter", [ACTIVE, DONE, BROKEN, NONE])
@pytest.mark.parametrize("status", ["PENDING", "RUNNING"])
def test_a_job_that_ray_runs_goes_on_whatever_became_of_the_submitter(status: str, submitter: Submitter) -> None:
    outcome = decision(info(status), submitter=submitter)
    assert isinstance(outcome, Stay)
    assert outcome.changes["job_status"] == status


@pytest.mark.parametrize(
    ("status", "submitter", "expected"),
    [
        pytest.param("SUCCEEDED", DONE, Complete, id="succeeded"),
        pytest.param("SUCCEEDED", BROKEN, Complete, id="a broken submitter does not spoil a success"),
        pytest.param("SUCCEEDED", NONE, Complete, id="no submitter"),
        pytest.param("STOPPED", DONE, Complete, id="stopped by somebody"),
        pytest.param("FAILED", DONE, Fail, id="a submitter that ends well does not make up for a failure"),
        pytest.param("SUCCEEDED", ACTIVE, Stay, id="the submitter may still write its log"),
        pytest.param("FAILED", ACTIVE, Stay, id="also of a failure"),
    ],
)
def test_ray_says_how_a_job_ended(status: str, submitter: Submitter, expected: type) -> None:
    assert isinstance(decision(info(status, ended=NOW - 1), submitter=submitter), expected)


def test_a_failure_carries_rays_own_words() -> None:
    outcome = decision(info("FAILED", ended=NOW - 1, message="exit code 3"), submitter=DONE)
    assert isinstance(outcome, Fail)
    assert (outcome.reason, outcome.message) == ("AppFailed", "exit code 3")


def test_a_submitter_that_does_not_end_is_waited_for_only_so_long() -> None:
    assert isinstance(decision(info("SUCCEEDED", ended=NOW - 299)), Stay)
    late = decision(info("SUCCEEDED", ended=NOW - 301))
    assert isinstance(late, Complete)
    assert late.changes["reason"] == "JobDeploymentStatusTransitionGracePeriodExceeded"
    assert reason(decision(info("FAILED", ended=NOW - 301))) == "AppFailed"


def test_a_recorded_verdict_needs_no_dashboard() -> None:
    times = RayJobInfo(start_time=timestamp(STARTED), end_time=timestamp(NOW - 5))
    assert isinstance(decision(None, recorded=JobStatus.SUCCEEDED, times=times, submitter=DONE), Complete)
    assert isinstance(decision(None, recorded=JobStatus.SUCCEEDED, times=times, submitter=ACTIVE), Stay)
    failed = decision(None, recorded=JobStatus.FAILED, times=times, submitter=DONE)
    assert isinstance(failed, Fail)
    assert failed.message == "stored"


@pytest.mark.parametrize(
    ("mode", "submitter", "expected"),
    [
        pytest.param("HTTPMode", NONE, "submit", id="HTTPMode: submit"),
        pytest.param("K8sJobMode", ACTIVE, "stay", id="the submitter has not got there yet"),
        pytest.param("K8sJobMode", NONE, "submit", id="the submitter's Job was deleted before it submitted"),
        pytest.param("K8sJobMode", BROKEN, "SubmissionFailed", id="the submitter gave up"),
        pytest.param("K8sJobMode", DONE, "AppFailed", id="the submitter thinks that it is done"),
    ],
)
def test_a_job_that_ray_never_had(mode: str, submitter: Submitter, expected: str) -> None:
    outcome = decision(Missing(), mode=mode, submitter=submitter)
    names = {Submit: "submit", Stay: "stay"}
    assert (reason(outcome) or names[type(outcome)]) == expected


@pytest.mark.parametrize(
    ("submitter", "expected"),
    [
        pytest.param(ACTIVE, "Stay", id="Ray is not up yet"),
        pytest.param(BROKEN, "SubmissionFailed", id="the submitter gave up"),
        pytest.param(DONE, "AppFailed", id="the submitter thinks that it is done"),
        pytest.param(NONE, "SubmissionFailed", id="the head was made without one"),
    ],
)
def test_a_job_that_its_head_is_to_submit(submitter: Submitter, expected: str) -> None:
    outcome = decision(Missing(), mode="SidecarMode", submitter=submitter)
    assert (reason(outcome) or type(outcome).__name__) == expected


@pytest.mark.parametrize("mode", ["K8sJobMode", "HTTPMode", "SidecarMode", "InteractiveMode"])
@pytest.mark.parametrize("recorded", [JobStatus.NEW, JobStatus.RUNNING])
@pytest.mark.parametrize("answer", [Silent("no address"), Missing()])
def test_with_a_head_that_will_not_come_again_a_job_is_lost_at_once(
    mode: str, recorded: JobStatus, answer: Silent | Missing
) -> None:
    assert reason(decision(answer, mode=mode, submitter=NONE, recorded=recorded, head_gone=True)) == RAY_JOB_LOST


def test_a_verdict_that_is_in_outlives_the_head() -> None:
    times = RayJobInfo(start_time=timestamp(STARTED), end_time=timestamp(NOW - 5))
    outcome = decision(None, recorded=JobStatus.SUCCEEDED, times=times, submitter=DONE, head_gone=True)
    assert isinstance(outcome, Complete)
    assert isinstance(decision(info("RUNNING"), head_gone=True), Stay), "Ray answers: the head was only slow to go"


def test_a_job_that_its_user_has_not_submitted_yet_is_waited_for_by_its_id() -> None:
    outcome = decision(Missing(), mode="InteractiveMode", submitter=NONE, silent_for=10)
    assert isinstance(outcome, Stay)
    assert "Ray knows no job id yet" in outcome.changes["message"]
    assert outcome.changes["job_status_check_failure_start_time"] is None


@pytest.mark.parametrize("mode", ["HTTPMode", "K8sJobMode", "InteractiveMode"])
@pytest.mark.parametrize("submitter", [ACTIVE, NONE])
@pytest.mark.parametrize("recorded", [JobStatus.PENDING, JobStatus.RUNNING])
def test_a_job_that_ray_has_forgotten_is_lost_and_never_run_again(
    mode: str, submitter: Submitter, recorded: JobStatus
) -> None:
    outcome = decision(Missing(), mode=mode, submitter=submitter, recorded=recorded)
    assert reason(outcome) == RAY_JOB_LOST


def test_a_second_run_under_the_same_id_is_found_out_by_its_start() -> None:
    times = RayJobInfo(start_time=timestamp(STARTED))
    same = decision(info("RUNNING"), recorded=JobStatus.RUNNING, times=times)
    other = decision(info("RUNNING", started=NOW - 3), recorded=JobStatus.RUNNING, times=times)
    assert isinstance(same, Stay)
    assert reason(other) == RAY_JOB_LOST


@pytest.mark.parametrize(
    ("silent_for", "expected"),
    [(None, "since now"), (0.0, "wait"), (299.0, "wait"), (300.0, "JobStatusCheckTimeoutExceeded")],
)
def test_a_silent_dashboard_is_borne_for_a_while(silent_for: float | None, expected: str) -> None:
    outcome = decision(Silent("refused"), recorded=JobStatus.RUNNING, silent_for=silent_for)
    if isinstance(outcome, Stay):
        begins = outcome.changes.get("job_status_check_failure_start_time") == timestamp(NOW)
        assert ("since now" if begins else "wait") == expected
        assert "refused" in outcome.changes["message"], "told from the first silence on"
    else:
        assert reason(outcome) == expected


def test_an_answer_ends_the_silence() -> None:
    outcome: Any = decision(info("RUNNING"), silent_for=200)
    assert outcome.changes["job_status_check_failure_start_time"] is None
    assert outcome.changes["message"] == "said by Ray"


def test_that_ray_does_not_know_the_job_yet_is_an_answer_too_and_takes_back_what_was_told_of_a_silence() -> None:
    after_silence: Any = decision(Missing(), submitter=ACTIVE, silent_for=200)
    assert (after_silence.changes["message"], after_silence.changes["job_status_check_failure_start_time"]) == (
        None,
    ) * 2
    outcome: Any = decision(Missing(), submitter=ACTIVE)
    assert "message" not in outcome.changes, "what else is told stays"
