"""Runs and their recovery. The owner that gets killed is a process of its own, as in life."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster.cache import Cache
from tests.cluster.process import background_programs, command_line, start
from tests.cluster.runs import Runs, default_root

_OWNER = """
import sys
from pathlib import Path
from tests.cluster.cache import Cache
from tests.cluster.process import start
from tests.cluster.runs import Runs
root, cache, how = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
runs = Runs("test", root=root, cache=Cache(cache))
with runs.keep("one") if how == "keep" else runs.own() as folder:
    start("sleeper", ["sleep", "1000"], folder)
    print(folder, flush=True)
    sys.stdin.read()
"""


_DEAF = """
import signal, sys, weakref
from pathlib import Path
from tests.cluster.cache import Cache
from tests.cluster.runs import Runs
from tests.cluster.termination import end_as_if_interrupted, remember_interrupts

class Anything:
    pass

end_as_if_interrupted()
remember_interrupts()
with Runs("test", root=Path(sys.argv[1]), cache=Cache(Path(sys.argv[2]))).keep("one"):
    anything = Anything()
    # What is raised in here the interpreter prints and forgets.
    callback = weakref.ref(anything, lambda _: signal.raise_signal(int(sys.argv[3])))
    del anything
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_whose_interrupt_was_lost_is_not_kept(tmp_path: Path, runs: Runs, number: signal.Signals) -> None:
    command = [sys.executable, "-c", _DEAF, str(tmp_path / "runs"), str(tmp_path / "cache"), str(int(number))]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert "Exception ignored" in ended.stderr
    assert ended.returncode != 0
    assert not runs.kept("one").exists()


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs("test", root=tmp_path / "runs", cache=Cache(tmp_path / "cache"))


@contextmanager
def another_owner(tmp_path: Path, how: str) -> Iterator[tuple[subprocess.Popen[str], Path, int]]:
    """Another process with a run in which a program runs: give it, the run's folder and the program's pid."""
    command = [sys.executable, "-c", _OWNER, str(tmp_path / "runs"), str(tmp_path / "cache"), how]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        folder = Path(owner.stdout.readline().strip())
        (program,) = background_programs(folder)
        assert program.pid is not None
        yield owner, folder, program.pid


def alive(pid: int) -> bool:
    return bool(command_line(pid))


def test_nothing_is_left_after_a_run(runs: Runs) -> None:
    with runs.own() as folder:
        program = start("sleeper", ["sleep", "1000"], folder)
        pid = program.pid
    assert pid is not None
    assert not alive(pid)
    assert not runs.root.exists()


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("how", ["own", "keep"])
def test_nothing_is_left_when_the_owner_fails(runs: Runs, error: type[BaseException], how: str) -> None:
    seen: list[tuple[Path, int]] = []

    def fail() -> None:
        with runs.keep("one") if how == "keep" else runs.own() as folder:
            seen.append((folder, start("sleeper", ["sleep", "1000"], folder).pid or 0))
            raise error

    with pytest.raises(error):
        fail()
    ((folder, pid),) = seen
    assert pid
    assert not alive(pid)
    assert not folder.exists()


@pytest.mark.parametrize("how", ["own", "keep"])
def test_the_next_run_removes_what_a_killed_owner_left(runs: Runs, tmp_path: Path, how: str) -> None:
    with another_owner(tmp_path, how) as (owner, folder, pid):
        owner.send_signal(signal.SIGKILL)
        owner.wait()
        assert alive(pid)
        with runs.own():
            assert not alive(pid)
            assert not folder.exists()


def test_the_run_of_a_living_owner_is_left_alone(runs: Runs, tmp_path: Path) -> None:
    with another_owner(tmp_path, "own") as (owner, folder, pid):
        with runs.own():
            assert alive(pid)
        assert runs.recover() == []
        assert folder.exists()
        owner.communicate("")
    assert not alive(pid)
    assert not runs.root.exists()


def test_a_run_of_the_same_process_is_left_alone(runs: Runs) -> None:
    with runs.own() as first, runs.own() as second:
        assert first != second
        assert first.exists()


def test_a_run_of_another_level_is_left_alone(runs: Runs, tmp_path: Path) -> None:
    with another_owner(tmp_path, "own") as (owner, folder, pid):
        owner.kill()
        owner.wait()
        assert Runs("other", root=runs.root, cache=Cache(tmp_path / "cache")).recover() == []
        assert runs.recover() == [folder]
        assert not alive(pid)


def test_a_kept_run_stays_until_it_is_removed(runs: Runs, tmp_path: Path) -> None:
    with another_owner(tmp_path, "keep") as (owner, folder, pid):
        owner.communicate("")
    assert folder == runs.kept("one")
    assert runs.recover() == []
    assert alive(pid)
    with pytest.raises(FileExistsError), runs.keep("one"):
        pass
    assert alive(pid)
    runs.remove("one")
    assert not alive(pid)
    assert not runs.root.exists()


def test_removing_what_is_not_there_does_nothing(runs: Runs) -> None:
    runs.remove("one")
    assert not runs.root.exists()


def test_a_folder_of_an_owner_killed_before_it_had_its_lock_is_removed(runs: Runs) -> None:
    folder = runs.root / "test-half"
    folder.mkdir(parents=True)
    assert runs.recover() == [folder]


def test_a_level_may_take_its_runs_down_in_its_own_way(tmp_path: Path) -> None:
    taken_down: list[Path] = []
    runs = Runs("test", root=tmp_path / "runs", cache=Cache(tmp_path / "cache"), destroy=taken_down.append)
    with runs.own() as folder:
        pass
    assert taken_down == [folder]


def test_each_user_has_an_own_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getuid", lambda: 1234)
    assert default_root().name == "muster-cluster-1234"
