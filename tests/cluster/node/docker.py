"""A Docker engine as its client sees it."""

from __future__ import annotations

import contextlib
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.process import CommandFailedError, run

_OTHERS_KEPT = 2


@dataclass(frozen=True, slots=True)
class Docker:
    """The engine at `host`, in the form of DOCKER_HOST; None is the one that this environment names."""

    host: str | None = None

    @property
    def environment(self) -> dict[str, str]:
        """What programs that use the engine need in their environment."""
        return {"DOCKER_HOST": self.host} if self.host else {}

    def run(self, *command: str | Path, **environment: str) -> str:
        """Run a docker command to its end and return its output; raises CommandFailedError."""
        return run(["docker", *command], environment={**self.environment, **environment})

    def answers(self) -> bool:
        """Tell whether there is an engine that this user may use."""
        return self._succeeds("info", "--format", "{{.ServerVersion}}", seconds=10)

    def finds_in_registry(self, tag: str, *, seconds: float) -> bool:
        """Tell whether the image can be had from its registry, asking for its manifest and nothing more."""
        return self._succeeds("manifest", "inspect", tag, seconds=seconds)

    def _succeeds(self, *command: str, seconds: float) -> bool:
        try:
            subprocess.run(
                ["docker", *command],
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=seconds,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            return False
        return True

    def containers(self) -> list[str]:
        """Return the ids of all containers, stopped ones too."""
        return self.run("ps", "--all", "--quiet", "--no-trunc").split()

    def image_id(self, tag: str) -> str | None:
        """Return the image's id, or None if the engine has no such image."""
        try:
            return self.run("image", "inspect", "--format", "{{.Id}}", tag).strip()
        except CommandFailedError:
            return None

    def forget_old(self, tag: str) -> None:
        """Remove images of the same name but for a few: for an engine of our own, whose data would grow for ever.

        The newest stay, since another run may be about to use them, and so do those that a container is made of.
        """
        listed = self.run("image", "ls", "--format", "{{.Repository}}:{{.Tag}}", tag.rpartition(":")[0]).split()
        for old in [other for other in listed if other != tag][_OTHERS_KEPT:]:
            with contextlib.suppress(CommandFailedError):
                self.run("image", "rm", old)
        self.run("image", "prune", "--force")
