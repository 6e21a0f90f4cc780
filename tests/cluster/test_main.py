"""`python -m tests.cluster`, with a temporary folder of the test's own, so that nobody's cluster is met."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType

import pytest

from tests.cluster.__main__ import main
from tests.cluster.process import Background, CommandFailedError, background_programs
from tests.cluster.progress import Steps

UP, DOWN, STATUS = ([command, "--level", "control-plane"] for command in ("up", "down", "status"))


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)
    return tmp_path


@pytest.mark.control_plane
def test_up_stays_until_down_and_heals_when_called_again(own_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(STATUS) == 1
    assert main(UP) == 0
    printed = capsys.readouterr().out
    folder = own_folder / f"muster-cluster-{os.getuid()}" / "control-plane-kept-muster"
    assert printed.endswith(f"export KUBECONFIG={folder / 'kubeconfig'}\n")

    api_server = Background(folder, "kube-apiserver")
    first = api_server.pid
    assert main(UP) == main(STATUS) == 0
    assert api_server.pid == first
    assert f"kube-apiserver ({first})" in capsys.readouterr().out

    api_server.stop(signal.SIGKILL)
    assert main(STATUS) == 1
    assert main(UP) == main(STATUS) == 0
    assert api_server.pid not in (first, None)

    assert main(DOWN) == 0
    assert main(STATUS) == 1
    assert list(own_folder.iterdir()) == []


@pytest.mark.control_plane
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_up_that_is_interrupted_leaves_nothing(own_folder: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "tests.cluster", *UP]
    folder = own_folder / f"muster-cluster-{os.getuid()}" / "control-plane-kept-muster"
    with subprocess.Popen(command, env={**os.environ, "TMPDIR": str(own_folder)}) as up:
        deadline = time.monotonic() + 30
        while Background(folder, "etcd").pid is None:
            assert up.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        programs = background_programs(folder)
        pids = [program.pid for program in programs]
        up.send_signal(number)
        assert up.wait(30) == 130
    assert not folder.exists()
    assert not [pid for pid in pids if Path(f"/proc/{pid}/cwd").exists()]


class FakeNodeCluster:
    """The node level as this command sees it."""

    kubeconfig = Path("/k")
    calls: list[str]

    def __init__(self, *, name: str, steps: Steps) -> None:
        self.calls.append(name)

    def start(self, *, reuse: bool) -> None:
        self.calls.append(f"start reuse={reuse}")

    def stop(self) -> None:
        raise CommandFailedError("docker rm ended with status 1")

    def status(self) -> str | None:
        return "up: two nodes"


@pytest.fixture
def node_calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    FakeNodeCluster.calls = []
    module = ModuleType("tests.cluster.node.cluster")
    vars(module)["NodeCluster"] = FakeNodeCluster
    monkeypatch.setitem(sys.modules, "tests.cluster.node.cluster", module)
    return FakeNodeCluster.calls


def test_the_node_level_is_reached_by_its_name(node_calls: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["up", "--level", "node", "--name", "mine"]) == 0
    assert node_calls == ["mine", "start reuse=True"]
    assert main(["status", "--level", "node"]) == 0
    assert capsys.readouterr().out == "export KUBECONFIG=/k\nup: two nodes\n"


def test_a_failure_is_told_in_its_own_words_without_a_traceback(
    node_calls: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["down", "--level", "node"]) == 1
    assert capsys.readouterr().err == "docker rm ended with status 1\n"


@pytest.mark.parametrize("arguments", [[], ["up"], ["up", "--level", "moon"], ["fly", "--level", "node"]])
def test_wrong_arguments_are_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
