from __future__ import annotations

import os
import platform
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster.process import (
    Background,
    CommandFailedError,
    background_programs,
    command_line,
    run,
    start,
    stop_all,
)

IGNORES_TERM = ["/bin/sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 0.05; done"]


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def alive(pid: int) -> bool:
    return bool(command_line(pid))


def test_a_command_returns_its_output() -> None:
    assert run(["cat"], input_text="text") == "text"


def test_a_failed_command_shows_its_status_and_its_last_lines() -> None:
    with pytest.raises(CommandFailedError, match=r"(?s)status 3.*last words"):
        run(["sh", "-c", "echo last words >&2; exit 3"])


def test_an_interrupted_command_takes_its_children_along(tmp_path: Path) -> None:
    file, main = tmp_path / "pid", threading.main_thread().ident or 0

    def interrupt() -> None:
        until(file.exists)
        signal.pthread_kill(main, signal.SIGINT)

    interrupter = threading.Thread(target=interrupt)
    # A child that would go on for long after its shell is gone.
    script = f"sleep 1000 & echo $! > {file}.new; mv {file}.new {file}; wait"
    interrupter.start()
    with pytest.raises(KeyboardInterrupt):
        run(["sh", "-c", script])
    interrupter.join()
    until(lambda: not alive(int(file.read_text())))


def test_a_command_does_not_outlive_a_killed_owner(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    script = f"echo $$ > {file}.new; mv {file}.new {file}; exec sleep 1000"
    code = f"from tests.cluster.process import run; run(['sh', '-c', {script!r}])"
    with subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[2]) as owner:
        until(file.exists)
        owner.kill()
    until(lambda: not alive(int(file.read_text())))


def test_a_command_that_must_not_be_cut_short_ends_by_itself(tmp_path: Path) -> None:
    main, started, done = threading.main_thread().ident or 0, tmp_path / "started", tmp_path / "done"

    def interrupt() -> None:
        until(started.exists)
        signal.pthread_kill(main, signal.SIGINT)

    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    with pytest.raises(KeyboardInterrupt):
        run(["sh", "-c", f"touch {started}; sleep 0.3; touch {done}"], whole=True)
    interrupter.join()
    assert done.exists()


def test_a_background_program_can_be_found_at_once_and_stopped(tmp_path: Path) -> None:
    program = start("sleeper", ["sleep", "1000"], tmp_path)
    pid = program.pid
    assert pid is not None
    assert os.getsid(pid) == pid
    assert background_programs(tmp_path) == [program]
    program.stop()
    assert program.pid is None
    assert not alive(pid)


def test_output_and_errors_go_to_the_log(tmp_path: Path) -> None:
    program = start(
        "talker", ["sh", "-c", "echo out; echo err >&2; echo $WORD; pwd"], tmp_path, environment={"WORD": "w"}
    )
    until(lambda: program.pid is None)
    assert program.last_lines() == f"out\nerr\nw\n{tmp_path}"
    assert program.last_lines(1) == str(tmp_path)


def test_a_program_deaf_to_term_is_killed_after_the_grace(tmp_path: Path) -> None:
    program = start("deaf", IGNORES_TERM, tmp_path)
    until(lambda: "deaf" in program.last_lines())
    program.stop(grace=0.1)
    assert program.pid is None


def test_stopping_reaches_the_programs_children(tmp_path: Path) -> None:
    program = start("parent", ["sh", "-c", "sleep 1000 & echo $!; wait"], tmp_path)
    until(lambda: program.last_lines() != "")
    child = int(program.last_lines())
    program.stop()
    until(lambda: not alive(child))


def test_a_pid_that_now_belongs_to_another_command_is_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as other:
        (tmp_path / "mine.command").write_text('["etcd", "--data-dir=/x"]')
        (tmp_path / "mine.pid").write_text(str(other.pid))
        mine = Background(tmp_path, "mine")
        assert mine.pid is None
        mine.stop(signal.SIGKILL)
        assert other.poll() is None
        other.kill()


def test_a_program_that_ended_has_no_pid_even_while_it_is_a_zombie(tmp_path: Path) -> None:
    program = start("short", ["true"], tmp_path)
    until(lambda: program.pid is None)


# Its first thread ends at the signal, as a killed program's does; another one keeps the port a while longer.
LINGERS = """
import ctypes, signal, socket, threading, time

listener = socket.create_server(("127.0.0.1", 0))
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
leaving = threading.Event()
threading.Thread(target=lambda: (leaving.wait(), time.sleep(0.5), listener.close())).start()
print(listener.getsockname()[1], flush=True)
signal.sigwait([signal.SIGTERM])
leaving.set()
ctypes.CDLL(None).syscall(60, 0)
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the number of the system call is this machine's")
@pytest.mark.parametrize("together", [False, True])
def test_a_stopped_program_has_given_back_its_ports(tmp_path: Path, together: bool) -> None:
    program = start("lingering", [sys.executable, "-c", LINGERS], tmp_path)
    until(lambda: program.last_lines() != "")
    port = int(program.last_lines())
    if together:
        stop_all([program])
    else:
        program.stop()
    with socket.socket() as next_one:
        next_one.bind(("127.0.0.1", port))


@pytest.mark.parametrize("content", ["", "no number"])
def test_a_pid_file_that_was_cut_off_means_not_running(tmp_path: Path, content: str) -> None:
    (tmp_path / "half.command").write_text("[]")
    (tmp_path / "half.pid").write_text(content)
    assert Background(tmp_path, "half").pid is None


def test_all_programs_are_stopped_together(tmp_path: Path) -> None:
    programs = [start(f"deaf-{number}", IGNORES_TERM, tmp_path) for number in range(3)]
    until(lambda: all("deaf" in program.last_lines() for program in programs))
    stop_all(programs, signal.SIGKILL)
    assert [program.pid for program in programs] == [None] * 3


def test_a_program_whose_pid_file_cannot_be_written_is_not_started(tmp_path: Path) -> None:
    (tmp_path / "ghost.pid.new").mkdir()
    with pytest.raises(CommandFailedError, match="ghost could not be started"):
        start("ghost", ["sleep", "1000"], tmp_path)
