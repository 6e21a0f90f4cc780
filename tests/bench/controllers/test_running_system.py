"""The processes of a system: started, watched, ended."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench.controllers.running_system import running
from bench.controllers.systems import chosen_systems
from tests.cluster.api_access import wait_until

_RUNS = "sleep 1000"
_DIES = "sh -c 'echo that was all; exit 3'"


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_all_processes_run_for_the_length_of_the_block_and_not_longer(tmp_path: Path) -> None:
    (system,) = chosen_systems([], [f"two={_RUNS}", f"two={_RUNS}"])
    with running(system, tmp_path / "kubeconfig", tmp_path) as found:
        assert found.dead() is None
        sessions = found.sessions
        assert sessions.keys() == {"two", "two-2"}
        assert all(map(_is_there, sessions.values()))
    assert not any(map(_is_there, sessions.values()))


def test_what_a_process_starts_ends_with_it_also_when_it_does_not_listen(tmp_path: Path) -> None:
    command = "sh -c 'trap : TERM; sleep 1000 & echo $! > \"$0\"; wait' " + str(tmp_path / "pid")
    (system,) = chosen_systems([], [f"family={command}"])
    with running(system, tmp_path / "kubeconfig", tmp_path):
        wait_until(lambda: (tmp_path / "pid").exists() and bool((tmp_path / "pid").read_text()), "it runs", 20)
    started = int((tmp_path / "pid").read_text())
    wait_until(lambda: not _runs(started), "what it had started has ended", 20)


def _runs(pid: int) -> bool:
    """Whether it does more than to wait for somebody to take note of its end."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_one_dead_process_of_two_is_named_with_its_last_words(tmp_path: Path) -> None:
    (system,) = chosen_systems([], [f"half={_RUNS}", f"half={_DIES}"])
    with running(system, tmp_path / "kubeconfig", tmp_path) as found:
        wait_until(lambda: found.dead() is not None, "the death is noticed", 20)
        assert found.dead() == "half-2 has ended with status 3: that was all"


def test_a_command_that_becomes_another_program_is_not_dead(tmp_path: Path) -> None:
    (system,) = chosen_systems([], [f"other=sh -c 'echo begun; exec {_RUNS}'"])
    with running(system, tmp_path / "kubeconfig", tmp_path) as found:
        session = found.sessions["other"]
        wait_until(lambda: b"sleep" in Path(f"/proc/{session}/cmdline").read_bytes()[:5], "it is the other", 20)
        assert found.dead() is None


def test_a_program_that_does_not_exist_is_a_dead_one(tmp_path: Path) -> None:
    (system,) = chosen_systems([], ["none=/no/such/program"])
    try:
        with running(system, tmp_path / "kubeconfig", tmp_path) as found:
            wait_until(lambda: found.dead() is not None, "the death is noticed", 20)
            words = str(found.dead())
    except OSError as error:  # where nothing stands between us and the program
        words = str(error)
    assert "/no/such/program" in words


@pytest.mark.parametrize("variable", ["KUBECONFIG", "HTTP_PROXY"])
def test_a_process_gets_the_kubeconfig_and_the_way_to_the_heads(tmp_path: Path, variable: str) -> None:
    expected = {"KUBECONFIG": str(tmp_path / "kubeconfig"), "HTTP_PROXY": "http://127.0.0.1:1"}
    (system,) = chosen_systems([], [f"shown=sh -c 'echo ${variable}'"])
    with running(system, tmp_path / "kubeconfig", tmp_path, {"HTTP_PROXY": "http://127.0.0.1:1"}) as found:
        wait_until(lambda: found.dead() is not None, "it has ended", 20)
        assert found.dead() == f"shown has ended with status 0: {expected[variable]}"
