"""What pytest does around all tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

from tests.one_process import scope

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


def test_tests_that_share_something_run_in_one_process_and_the_others_in_any(tmp_path: Path) -> None:
    folder = tmp_path / "tests" / "differential"
    folder.mkdir(parents=True)
    said = 'import os, pathlib\nimport pytest\n\n@pytest.mark.parametrize("n", range(6))\ndef test_a(n):\n'
    said += f'    with open({str(tmp_path / "workers")!r}, "a") as file:\n'
    said += '        file.write(os.environ["PYTEST_XDIST_WORKER"] + "\\n")\n'
    (folder / "test_shared.py").write_text(said)
    options = ["-q", "-n", "2", "--dist", "loadgroup", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options, f"--rootdir={tmp_path}", "-c", "/dev/null", "tests"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])}
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "6 passed" in run.stdout, run.stdout + run.stderr
    assert len(set((tmp_path / "workers").read_text().split())) == 1
    assert scope("tests/api/test_crds.py::test_a") != scope("tests/api/test_crds.py::test_b")


def test_long_tests_are_handed_out_before_the_others(tmp_path: Path) -> None:
    said = "import pytest\n\ndef test_a(): pass\n\n@pytest.mark.long\ndef test_b(): pass\n\ndef test_c(): pass\n"
    (tmp_path / "test_order.py").write_text(said)
    options = ["-v", "-p", "tests.conftest", "-p", "no:cacheprovider", f"--rootdir={tmp_path}", "-c", "/dev/null"]
    command = [sys.executable, "-m", "pytest", *options, str(tmp_path / "test_order.py")]
    run = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False)
    order = re.findall(r"::test_(\w) PASSED", run.stdout)
    assert order == ["b", "a", "c"], run.stdout


def test_no_property_fails_because_the_machine_is_busy() -> None:
    assert settings().deadline is None
    assert HealthCheck.too_slow in settings().suppress_health_check
