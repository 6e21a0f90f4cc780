"""How a test of KubeRay's is run, and what its output says."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.compatibility.cases import Case
from tests.compatibility.execution import Outcome, Result, execute, outcome_of

CASE = Case("e2e", "TestRayJob", "Successful RayJob")
WHOLE = Case("e2e", "TestRayClusterSuspend")


@pytest.mark.parametrize(
    ("case", "printed", "outcome"),
    [
        (
            CASE,
            "--- PASS: TestRayJob (9.1s)\n    --- PASS: TestRayJob/Successful_RayJob (9.0s)\nPASS\n",
            Outcome.PASSED,
        ),
        (
            CASE,
            "--- FAIL: TestRayJob (9.1s)\n    --- FAIL: TestRayJob/Successful_RayJob (9.0s)\nFAIL\n",
            Outcome.FAILED,
        ),
        # A part that fails its test has no line of its own, or one that says PASS.
        (
            CASE,
            "--- FAIL: TestRayJob (9.1s)\n    --- PASS: TestRayJob/Successful_RayJob (9.0s)\nFAIL\n",
            Outcome.FAILED,
        ),
        (CASE, "--- FAIL: TestRayJob (9.1s)\nFAIL\n", Outcome.FAILED),
        (CASE, "--- PASS: TestRayJob (0.1s)\nPASS\n", Outcome.NOT_FOUND),
        (CASE, "testing: warning: no tests to run\nPASS\n", Outcome.NOT_FOUND),
        (CASE, "panic: test timed out after 15m0s\n", Outcome.FAILED),
        (WHOLE, "--- PASS: TestRayClusterSuspend (30.0s)\nPASS\n", Outcome.PASSED),
        (WHOLE, "--- SKIP: TestRayClusterSuspend (0.0s)\nPASS\n", Outcome.SKIPPED),
    ],
)
def test_what_a_program_prints_says_how_a_case_ended(case: Case, printed: str, outcome: Outcome) -> None:
    assert outcome_of(case, printed) is outcome


def program(folder: Path, script: str) -> Path:
    path = folder / "e2e.test"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def ran(folder: Path, script: str, *, interrupted: threading.Event | None = None) -> Result:
    return execute(
        WHOLE,
        program(folder, script),
        cwd=folder,
        environment={"KUBERAY_TEST_RAY_VERSION": "2.60.0"},
        log=folder / "log",
        deadline=60,
        interrupted=interrupted or threading.Event(),
    )


def test_a_case_is_asked_for_by_its_pattern_and_its_output_is_kept(tmp_path: Path) -> None:
    result = ran(
        tmp_path, 'echo "$@" $KUBERAY_TEST_RAY_VERSION $PWD; echo "--- PASS: TestRayClusterSuspend (1.0s)" >&2'
    )
    assert result.outcome is Outcome.PASSED
    wanted = f"-test.v -test.run=^TestRayClusterSuspend$ -test.timeout=60s 2.60.0 {tmp_path}"
    assert result.log.read_text().splitlines()[0] == wanted


def test_an_interrupted_run_ends_its_programs(tmp_path: Path) -> None:
    interrupted = threading.Event()
    interrupted.set()
    assert ran(tmp_path, "exec sleep 600", interrupted=interrupted).outcome is Outcome.KILLED
