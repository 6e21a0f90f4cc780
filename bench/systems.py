"""Who is measured: schedulers as programs, and how pods are made for them.

A scheduler is known by the name that its pods carry, and by how a pod says which gang it belongs to. Any program that
takes a kubeconfig can be one: see `parse`. The bare client is among them, as the ceiling: it decides nothing.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import yaml

from bench import coscheduling
from tests.cluster.control_plane import ControlPlane, crd_documents
from tests.cluster.gobuild import go_binaries

VOLCANO_GROUPS = "scheduling.volcano.sh/v1beta1"
VOLCANO_ANNOTATION = "scheduling.k8s.io/group-name"
REQUESTS_A_SECOND = 2000
"""What a scheduler of Kubernetes' kind may send; its default, 50, would be all that is measured."""

_MUSTER = (sys.executable, "-c", "from muster.cli import main; main()", "run", "--components", "scheduler")
_MUSTER_OPTIONS = ("--no-leader-election", "--health-port", "0", "--metrics-port", "0", "--log-level", "warning")


Command = Callable[[Path, Path], list[str]]
"""The words of a command line, for a kubeconfig and a folder that the system may use."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """How a pod names its gang's PodGroup: by an annotation or a label (one of the two), and of which API it is."""

    api_version: str = VOLCANO_GROUPS
    annotation: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class System:
    """A scheduler. What it needs built is built when its `command` is asked for.

    Pods carry `scheduler_name` and, if there is one, the scheduling gate `gate`; where they are `controlled`, a
    RayCluster is named as their controller and their PodGroup's, as on what Muster's controllers make. A `bare` one
    looks at no room, so it is asked only where everything fits. `crds` are installed before it starts.
    """

    name: str
    scheduler_name: str
    command: Command
    grouping: Grouping | None = None
    gate: str = ""
    controlled: bool = False
    bare: bool = False
    crds: Callable[[], list[Path]] = list


def _muster(kubeconfig: Path, _folder: Path) -> list[str]:
    return [*_MUSTER, "--kubeconfig", str(kubeconfig), *_MUSTER_OPTIONS]


def _kube_scheduler(kubeconfig: Path, _folder: Path) -> list[str]:
    binary = go_binaries(["kube-scheduler"])["kube-scheduler"]
    rate = (f"--kube-api-qps={REQUESTS_A_SECOND}", f"--kube-api-burst={REQUESTS_A_SECOND}")
    return [str(binary), f"--kubeconfig={kubeconfig}", "--leader-elect=false", "--secure-port=0", *rate]


def _coscheduling(kubeconfig: Path, folder: Path) -> list[str]:
    configuration = folder / "coscheduling.yaml"
    configuration.write_text(yaml.safe_dump(coscheduling.configuration(kubeconfig, REQUESTS_A_SECOND)))
    return [str(coscheduling.program()), f"--config={configuration}", "--secure-port=0"]


def _bare_client(*options: str) -> Command:
    def command(kubeconfig: Path, _folder: Path) -> list[str]:
        return [sys.executable, "-m", "bench.bare_client", "--kubeconfig", str(kubeconfig), *options]

    return command


_GATE = "muster.dev/gang"
_VOLCANO = Grouping(annotation=VOLCANO_ANNOTATION)

SYSTEMS: tuple[System, ...] = (
    System("ceiling", "bench", _bare_client(), _VOLCANO, gate=_GATE, controlled=True, bare=True),
    System("ceiling-ungated", "bench", _bare_client(), _VOLCANO, bare=True),
    System("muster", "muster", _muster, _VOLCANO, gate=_GATE, controlled=True),
    System("muster-ungated", "volcano", _muster, _VOLCANO),
    System("kube-scheduler", "default-scheduler", _kube_scheduler),
    System(
        "coscheduling",
        "default-scheduler",
        _coscheduling,
        Grouping(coscheduling.API_VERSION, label=coscheduling.LABEL),
        crds=lambda: [coscheduling.crd()],
    ),
)
"""The systems that need nothing of the user, in the order of the table."""

_KEYS = ("name", "command", "schedulerName", "groupAnnotation", "groupLabel", "podGroups", "gate", "crds")


def parse(text: str) -> System:
    """The system that an option names: one of SYSTEMS by its name, or another one described as `key=value` words.

    Words are quoted as in a shell. Raises ValueError that names what is missing or not known.
    """
    if "=" not in text:
        return _known(text)
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}") from error
    given: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if key not in _KEYS or not equals:
            raise ValueError(f"{word!r} in a system is none of {'=…, '.join(_KEYS)}=…; quote a value that has spaces")
        given[key] = value
    for key in ("name", "command", "schedulerName"):
        if not given.get(key):
            raise ValueError(f"a system needs {key}=…: {text!r}")
    return _described(given)


def _known(name: str) -> System:
    for each in SYSTEMS:
        if each.name == name:
            return each
    known = ", ".join(each.name for each in SYSTEMS)
    raise ValueError(f"{name!r} is no system; there are {known}, and any other as name=… command=… schedulerName=…")


def _described(given: dict[str, str]) -> System:
    if any(each.name == given["name"] for each in SYSTEMS):
        raise ValueError(f"name={given['name']} is taken by a system that is there already")
    annotation, label = given.get("groupAnnotation", ""), given.get("groupLabel", "")
    if annotation and label:
        raise ValueError("a system has groupAnnotation=… or groupLabel=…, not both")
    grouping = Grouping(given.get("podGroups", VOLCANO_GROUPS), annotation, label) if annotation or label else None
    if grouping is not None and grouping.api_version.count("/") != 1:
        raise ValueError(f"podGroups={grouping.api_version} is not GROUP/VERSION")
    command = given["command"]

    def filled(kubeconfig: Path, folder: Path) -> list[str]:
        places = {"{kubeconfig}": str(kubeconfig), "{folder}": str(folder)}
        words = shlex.split(command)
        for place, value in places.items():
            words = [word.replace(place, value) for word in words]
        return words

    crds = [Path(given["crds"])] if given.get("crds") else []
    return System(
        given["name"], given["schedulerName"], filled, grouping, gate=given.get("gate", ""), crds=lambda: crds
    )


def install_crds(plane: ControlPlane, system: System) -> None:
    """Give the API server the kinds of a system: from its files, or from all YAML files of its folders."""
    for path in system.crds():
        documents = crd_documents(path) if path.is_dir() else list(yaml.safe_load_all(path.read_text()))
        plane.api.install_crds([document for document in documents if document])
