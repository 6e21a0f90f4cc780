"""A control plane that outlives the command that started it, until it is stopped by name."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from tests.cluster.cache import Cache
from tests.cluster.control_plane import LEVEL, build, launch
from tests.cluster.control_plane_commands import Options
from tests.cluster.process import background_programs
from tests.cluster.progress import Steps
from tests.cluster.runs import Runs


class KeptControlPlane:
    """The control plane of this name, up or not."""

    def __init__(self, name: str, options: Options, steps: Steps) -> None:
        self._name, self._options, self._steps = name, options, steps
        self._runs = Runs(LEVEL)
        self._folder = self._runs.kept(name)

    def start(self) -> Path:
        """Bring it up unless it is; return its kubeconfig. One that has lost a program is started anew."""
        with self._lock():
            if self.status() is None:
                self._runs.remove(self._name)
                programs = build(self._options)
                with self._steps.step("Starting the control plane"), self._runs.keep(self._name) as folder:
                    launch(folder, self._options, programs).api.close()
        return self._folder / "kubeconfig"

    def stop(self) -> None:
        """Kill it and remove its folder; nothing to do if it is not there."""
        with self._lock():
            self._runs.remove(self._name)

    def _lock(self) -> AbstractContextManager[None]:
        """Let one command at a time change the control plane of this name."""
        return Cache(steps=self._steps).lock(f"{LEVEL}-{self._name}")

    def status(self) -> str | None:
        """Return a line naming the kubeconfig and the running programs, None unless all of them run."""
        running = {program.name: program.pid for program in background_programs(self._folder)}
        if not running or None in running.values():
            return None
        programs = ", ".join(f"{name} ({pid})" for name, pid in running.items())
        return f"up: KUBECONFIG={self._folder / 'kubeconfig'}; {programs}"
