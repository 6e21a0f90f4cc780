"""A real Ray head on this machine, for the tests that talk to one.

Ray is installed once, from PyPI, into a virtual environment of its own in the user's cache. Each head has a folder for
everything that it writes; whatever it starts is known by its session and by a mark in the environment, so that stopping
it, or clearing up after a test run that was killed, touches no other Ray on the machine.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from tests.cluster.cache import Cache
from tests.cluster.ports import free_ports
from tests.cluster.process import run
from tests.cluster.runs import Runs
from tests.cluster.versions import RAY

_MARK = "MUSTER_TEST_RAY"
_STARTED = "Ray runtime started"
_ATTEMPTS = 3
_START_SECONDS = 180.0
_STOP_SECONDS = 20.0


class RayStartError(RuntimeError):
    """No Ray head came up; the text has its last words."""


@dataclass(frozen=True, slots=True)
class RayHead:
    """A running head. `address` is the dashboard's host:port, `folder` holds its files."""

    address: str
    folder: Path

    @property
    def url(self) -> str:
        """The dashboard's URL."""
        return f"http://{self.address}"

    @property
    def port(self) -> int:
        """The dashboard's port on 127.0.0.1."""
        return int(self.address.rpartition(":")[2])


def installed_python() -> Path:
    """The Python that has Ray; installs it if need be. Raises CommandFailedError where PyPI is out of reach."""
    return Cache().entry("ray-venv", RAY, build=_install) / "bin" / "python"


def _install(folder: Path) -> None:
    run([sys.executable, "-m", "venv", folder])
    run([folder / "bin" / "python", "-m", "pip", "install", "--quiet", f"ray[default]=={RAY}"])


@contextlib.contextmanager
def running_head(env: Mapping[str, str] = MappingProxyType({}), params: Sequence[str] = ()) -> Iterator[RayHead]:
    """Start a head, with these variables and flags too, and stop it at the end.

    Raises RayStartError if it does not come up.
    """
    with Runs("ray", destroy=_destroy).own() as folder:
        yield RayHead(f"127.0.0.1:{_start(folder, env, params)}", folder)


def _start(folder: Path, env: Mapping[str, str], params: Sequence[str]) -> int:
    """Start a head; the port of its dashboard. Ray gives up after 30 s on a busy machine, so it gets some chances."""
    for attempt in range(_ATTEMPTS):
        log = folder / f"head-{attempt}.log"
        dashboard = _start_once(folder, log, env, params)
        if dashboard is not None:
            return dashboard
        _kill(folder)
    last = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
    raise RayStartError(f"no Ray head came up in {_ATTEMPTS} attempts; the last one said:\n{last}")


def _start_once(folder: Path, log: Path, env: Mapping[str, str], params: Sequence[str]) -> int | None:
    gcs, dashboard, client, agent, metrics = free_ports(5)
    python = installed_python()
    command: list[str | Path] = [
        *(python, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--disable-usage-stats"),
        *("--node-ip-address=127.0.0.1", "--dashboard-host=127.0.0.1", f"--temp-dir={folder}"),
        *(f"--port={gcs}", f"--dashboard-port={dashboard}", f"--ray-client-server-port={client}"),
        *(f"--dashboard-agent-listen-port={agent}", f"--metrics-export-port={metrics}"),
        *("--min-worker-port=0", "--max-worker-port=0", "--num-cpus=1", "--object-store-memory=80000000"),
        *params,
    ]
    own = {_MARK: str(folder), "PATH": f"{python.parent}:{os.environ['PATH']}", "PYTHONUNBUFFERED": "1"}
    with log.open("w") as output:
        head = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, **own, **env},
            cwd=folder,
            start_new_session=True,
        )
    deadline = time.monotonic() + _START_SECONDS
    while head.poll() is None and time.monotonic() < deadline:
        if _STARTED in log.read_text(errors="replace") and _is_healthy(f"http://127.0.0.1:{dashboard}"):
            return dashboard
        time.sleep(0.1)
    return None


def _is_healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/api/gcs_healthz", timeout=2) as answer:  # noqa: S310
            return b"success" in answer.read()
    except OSError:
        return False


def _destroy(folder: Path) -> None:
    _kill(folder)
    shutil.rmtree(folder, ignore_errors=True)


def _kill(folder: Path) -> None:
    """Kill all that the head of this folder has started, and wait until it is gone."""
    deadline = time.monotonic() + _STOP_SECONDS
    sessions: set[int] = set()
    while True:
        sessions |= {session for pid, session in _sessions().items() if _has_mark(pid, folder)}
        ours = [pid for pid, session in _sessions().items() if session in sessions]
        if not ours:
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes of the Ray head in {folder} survive SIGKILL: {ours}")
        for pid in ours:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


def _sessions() -> dict[int, int]:
    """The session of each live process."""
    found: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                state, *rest = (entry / "stat").read_text().rpartition(")")[2].split()
                if state != "Z":
                    found[int(entry.name)] = int(rest[2])
    return found


def _has_mark(pid: int, folder: Path) -> bool:
    """Whether the process was started by the head of this folder. Ray's workers overwrite theirs; others don't."""
    try:
        return f"{_MARK}={folder}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
