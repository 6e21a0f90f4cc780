from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from muster.api import rayjob
from muster.ray.job_info import JobInfo, JobStatus, Submission, UnexpectedDocument


@pytest.mark.parametrize(
    ("status", "terminal"),
    [("PENDING", False), ("RUNNING", False), ("STOPPED", True), ("SUCCEEDED", True), ("FAILED", True)],
)
def test_which_states_are_final(status: str, terminal: bool) -> None:
    assert JobInfo.from_document({"status": status}).status.terminal is terminal


def test_a_job_is_read_from_the_dashboards_answer() -> None:
    document = {
        "type": "SUBMISSION",
        "submission_id": "s",
        "status": "FAILED",
        "message": "m",
        "error_type": "E",
        "start_time": 1000,
        "end_time": 2000,
        "driver_exit_code": 3,
    }
    assert JobInfo.from_document(document) == JobInfo("s", JobStatus.FAILED, "m", "E", 1000, 2000, 3)


@pytest.mark.parametrize("moment", ["1e400", "1e300", "1e18", "1" + 400 * "0", "253402300800000", "-1", "true", '"x"'])
def test_a_time_that_is_none_counts_as_not_known(moment: str) -> None:
    answer = json.loads(f'{{"status": "RUNNING", "start_time": {moment}, "end_time": {moment}}}')
    job = JobInfo.from_document(answer)
    assert (job.start_time_ms, job.end_time_ms) == (None, None)


def test_a_message_with_half_a_character_can_be_sent_on() -> None:
    job = JobInfo.from_document(json.loads(r'{"status": "FAILED", "message": "it ended \ud800 so"}'))
    assert job.message.encode().decode() == "it ended ? so"


@pytest.mark.parametrize("document", [{}, {"status": None}, {"status": "LOST"}, [], "FAILED", None])
def test_an_answer_without_a_known_status_is_no_job(document: object) -> None:
    with pytest.raises(UnexpectedDocument):
        JobInfo.from_document(document)


@pytest.mark.parametrize(
    "document",
    [
        {"entrypoint": "x", "submission_id": "s"},
        {"entrypoint": "", "submission_id": "s", "metadata": {"a": "b"}},
        {"entrypoint": "x", "submission_id": "s", "runtime_env": {"a": [1, {"b": None}]}, "entrypoint_num_cpus": 0.5},
    ],
)
def test_a_submission_survives_its_journey(document: dict[str, Any]) -> None:
    submission = Submission(**document)
    assert submission.to_document() == document
    assert Submission.from_json(submission.to_json()) == submission


def test_an_id_given_apart_takes_the_place_of_the_documents() -> None:
    assert Submission.from_json('{"entrypoint": "x"}', "mine").submission_id == "mine"
    assert Submission.from_json('{"entrypoint": "x", "submission_id": "a"}', "mine").submission_id == "mine"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[]", "must be an object, got list"),
        ('{"entrypoint": "x"}', "submission_id: missing or empty"),
        ('{"entrypoint": "x", "submission_id": ""}', "submission_id: missing or empty"),
        ('{"entrypoint": 1, "submission_id": "s"}', "entrypoint: 1 has the wrong type"),
        ('{"submission_id": "s", "runtime_env": "x"}', "runtime_env: 'x' has the wrong type"),
        ('{"submission_id": "s", "entrypoint_num_cpus": true}', "entrypoint_num_cpus: True has the wrong type"),
        ('{"submission_id": "s", "entry_point": "x"}', "unknown field entry_point"),
    ],
)
def test_a_bad_submission_is_refused_with_the_field(text: str, message: str) -> None:
    with pytest.raises(UnexpectedDocument, match=message):
        Submission.from_json(text)


def test_the_submitters_path_loads_no_models_and_no_operator() -> None:
    program = (
        "import sys; import muster.ray.job_run; "
        "print([m for m in ('pydantic', 'kopf', 'kubernetes', 'yaml', 'aiohttp', 'msgspec') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_state_that_ray_never_says_is_no_state() -> None:
    with pytest.raises(UnexpectedDocument, match="'' is no state of a Ray job"):
        JobInfo.from_document({"submission_id": "s", "status": ""})


def test_the_operator_and_the_submitter_mean_the_same_states() -> None:
    assert rayjob.JobStatus is JobStatus
