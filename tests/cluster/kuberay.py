"""KubeRay's own operator, to compare Muster with: built from its Go module, run as a plain process.

Only tests that compare ask for it; no cluster, demo or end-to-end run builds it. Once what it shares with the cluster's
programs is compiled, the build takes half a minute of one processor. The user's cache keeps it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.cluster import versions
from tests.cluster.api_access import wait_until
from tests.cluster.cache import Cache, digest
from tests.cluster.control_plane import ControlPlane, ProgramEndedError
from tests.cluster.gobuild import BUILD, COMPILER, ENVIRONMENT
from tests.cluster.ports import free_ports
from tests.cluster.prerequisites import missing_go, require
from tests.cluster.process import Background, run, start
from tests.cluster.progress import Steps

MODULE = Path(__file__).with_name("kuberay_module")
"""The folder of the Go module that the operator is built in."""

MODULE_NAME = "muster.dev/kuberay"
KUBERAY_MODULE = "github.com/ray-project/kuberay/ray-operator"
_CRDS_RECIPE = "1"
# The one in C is ten times as fast, where PyYAML was built with it.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PROGRAM = KUBERAY_MODULE.rpartition("/")[2]


def operator_binary(cache: Cache | None = None, steps: Steps | None = None) -> Path:
    """Return the operator's program; build it if the cache lacks it.

    Raises PrerequisiteError when it has to be built and there is no Go, CommandFailedError when the build fails.
    """
    steps = steps or Steps()

    def build(folder: Path) -> None:
        require([missing_go()])
        with steps.step(f"Building KubeRay's operator {versions.KUBERAY}"):
            environment = {**COMPILER, **ENVIRONMENT}
            run([*BUILD, "-o", f"{folder}/", KUBERAY_MODULE], cwd=MODULE, environment=environment)

    return (cache or Cache(steps=steps)).entry(*_key(), build=build) / _PROGRAM


def is_built(cache: Cache | None = None) -> bool:
    """Tell whether `operator_binary` would build nothing."""
    return (cache or Cache()).path(*_key()).exists()


def source() -> Path:
    """Return the folder of KubeRay's operator, with its CRDs and samples, in Go's read-only module cache."""
    require([missing_go()])
    printed = run(["go", "mod", "download", "-json", KUBERAY_MODULE], cwd=MODULE, environment=ENVIRONMENT)
    return Path(json.loads(printed)["Dir"])


def crds(cache: Cache | None = None) -> list[dict[str, Any]]:
    """Return KubeRay's custom resource definitions, without their descriptions and what is not version v1.

    That leaves a third of them, and a sixth of the seconds that an API server needs for them; it means the same.
    """

    def build(folder: Path) -> None:
        files = sorted((source() / "config" / "crd" / "bases").glob("ray.io_*.yaml"))
        documents = [yaml.load(file.read_text(), Loader=_LOADER) for file in files]  # noqa: S506 - a safe loader
        for document in documents:
            document["spec"]["versions"] = [one for one in document["spec"]["versions"] if one["name"] == "v1"]
        (folder / "crds.json").write_text(json.dumps([without_descriptions(one) for one in documents]))

    folder = (cache or Cache()).entry("kuberay-crds", versions.KUBERAY, _CRDS_RECIPE, build=build)
    found: list[dict[str, Any]] = json.loads((folder / "crds.json").read_text())
    return found


def without_descriptions(schema: Any) -> Any:
    """Return a schema without its texts. A field may be called `description` too: its own schema is no text."""
    if isinstance(schema, Mapping):
        kept = {key: one for key, one in schema.items() if key != "description" or not isinstance(one, str)}
        return {key: without_descriptions(one) for key, one in kept.items()}
    return [without_descriptions(one) for one in schema] if isinstance(schema, list) else schema


@contextlib.contextmanager
def running_operator(
    plane: ControlPlane,
    *,
    namespaces: Iterable[str] = (),
    flags: Iterable[str] = (),
    environment: Mapping[str, str] | None = None,
    name: str = "kuberay",
) -> Iterator[Background]:
    """Run the operator for the length of the block, on these namespaces of the control plane (none: on all).

    It may do everything there. Raises ProgramEndedError, with the end of its log, if it does not come up.
    """
    metrics, health = free_ports(2)
    command = [
        str(operator_binary()),
        f"--kubeconfig={plane.kubeconfig}",
        "--enable-leader-election=false",
        f"--metrics-addr=127.0.0.1:{metrics}",
        f"--health-probe-bind-address=127.0.0.1:{health}",
        f"--watch-namespace={','.join(namespaces)}",
        *flags,
    ]
    program = start(name, command, plane.folder, environment=environment)
    try:
        wait_until(lambda: _is_ready(health), "KubeRay's operator is ready", 60.0, check=lambda: _check_alive(program))
        yield program
    finally:
        program.stop()


def _key() -> tuple[str, str, str]:
    files = sorted(MODULE.glob("go.*"))
    return "kuberay", versions.KUBERAY, digest(*BUILD, *(file.read_text() for file in files))


def _is_ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=2, trust_env=False).is_success
    except httpx.TransportError:
        return False


def _check_alive(program: Background) -> None:
    if program.pid is None:
        raise ProgramEndedError(f"{program.name} ended:\n{program.last_lines()}")
