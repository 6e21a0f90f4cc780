"""What is measured: systems, the processes that each consists of, and their command lines."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.cluster.gobuild import go_binaries
from tests.cluster.kuberay import operator_binary

KUBECONFIG: Final = "{kubeconfig}"
_REQUESTS: Final = 2000
"""A second, for each process in Go: so many that none waits for its own limit."""

Command = Callable[[Path], list[str]]
"""The words of a command line, for the kubeconfig of a control plane."""


class UnknownSystem(ValueError):  # noqa: N818 - says what is wrong
    """A system that does not exist, or that can't be: the text says which, and what could be."""


@dataclass(frozen=True, slots=True)
class Program:
    """A process of a system."""

    name: str
    command: Command


@dataclass(frozen=True, slots=True)
class System:
    """Some processes that bring the objects about together; without any it is the plain client, the ceiling."""

    name: str
    programs: tuple[Program, ...] = ()
    has_muster_crds: bool = field(default=False, kw_only=True)
    """Whether Muster's custom resource definitions come with it, or else KubeRay's."""


def chosen_systems(names: Iterable[str], commands: Iterable[str]) -> list[System]:
    """The given systems (`NAME=COMMAND`), then the built-in ones of these names. Raises UnknownSystem."""
    given: dict[str, System] = {}
    for text in commands:
        name, equals, command = text.partition("=")
        if not (name and equals and command.strip()) or name in BUILT_IN:
            raise UnknownSystem(f"--system {text!r} must be NAME=COMMAND, with another name than {', '.join(BUILT_IN)}")
        known = given.get(name, System(name))
        number = len(known.programs) + 1
        program = Program(name if number == 1 else f"{name}-{number}", _template(command))
        given[name] = System(name, (*known.programs, program))
    return [*given.values(), *map(_built_in, names)]


def _built_in(name: str) -> System:
    if name not in BUILT_IN:
        raise UnknownSystem(f"there is no system {name!r}; there are {', '.join(BUILT_IN)}")
    return BUILT_IN[name]


def _template(command: str) -> Command:
    return lambda kubeconfig: [word.replace(KUBECONFIG, str(kubeconfig)) for word in shlex.split(command)]


def _muster(kubeconfig: Path) -> list[str]:
    flags = ["--components", "controllers,scheduler", "--no-leader-election", "--submitter-image", "muster"]
    flags += ["--health-port", "0", "--metrics-port", "0"]
    return [*MUSTER_COMMAND, "run", "--kubeconfig", str(kubeconfig), *flags]


def _kuberay(kubeconfig: Path) -> list[str]:
    flags = ["--enable-leader-election=false", "--metrics-addr=0", "--health-probe-bind-address=0"]
    flags += ["--reconcile-concurrency=10", f"--qps={_REQUESTS}", f"--burst={_REQUESTS}"]
    return [str(operator_binary()), f"--kubeconfig={kubeconfig}", *flags]


def _kube_scheduler(kubeconfig: Path) -> list[str]:
    binary = go_binaries(["kube-scheduler"])["kube-scheduler"]
    flags = ["--leader-elect=false", "--secure-port=0", f"--kube-api-qps={_REQUESTS}", f"--kube-api-burst={_REQUESTS}"]
    return [str(binary), f"--kubeconfig={kubeconfig}", *flags]


MUSTER_COMMAND: Final = (sys.executable, "-c", "from muster.cli import main; main()")
CEILING: Final = System("ceiling", has_muster_crds=True)
MUSTER: Final = System("muster", (Program("muster", _muster),), has_muster_crds=True)
KUBERAY: Final = System("kuberay", (Program("ray-operator", _kuberay), Program("kube-scheduler", _kube_scheduler)))
BUILT_IN: Final = {system.name: system for system in (CEILING, MUSTER, KUBERAY)}
