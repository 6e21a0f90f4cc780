"""Programs that the harness runs: short ones to their end, long ones in the background under a state folder.

A background program gets a session of its own (so Ctrl-C in the terminal does not reach it before its owner decides),
a log and a pid file in its state folder. The pid file is written by the process itself before it becomes the program,
so there is no moment at which a killed owner leaves a process that nobody can find. A pid is trusted only while the
command line under it is ours: pids are used again, and PID 1 may reap late.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_WRITE_PID_THEN_BECOME = 'echo $$ > "$0.new" && mv "$0.new" "$0" && cd "$1" && shift && exec "$@"'


class CommandFailedError(RuntimeError):
    """A command ended with a non-zero status; the message holds the command, the status and its last lines."""


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    input_text: str | None = None,
    whole: bool = False,
) -> str:
    """Run a command to its end and return its standard output; `environment` is added to this process's own.

    The command and its children are killed if this call is interrupted, the command also when this process is killed;
    with `whole` it is left to end, because half of it would do harm. Raises CommandFailedError.
    """
    words = [str(word) for word in command]
    with subprocess.Popen(
        words if whole else [*_dies_with_us(), *words],
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.PIPE if input_text is not None else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as child:
        try:
            output, errors = child.communicate(input_text)
        except BaseException:
            if whole:
                child.communicate()
                raise
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            raise
    if child.returncode != 0:
        last = "\n".join((errors or output).strip().splitlines()[-15:])
        raise CommandFailedError(f"{' '.join(words)[:400]} ended with status {child.returncode}:\n{last}")
    return output


@functools.cache
def _dies_with_us() -> tuple[str, ...]:
    """What in front of a command has the kernel kill it when we die; nothing where util-linux lacks it."""
    setpriv = shutil.which("setpriv")
    return (setpriv, "--pdeathsig", "KILL", "--") if setpriv else ()


@dataclass(frozen=True)
class Background:
    """A program running in the background, known by the files `NAME.pid`, `NAME.command` and `NAME.log` of `state`."""

    state: Path
    name: str

    @property
    def log(self) -> Path:
        """The file with both outputs of the program, every start of it one after the other."""
        return self.state / f"{self.name}.log"

    @property
    def pid(self) -> int | None:
        """The process id while the program runs, else None."""
        try:
            pid = int((self.state / f"{self.name}.pid").read_text())
            command = json.loads((self.state / f"{self.name}.command").read_text())
        except (FileNotFoundError, ValueError):
            return None
        return pid if command_line(pid)[-len(command) :] == command else None

    def stop(self, number: signal.Signals = signal.SIGTERM, *, grace: float = 10.0) -> None:
        """Signal the program's whole session group, kill it after `grace` seconds, and wait until it is gone."""
        pid = self.pid
        if pid is None:
            return
        _signal_group(pid, number)
        if not self._gone_within(pid, grace):
            _signal_group(pid, signal.SIGKILL)
            if not self._gone_within(pid, 10.0):
                raise TimeoutError(f"{self.name} (pid {pid}) survives SIGKILL")
        (self.state / f"{self.name}.pid").unlink(missing_ok=True)

    def last_lines(self, count: int = 15) -> str:
        """Return the end of the log, for an error message."""
        if not self.log.exists():
            return ""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-count:])

    def _gone_within(self, pid: int, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self.pid is not None:
            if time.monotonic() > deadline:
                return False
            _reap(pid)
            time.sleep(0.01)
        _reap(pid)
        return True


def start(
    name: str,
    command: Sequence[str | Path],
    state: Path,
    *,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Background:
    """Start `command` in the background with its files in the folder `state`; `environment` is added to our own.

    Returns once the program can be found by its pid file; raises CommandFailedError if that cannot be written.
    """
    program = Background(state, name)
    words = [str(word) for word in command]
    pid_file = state / f"{name}.pid"
    pid_file.unlink(missing_ok=True)
    (state / f"{name}.command").write_text(json.dumps(words))
    # Not subprocess.Popen: the program may outlive whoever started it, and nobody has to keep a handle.
    pid = os.posix_spawn(
        "/bin/sh",
        ["/bin/sh", "-c", _WRITE_PID_THEN_BECOME, str(pid_file), str(cwd or state), *words],
        {**os.environ, **(environment or {})},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(program.log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )
    while not pid_file.exists():
        if os.waitpid(pid, os.WNOHANG) != (0, 0):
            raise CommandFailedError(f"{name} could not be started: {program.last_lines()}")
        time.sleep(0.001)
    return program


def background_programs(state: Path) -> list[Background]:
    """Return every program that was ever started under the state folder, running or not."""
    return [Background(state, path.stem) for path in sorted(state.glob("*.command"))]


def stop_all(programs: Iterable[Background], number: signal.Signals = signal.SIGTERM, *, grace: float = 10.0) -> None:
    """Signal all programs at once, then wait for each; every one is tried even if another will not go."""
    programs = list(programs)
    for program in programs:
        pid = program.pid
        if pid is not None:
            _signal_group(pid, number)
    with contextlib.ExitStack() as stack:
        for program in reversed(programs):
            stack.callback(program.stop, number, grace=grace)


def command_line(pid: int) -> list[str]:
    """Return the arguments of a live process; empty for none and for a zombie."""
    for _ in range(100):
        try:
            raw = Path(f"/proc/{pid}/cmdline").read_bytes()
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return []
        if raw or state in "ZX":
            break
        # A process that is just becoming another program has no arguments for a moment.
        time.sleep(0.001)
    return raw.decode(errors="replace").removesuffix("\0").split("\0") if raw else []


def _signal_group(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, number)


def _reap(pid: int) -> None:
    """Collect the exit status if the process is a child of ours that has ended."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
