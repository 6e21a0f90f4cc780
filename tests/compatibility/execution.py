"""Runs one test of KubeRay's and says how it ended."""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from tests.compatibility.cases import Case

_OWN_TIME = 60.0
"""Seconds that a program has beyond its deadline, to clean up and to say what it waited for."""


class Outcome(Enum):
    """How a test ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    NOT_FOUND = "not found"
    KILLED = "killed"


@dataclass(frozen=True, slots=True)
class Result:
    """A test's end, the seconds it took, and the file with all that it printed."""

    case: Case
    outcome: Outcome
    seconds: float
    log: Path


def execute(
    case: Case,
    program: Path,
    *,
    cwd: Path,
    environment: Mapping[str, str],
    log: Path,
    deadline: float,
    interrupted: threading.Event,
) -> Result:
    """Run it, with `deadline` seconds to end by itself; it is killed when it does not, or when `interrupted` is set."""
    command = [str(program), "-test.v", f"-test.run={case.pattern}", f"-test.timeout={deadline:.0f}s"]
    begin = time.monotonic()
    with log.open("w") as output:
        child = subprocess.Popen(
            command,
            cwd=cwd,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        ended = _wait(child, begin + deadline + _OWN_TIME, interrupted)
    outcome = outcome_of(case, log.read_text(errors="replace")) if ended else Outcome.KILLED
    return Result(case, outcome, time.monotonic() - begin, log)


def _wait(child: subprocess.Popen[bytes], until: float, interrupted: threading.Event) -> bool:
    """Wait for the program's end; False when it had to be killed."""
    while child.poll() is None:
        if time.monotonic() > until or interrupted.wait(0.2):
            child.kill()
            child.wait()
            return False
    return True


def outcome_of(case: Case, printed: str) -> Outcome:
    """What a test program's output says of a case. A pattern that matches nothing is no success."""
    ends = re.findall(rf"^ *--- (PASS|FAIL|SKIP): {re.escape(case.name)} \(", printed, re.MULTILINE)
    # The parts fail the test that they belong to, and then have no line of their own.
    if re.search(rf"^--- FAIL: {re.escape(case.test)} \(", printed, re.MULTILINE) or "FAIL" in ends:
        return Outcome.FAILED
    if "panic: " in printed:
        return Outcome.FAILED
    if not ends:
        return Outcome.NOT_FOUND
    return Outcome.PASSED if ends == ["PASS"] else Outcome.SKIPPED
