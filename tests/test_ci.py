"""What CI starts."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

RUN = Path(__file__).parents[1] / ".ci" / "run"


def test_ci_runs_all_tests_and_takes_none_that_is_skipped_for_its_machine(tmp_path: Path) -> None:
    make = tmp_path / "make"
    make.write_text('#!/bin/sh\necho "make $* in $(pwd) with CI=$CI"\n')
    make.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    printed = subprocess.run([RUN], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout
    assert printed == f"make test in {RUN.parents[1]} with CI=true\n"
