"""What pytest does around the control plane: where it cannot be built, and when a run fails or is interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.api_access import wait_until
from tests.cluster.binaries import CONTROL_PLANE
from tests.cluster.cache import default_root
from tests.cluster.gobuild import go_binaries
from tests.cluster.process import background_programs

_REPOSITORY = Path(__file__).parents[2]
_TESTS = "tests/cluster/test_control_plane.py"
_TEST = f"{_TESTS}::test_the_api_server_is_ready_and_of_the_pinned_version"
_FULL_TEST = f"{_TESTS}::test_the_full_control_plane_runs_pods_and_jobs_on_fake_nodes"


def run_without_go(
    tmp_path: Path, *arguments: str, test: str = _TEST, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run one test where there is no Go and nothing in the cache but what the test put there."""
    variables = {"PATH": "/nowhere", "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), **environment}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments, test]
    return subprocess.run(command, cwd=_REPOSITORY, env=variables, capture_output=True, text=True, check=False)


def test_it_is_skipped_with_the_reason_and_the_remedy(tmp_path: Path) -> None:
    result = run_without_go(tmp_path)
    assert result.returncode == 0
    assert "1 skipped" in result.stdout
    assert "the control plane needs Go" in result.stdout
    assert "https://go.dev/dl/" in result.stdout


@pytest.mark.parametrize("value", ["true", "1"])
def test_it_fails_in_ci(tmp_path: Path, value: str) -> None:
    result = run_without_go(tmp_path, CI=value)
    assert result.returncode == 1
    assert "the control plane needs Go" in result.stdout


@pytest.mark.control_plane
def test_the_full_one_is_skipped_where_only_the_small_one_is_built(tmp_path: Path) -> None:
    for program in go_binaries(CONTROL_PLANE).values():
        link = tmp_path / "muster-cluster" / program.relative_to(default_root())
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(program)
    result = run_without_go(tmp_path, test=_FULL_TEST)
    assert result.returncode == 0
    assert "the control plane needs Go" in result.stdout


def test_it_can_be_left_out_by_its_mark(tmp_path: Path) -> None:
    result = run_without_go(tmp_path, "-m", "not control_plane")
    assert "1 deselected" in result.stdout


_USERS = """
import pathlib, threading

def test_that_fails(control_plane):
    assert pathlib.Path({seen!r}).write_text(str(control_plane.folder)) < 0

def test_that_never_ends(control_plane):
    pathlib.Path({begun!r}).touch()
    threading.Event().wait()
"""


@pytest.mark.control_plane
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_failing_and_interrupted_run_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    seen, begun, temporary = (tmp_path / name for name in ("seen", "begun", "temporary"))
    temporary.mkdir()
    (tmp_path / "test_users.py").write_text(_USERS.format(seen=str(seen), begun=str(begun)))
    options = ["-q", "-p", "tests.conftest", "-p", "no:cacheprovider", f"--rootdir={tmp_path}", "-c", "/dev/null"]
    command = [sys.executable, "-m", "pytest", *options, str(tmp_path / "test_users.py")]
    variables = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(_REPOSITORY)}
    with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True) as run:
        wait_until(begun.exists, "the second test runs", 90)
        pids = [program.pid for program in background_programs(Path(seen.read_text()))]
        run.send_signal(number)
        printed, _ = run.communicate(timeout=30)
    assert "KeyboardInterrupt" in printed
    assert "1 failed" in printed
    assert len(pids) == 2
    assert not [pid for pid in pids if Path(f"/proc/{pid}/cwd").exists()]
    assert [path.name for path in temporary.iterdir() if path.name.startswith("muster")] == []
