"""What a program in the background uses, and the moment in which it ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.process import Background

_TICKS = os.sysconf("SC_CLK_TCK")
# Fields of /proc/PID/stat (proc(5)), counted from what follows the name in parentheses.
_SESSION, _USER, _SYSTEM = 3, 11, 12
# Lines of /proc/PID/status.
_PEAK, _NOW = "VmHWM:", "VmRSS:"


@dataclass(frozen=True, slots=True)
class Usage:
    """Seconds of processor so far, and the peak of resident memory in MiB."""

    cpu: float = 0.0
    peak: float = 0.0

    def since(self, earlier: Usage) -> Usage:
        """The processor time since then; the peak is that of the whole life."""
        return Usage(self.cpu - earlier.cpu, self.peak)


def process_id(program: Background) -> int:
    """The process id that a program was started under, whether it still runs or not."""
    return int((program.state / f"{program.name}.pid").read_text())


def usage(session: int) -> Usage:
    """What all live processes of a session use together: a program may be a script that starts another one.

    A process that has ended and has not been waited for counts with its processor time, but has no memory any more.
    """
    found = list(_of_session(session))
    ticks = sum(int(stat[_USER]) + int(stat[_SYSTEM]) for _, stat in found)
    return Usage(ticks / _TICKS, sum(_memory(pid, _PEAK) for pid, _ in found))


def resident(session: int) -> float:
    """The resident memory of all live processes of a session together, in MiB."""
    return sum(_memory(pid, _NOW) for pid, _ in _of_session(session))


def waited(session: int) -> float:
    """Seconds for which the live threads of a session were ready and had no processor; 0 where Linux does not say."""
    files = (file for pid, _ in _of_session(session) for file in Path(f"/proc/{pid}/task").glob("*/schedstat"))
    return sum(map(_waited, files)) / 1e9


def _waited(file: Path) -> int:
    """Nanoseconds."""
    with contextlib.suppress(OSError):
        return int(file.read_text().split()[1])
    return 0


def _of_session(session: int) -> Iterator[tuple[int, list[str]]]:
    return ((pid, stat) for pid, stat in _processes() if int(stat[_SESSION]) == session)


def _processes() -> Iterator[tuple[int, list[str]]]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError):
                yield int(folder.name), (folder / "stat").read_text().rpartition(")")[2].split()


def _memory(pid: int, field: str) -> float:
    """MiB; 0 for a process that has ended."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(field):
                return int(line.split()[1]) / 1024
    return 0.0


async def ended(pid: int) -> None:
    """Return as soon as the process has ended; it need not be waited for yet, nor be a child of this one."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop, event = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(descriptor, event.set)
    try:
        await event.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def how_it_ended(pid: int) -> str:
    """The status or the signal with which a child of this process has ended, in words."""
    try:
        found, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return "ended"
    if not found:
        return "ended"
    code = os.waitstatus_to_exitcode(status)
    return f"ended with status {code}" if code >= 0 else f"was ended by signal {-code}"
