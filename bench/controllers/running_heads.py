"""The process that plays the dashboards, as the one who runs a system sees it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import msgspec

from bench.controllers import ray_heads
from tests.cluster.api_access import wait_until
from tests.cluster.control_plane import ProgramEndedError
from tests.cluster.ports import free_ports
from tests.cluster.process import Background, start

_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class RunningHeads:
    """The process at work."""

    program: Background
    port: int

    @property
    def proxy(self) -> dict[str, str]:
        """The environment in which a Go program finds the heads by the names of their services."""
        return {"HTTP_PROXY": f"http://127.0.0.1:{self.port}"}

    @property
    def session(self) -> int:
        """The session of the process. Raises ProgramEndedError."""
        pid = self.program.pid
        if pid is None:
            raise ProgramEndedError(f"{self.program.name} ended: {self.program.last_lines()}")
        return pid

    def counts(self) -> ray_heads.Counts:
        """What has been asked so far. Raises httpx.HTTPError."""
        url = f"http://127.0.0.1:{self.port}{ray_heads.COUNTS_PATH}"
        answer = httpx.get(url, timeout=10, trust_env=False).raise_for_status()
        return msgspec.json.decode(answer.content, type=ray_heads.Counts)

    def is_ready(self) -> bool:
        """Whether it answers."""
        try:
            self.counts()
        except httpx.HTTPError:
            return False
        return True


@contextmanager
def running_heads(folder: Path, job_seconds: float) -> Iterator[RunningHeads]:
    """Run the heads for the length of the block, with their files in this folder. TimeoutError if none answers."""
    (port,) = free_ports(1)
    command = [sys.executable, "-m", ray_heads.__name__, "--port", str(port), "--job-seconds", str(job_seconds)]
    program = start("ray-heads", command, folder, cwd=_ROOT)
    try:
        heads = RunningHeads(program, port)
        wait_until(heads.is_ready, "the heads answer", 30.0)
        yield heads
    finally:
        program.stop()
