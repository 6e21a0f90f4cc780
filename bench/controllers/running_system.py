"""A system at work: its processes, and which of them has died."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bench.controllers.systems import Program, System
from tests.cluster.process import dies_with_us

_GRACE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Process:
    """One process of a system; what it starts itself is in the session that it leads."""

    program: Program
    child: subprocess.Popen[bytes]
    log: Path

    @property
    def session(self) -> int:
        """The id of its session."""
        return self.child.pid

    def dead(self) -> str | None:
        """How it has ended; None while it runs."""
        status = self.child.poll()
        if status is None:
            return None
        words = self.log.read_text(errors="replace").strip().splitlines()
        return f"{self.program.name} has ended with status {status}: {words[-1][-300:] if words else 'without a word'}"


@dataclass(frozen=True, slots=True)
class RunningSystem:
    """All processes of a system."""

    processes: tuple[Process, ...]

    def dead(self) -> str | None:
        """How the first one has ended that has; None while all run."""
        return next(filter(None, (process.dead() for process in self.processes)), None)

    @property
    def sessions(self) -> dict[str, int]:
        """The session of each process, by name."""
        return {process.program.name: process.session for process in self.processes}


@contextmanager
def running(
    system: System, kubeconfig: Path, folder: Path, environment: Mapping[str, str] | None = None
) -> Iterator[RunningSystem]:
    """Run all processes of the system for the length of the block, with their logs in this folder.

    OSError for a program that does not exist.
    """
    variables = {**os.environ, "KUBECONFIG": str(kubeconfig), **(environment or {})}
    started: list[Process] = []
    try:
        for program in system.programs:
            log = folder / f"system-{program.name}.log"
            started.append(_started(program, kubeconfig, log, variables))
        yield RunningSystem(tuple(started))
    finally:
        for process in started:
            _signal(process, signal.SIGTERM)
        for process in started:
            with suppress(subprocess.TimeoutExpired):
                process.child.wait(_GRACE_SECONDS)
            _signal(process, signal.SIGKILL)
            process.child.wait()


def _started(program: Program, kubeconfig: Path, log: Path, variables: Mapping[str, str]) -> Process:
    words = [*dies_with_us(), *program.command(kubeconfig)]
    with log.open("wb") as file:
        child = subprocess.Popen(
            words, env=variables, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
        )
    return Process(program, child, log)


def _signal(process: Process, number: signal.Signals) -> None:
    """To all of its session that are left."""
    with suppress(ProcessLookupError):
        os.killpg(process.session, number)
