"""How the demo ends when it does not come to its end."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.prerequisites import Missing, PrerequisiteError
from tests.cluster.process import CommandFailedError
from tests.demo import __main__ as demo
from tests.e2e.install import InstallError

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "error",
    [
        PrerequisiteError([Missing("Go", "curl it")]),
        CommandFailedError("docker run ended with status 125"),
        TimeoutError("the Docker engine does not answer"),
        subprocess.TimeoutExpired("kubectl apply", 300),
        InstallError("kubectl refused"),
        AssertionError("not within 300 s: RayJob demo-job is over"),
    ],
)
def test_what_goes_wrong_is_one_sentence(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @contextmanager
    def no_cluster(*_: Any, **__: Any) -> Iterator[None]:
        raise error
        yield

    monkeypatch.setattr(sys, "argv", ["demo"])
    monkeypatch.setattr("tests.e2e.target.kind", no_cluster)
    assert demo.main() == 1
    assert capsys.readouterr().err == f"the demo failed: {error}\n"


_DEMO = """
import runpy, sys, threading
from contextlib import contextmanager
from tests.e2e import target

@contextmanager
def cluster(*_, **__):
    try:
        print("up", flush=True)
        threading.Event().wait()
        yield
    finally:
        print("going", flush=True)
        sys.stdin.readline()
        print("gone", flush=True)

target.kind = cluster
sys.argv = ["demo"]
runpy.run_module("tests.demo", run_name="__main__")
"""


@pytest.mark.parametrize(
    ("first", "others"),
    [
        pytest.param(signal.SIGTERM, [signal.SIGTERM], id="told twice: by whoever ends the whole group, and by make"),
        pytest.param(signal.SIGINT, [], id="interrupted at the terminal"),
    ],
)
def test_a_demo_that_is_ended_takes_its_cluster_with_it(first: signal.Signals, others: list[signal.Signals]) -> None:
    command = [sys.executable, "-c", _DEMO]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=REPOSITORY, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "up\n"
        run.send_signal(first)
        assert run.stdout.readline() == "going\n"
        for number in others:
            run.send_signal(number)
        printed, complaint = run.communicate("go on\n", timeout=30)
    assert (printed, complaint, run.returncode) == ("gone\n", "", 130)
