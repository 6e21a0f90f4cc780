"""How `muster submit` ends when something is wrong that has nothing to do with the job."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from muster.cli import app
from muster.ray.job_info import JobInfo, Submission
from muster.ray.job_run import JobRun
from muster.ray.submitter import submitter_job
from muster.ray.submitter_exit import SubmitterExit
from tests.ray.ray_objects import ray_job

RUNNER = CliRunner()
DOCUMENT = Submission("s", "x").to_json()


def test_a_defect_of_ours_is_no_verdict_so_that_the_pod_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(_: JobRun) -> JobInfo:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(JobRun, "run", run)
    done = RUNNER.invoke(app, ["submit", "--submission", DOCUMENT, "--address", "127.0.0.1:1"])
    assert done.exit_code == SubmitterExit.DEFECT
    assert "ZeroDivisionError: a defect" in done.stderr


def test_an_address_that_is_none_is_bad_usage() -> None:
    done = RUNNER.invoke(app, ["submit", "--submission", DOCUMENT, "--address", "http://[::1:99"])
    assert done.exit_code == SubmitterExit.BAD_USAGE
    assert "address" in done.stderr


def test_only_a_verdict_ends_the_kubernetes_job() -> None:
    job = submitter_job(ray_job(entrypoint="x"), image="i", dashboard_address="a:1", submission_id="s")
    (codes,) = (rule["onExitCodes"] for rule in job["spec"]["podFailurePolicy"]["rules"] if "onExitCodes" in rule)
    assert codes["values"] == [SubmitterExit.JOB_FAILED]
