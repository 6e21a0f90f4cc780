"""`python -m tests.cluster up|down|status --level control-plane|node`: a local cluster that stays until `down`.

Standard output is what a shell can use (`eval "$(python -m tests.cluster up ...)"`); all else goes to standard error.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from tests.cluster import control_plane, kept_control_plane
from tests.cluster.control_plane_commands import Options
from tests.cluster.prerequisites import PrerequisiteError
from tests.cluster.process import CommandFailedError
from tests.cluster.progress import Steps
from tests.cluster.termination import end_as_if_interrupted, remember_interrupts


class Level(Protocol):
    """What a level can do for this command."""

    def start(self) -> Path:
        """Bring the cluster up, or find it up; return its kubeconfig."""

    def stop(self) -> None:
        """Take it down and remove what it made; nothing to do if it is not there."""

    def status(self) -> str | None:
        """Return one line about the cluster, None if there is none."""


class NodeLevel:
    """kind, imported only when asked for: the other level does not need what it needs."""

    def __init__(self, name: str, steps: Steps) -> None:
        from tests.cluster.node.cluster import NodeCluster

        self._cluster = NodeCluster(name=name, steps=steps)

    def start(self) -> Path:
        self._cluster.start(reuse=True)
        return self._cluster.kubeconfig

    def stop(self) -> None:
        self._cluster.stop()

    def status(self) -> str | None:
        return self._cluster.status()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status: 0, or 1 with the reason, for `status` also when nothing is up."""
    options = _parser().parse_args(arguments)
    steps = Steps()
    end_as_if_interrupted()
    remember_interrupts()
    try:
        return _run(options.command, _level(options, steps))
    except (PrerequisiteError, CommandFailedError, TimeoutError, control_plane.ProgramEndedError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _run(command: str, level: Level) -> int:
    if command == "up":
        print(f"export KUBECONFIG={level.start()}")
        return 0
    if command == "down":
        level.stop()
        return 0
    status = level.status()
    print(status or "not up")
    return 0 if status else 1


def _level(options: argparse.Namespace, steps: Steps) -> Level:
    if options.level == "node":
        return NodeLevel(options.name, steps)
    wanted = Options(controller_manager=options.controller_manager, kwok=options.kwok)
    return kept_control_plane.KeptControlPlane(options.name, wanted, steps)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description="A local cluster for development.")
    parser.add_argument("command", choices=["up", "down", "status"])
    parser.add_argument("--level", choices=["control-plane", "node"], required=True)
    parser.add_argument("--name", default="muster", help="which one, if there are several (default: %(default)s)")
    parser.add_argument("--controller-manager", action="store_true", help="level control-plane: run it too")
    parser.add_argument("--kwok", action="store_true", help="level control-plane: play the kubelets of fake nodes")
    return parser


if __name__ == "__main__":
    sys.exit(main())
