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
        words if whole else [*dies_with_us(), *words],
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
def dies_with_us() -> tuple[str, ...]:
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
        """Signal the program's whole session group, kill it after `grace` seconds, and wait until it is gone.

        Gone means that the last of its threads is: its ports and files are free then.
        """
        stop_all([self], number, grace=grace)

    def last_lines(self, count: int = 15) -> str:
        """Return the end of the log, for an error message."""
        if not self.log.exists():
            return ""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-count:])


@dataclass(frozen=True)
class _Process:
    """A process that a pid alone does not tell from the next one with that number."""

    pid: int
    started: str

    @classmethod
    def of(cls, program: Background) -> _Process | None:
        """The program's process, None when it does not run."""
        pid = program.pid
        fields = _stat(pid) if pid is not None else None
        return cls(pid, fields[_STARTED]) if pid is not None and fields is not None else None

    def gone_within(self, seconds: float) -> bool:
        """Wait until it is gone; False if it is still there after `seconds`."""
        deadline = time.monotonic() + seconds
        while not self._is_gone():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        return True

    def _is_gone(self) -> bool:
        _reap(self.pid)
        fields = _stat(self.pid)
        if fields is None or fields[_STARTED] != self.started:
            return True
        # The first thread is a zombie before the others have ended, and they hold the process's sockets until then.
        return fields[_STATE] in "ZX" and _threads(self.pid) <= 1


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
    found = [(program, process) for program in programs if (process := _Process.of(program)) is not None]
    for _, process in found:
        _signal_group(process.pid, number)
    with contextlib.ExitStack() as stack:
        for program, process in reversed(found):
            stack.callback(_see_off, program, process, grace)


def _see_off(program: Background, process: _Process, grace: float) -> None:
    """Wait until a signalled program is gone, and kill it when the grace is over."""
    if not process.gone_within(grace):
        _signal_group(process.pid, signal.SIGKILL)
        if not process.gone_within(10.0):
            raise TimeoutError(f"{program.name} (pid {process.pid}) survives SIGKILL")
    (program.state / f"{program.name}.pid").unlink(missing_ok=True)


def command_line(pid: int) -> list[str]:
    """Return the arguments of a live process; empty for none and for a zombie."""
    for _ in range(100):
        try:
            raw = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return []
        fields = _stat(pid)
        if raw or fields is None or fields[_STATE] in "ZX":
            break
        # A process that is just becoming another program has no arguments for a moment.
        time.sleep(0.001)
    return raw.decode(errors="replace").removesuffix("\0").split("\0") if raw else []


_STATE, _STARTED = 0, 19
"""Where in what `_stat` returns the state and the start time of a process are."""


def _stat(pid: int) -> list[str] | None:
    """Return the fields of /proc/PID/stat that follow the name (proc(5), from field 3 on), None without a process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _threads(pid: int) -> int:
    try:
        return len(list(Path(f"/proc/{pid}/task").iterdir()))
    except OSError:
        return 0


def _signal_group(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, number)


def _reap(pid: int) -> None:
    """Collect the exit status if the process is a child of ours that has ended."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
