"""Writes the Go module that KubeRay's operator is built in (kuberay_module/go.mod and go.sum); part of `make lock`.

It is a module of its own, since its operator needs another controller-runtime than the cluster's programs do. All that
both need is held to the versions of those, a patch release or two below what KubeRay asks for: so it is compiled once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from tests.cluster import versions
from tests.cluster.binaries import MODULE as PROGRAMS
from tests.cluster.gobuild import ENVIRONMENT
from tests.cluster.kuberay import KUBERAY_MODULE, MODULE, MODULE_NAME
from tests.cluster.lock_programs import required_versions
from tests.cluster.process import run

_OWN = ("sigs.k8s.io/controller-runtime",)
"""What KubeRay's operator is written against, and so stays at the version that it asks for."""

_GO = ".".join(map(str, versions.GO_MINIMUM)) + ".0"


def lock(folder: Path = MODULE) -> None:
    """Write go.mod and go.sum into the folder."""
    (folder / "go.sum").unlink(missing_ok=True)
    (folder / "go.mod").write_text(f"module {MODULE_NAME}\n")
    _go(folder, "mod", "edit", f"-go={_GO}", f"-require={KUBERAY_MODULE}@{versions.KUBERAY}")
    _go(folder, "get", "-tool", f"{KUBERAY_MODULE}@{versions.KUBERAY}")
    _go(folder, "mod", "tidy")
    held = shared((PROGRAMS / "go.mod").read_text(), required_versions((folder / "go.mod").read_text()))
    _go(folder, "mod", "edit", *(f"-replace={module}={module}@{version}" for module, version in held.items()))
    _go(folder, "mod", "tidy")


def shared(programs: str, selected: Mapping[str, str]) -> dict[str, str]:
    """Return the versions of the programs' go.mod for what `selected` has too, in another version."""
    replaced = dict(re.findall(r"^replace (\S+) => \S+ (v\S+)$", programs, re.MULTILINE))
    built = {**required_versions(programs), **replaced}
    return {
        module: built[module]
        for module, version in selected.items()
        if module not in _OWN and built.get(module, version) != version
    }


def _go(folder: Path, *command: str) -> str:
    return run(["go", *command], cwd=folder, environment={**ENVIRONMENT, "GOFLAGS": "-mod=mod"})


if __name__ == "__main__":
    lock()
