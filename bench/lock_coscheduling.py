"""Writes the Go module that coscheduling is built in (coscheduling_module/go.mod and go.sum); part of `make lock`.

All that it has in common with the cluster's programs is held to the versions of those, Kubernetes itself included: so
it is compiled once, and the two schedulers differ by the plugin alone.
"""

from __future__ import annotations

import re
from pathlib import Path

from bench.coscheduling import MODULE, MODULE_NAME, PLUGINS_MODULE
from tests.cluster import versions
from tests.cluster.binaries import KUBERNETES_MODULE
from tests.cluster.binaries import MODULE as PROGRAMS
from tests.cluster.gobuild import ENVIRONMENT
from tests.cluster.lock_kuberay import shared
from tests.cluster.lock_programs import required_versions
from tests.cluster.process import run

_GO = ".".join(map(str, versions.GO_MINIMUM)) + ".0"


def lock(folder: Path = MODULE) -> None:
    """Write go.mod and go.sum into the folder, beside the program."""
    (folder / "go.sum").unlink(missing_ok=True)
    (folder / "go.mod").write_text(f"module {MODULE_NAME}\n")
    programs = (PROGRAMS / "go.mod").read_text()
    kubernetes = {KUBERNETES_MODULE: versions.KUBERNETES, **dict(_STAGED.findall(programs))}
    requirements = {KUBERNETES_MODULE: versions.KUBERNETES, PLUGINS_MODULE: versions.SCHEDULER_PLUGINS}
    _go(folder, "mod", "edit", f"-go={_GO}", *_require(requirements), *_replace(kubernetes))
    _go(folder, "mod", "tidy")
    _go(folder, "mod", "edit", *_replace(shared(programs, required_versions((folder / "go.mod").read_text()))))
    _go(folder, "mod", "tidy")


_STAGED = re.compile(r"^replace (k8s\.io/\S+) => \S+ (v\S+)$", re.MULTILINE)


def _require(wanted: dict[str, str]) -> list[str]:
    return [f"-require={module}@{version}" for module, version in wanted.items()]


def _replace(held: dict[str, str]) -> list[str]:
    return [f"-replace={module}={module}@{version}" for module, version in held.items()]


def _go(folder: Path, *command: str) -> str:
    return run(["go", *command], cwd=folder, environment={**ENVIRONMENT, "GOFLAGS": "-mod=mod"})


if __name__ == "__main__":
    lock()
