"""What happens to a test that needs the control plane on a machine that cannot build it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_REPOSITORY = Path(__file__).parents[2]
_TEST = "tests/cluster/test_control_plane.py::test_the_api_server_is_ready_and_of_the_pinned_version"


def run_without_go(tmp_path: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run one test where there is no Go and nothing in the cache."""
    variables = {"PATH": "/nowhere", "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), **environment}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments, _TEST]
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


def test_it_can_be_left_out_by_its_mark(tmp_path: Path) -> None:
    result = run_without_go(tmp_path, "-m", "not control_plane")
    assert "1 deselected" in result.stdout
