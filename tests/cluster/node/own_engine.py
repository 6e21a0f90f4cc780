"""A Docker engine of the harness's own, beside any other: own socket, own data, no default bridge.

It runs where the machine has no engine or no image registry. Images stay in its data folder, in the user's cache, so
that a second start loads none; everything else that it makes is gone when it has stopped. An engine that was killed
leaves containers, mounts and rules; the next start takes them over, since they are recorded in the same folders.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

from tests.cluster.cache import Cache, digest
from tests.cluster.node.docker import Docker
from tests.cluster.node.machine_state import MachineState
from tests.cluster.node.node_link import NodeLink
from tests.cluster.process import Background, CommandFailedError, run, start
from tests.cluster.progress import Steps

_START_SECONDS = 60.0
"""After a crash the engine first stops the containers that it finds, ten seconds each at most, all at once."""

_STOP_SECONDS = 30.0


class OwnEngine:
    """The engine with its data in `cache`; one per user. Starting and stopping need root, and are done under a lock."""

    def __init__(self, cache: Cache, steps: Steps) -> None:
        self._cache, self._steps = cache, steps
        self._folder = cache.root / "engine"
        # Sockets live here, and the path of a socket must be short.
        identity = digest(str(cache.root))
        self._run = Path(f"/run/muster-engine-{identity}")
        self._machine = MachineState(self._folder / "machine.json")
        self._process = Background(self._folder, "dockerd")
        self.docker = Docker(f"unix://{self._run}/docker.sock")
        self._link = NodeLink(self.docker, f"muster-{identity[:8]}")

    def start(self) -> None:
        """Start the engine unless it runs; raises TimeoutError with its last lines if it does not answer."""
        with self._cache.lock("engine"):
            if self._process.pid is None:
                with self._steps.step("Starting a Docker engine of our own"):
                    self._start()
            else:
                self._wait_until_it_answers()

    def stop_if_idle(self) -> None:
        """Stop the engine and undo all it did to the machine, unless it still has containers."""
        with self._cache.lock("engine"):
            if not self.in_use():
                return
            if self._process.pid is None:
                self._start()
            if not self.docker.containers():
                self._stop()

    def in_use(self) -> bool:
        """Tell whether the engine runs, or was killed and has left something."""
        return self._process.pid is not None or self._machine.is_recorded()

    def _start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._run.mkdir(mode=0o700, exist_ok=True)
        # A dead engine's pid may still look alive, and a new one would refuse to start.
        (self._run / "own.pid").unlink(missing_ok=True)
        self._machine.save()
        self._process.log.unlink(missing_ok=True)
        start("dockerd", self._command(), self._folder)
        self._wait_until_it_answers()
        self._link.open()

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not self.docker.answers():
            if self._process.pid is None or time.monotonic() > deadline:
                raise TimeoutError(f"the Docker engine does not answer:\n{self._process.last_lines()}")
            time.sleep(0.1)

    def _command(self) -> list[str | Path]:
        command: list[str | Path] = ["dockerd", "--host", self.docker.host or ""]
        command += ["--data-root", self._folder / "data", "--exec-root", self._run / "exec"]
        command += ["--pidfile", self._run / "own.pid", "--storage-driver", "overlay2"]
        command += ["--bridge", "none", "--iptables=false"]
        return [*command, "--add-runtime", f"plain={self._runtime()}", "--default-runtime", "plain"]

    def _runtime(self) -> Path:
        """Write the container runtime: runc, without what this process itself may not grant."""
        script = Path(__file__).with_name("runc_without_resource.py")
        runtime = self._folder / "runtime"
        copy = self._folder / script.name
        shutil.copyfile(script, copy)
        runc = shutil.which("runc", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
        # Not the virtual environment's: the engine may outlive that.
        python = Path(sys.executable).resolve()
        runtime.write_text(f'#!/bin/sh\nexec "{python}" -I -S "{copy}" "{runc}" "$@"\n')
        runtime.chmod(0o755)
        return runtime

    def _stop(self) -> None:
        self._link.close()
        self.docker.run("volume", "prune", "--force")
        self._process.stop(grace=_STOP_SECONDS)
        for folder in (self._folder / "data", self._run):
            _unmount_below(folder)
        self._machine.restore()
        shutil.rmtree(self._run, ignore_errors=True)


def _unmount_below(folder: Path) -> None:
    """Unmount the folder and all below it, the deepest first."""
    points = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    for point in sorted((p for p in points if Path(p).is_relative_to(folder)), reverse=True):
        try:
            run(["umount", point])
        except CommandFailedError:
            run(["umount", "--lazy", point])
