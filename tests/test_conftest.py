"""What pytest does around all tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

_TEST = """
import signal, subprocess, sys

def test_of_it_and_of_what_it_starts():
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    said = [sys.executable, "-c", "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"]
    assert subprocess.check_output(said, text=True) == "True\\n"
"""


def test_a_run_that_a_script_put_into_the_background_can_be_interrupted(tmp_path: Path) -> None:
    test = tmp_path / "test_interrupts.py"
    test.write_text(_TEST)
    options = ["-q", "-p", "tests.conftest", "-p", "no:cacheprovider", f"--rootdir={tmp_path}", "-c", "/dev/null"]
    in_background = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]
    command = [*in_background, sys.executable, "-m", "pytest", *options, str(test)]
    run = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False)
    assert "1 passed" in run.stdout, run.stdout


def test_no_property_fails_because_the_machine_is_busy() -> None:
    assert settings().deadline is None
    assert HealthCheck.too_slow in settings().suppress_health_check
