"""Writes the Go module of the cluster's programs (programs/go.mod and go.sum) from versions.py; part of `make lock`.

Kubernetes decides. Its programs are built from the very versions of libraries that its own release was, whatever newer
ones the other programs ask for: those are held back by replacements. Only etcd's libraries are those of its server.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.cluster import versions
from tests.cluster.binaries import KUBERNETES_MODULE, MODULE, MODULE_NAME, PROGRAMS, REQUIREMENTS
from tests.cluster.gobuild import ENVIRONMENT
from tests.cluster.process import run

_STAGING = "v0." + versions.KUBERNETES.removeprefix("v1.")
_RAISED = {"github.com/wzshiming/easycel": "v0.6.0"}
"""kwok's expressions, in the first release that is written for the CEL library of this Kubernetes."""

_GO = ".".join(map(str, versions.GO_MINIMUM)) + ".0"


def lock(folder: Path = MODULE) -> None:
    """Write go.mod and go.sum into the folder, beside the packages of our own."""
    (folder / "go.sum").unlink(missing_ok=True)
    (folder / "go.mod").write_text(f"module {MODULE_NAME}\n")
    downloaded = json.loads(_go(folder, "mod", "download", "-json", f"{KUBERNETES_MODULE}@{versions.KUBERNETES}"))
    kubernetes = Path(downloaded["GoMod"]).read_text()
    # Kubernetes names folders of its own repository; who depends on it has to name the published libraries instead.
    # They come first: with the requirement alone, go.mod would name versions that do not exist.
    replacements = dict.fromkeys(staged_libraries(kubernetes), _STAGING)
    requirements = [f"-require={module}@{version}" for module, version in {**REQUIREMENTS, **_RAISED}.items()]
    _go(folder, "mod", "edit", f"-go={_GO}", *requirements, *_replace(replacements))
    _go(folder, "get", "-tool", *_tools())
    _go(folder, "mod", "tidy")
    selected = required_versions((folder / "go.mod").read_text())
    _go(folder, "mod", "edit", *_replace(held_back(required_versions(kubernetes), selected, replacements)))
    _go(folder, "mod", "tidy")


def staged_libraries(kubernetes: str) -> list[str]:
    """Return the modules that Kubernetes' go.mod replaces by folders of its own repository."""
    return re.findall(r"^\s*(\S+) => \./", kubernetes, re.MULTILINE)


def required_versions(go_mod: str) -> dict[str, str]:
    """Return the version that a go.mod requires of each module."""
    without_excluded = re.sub(r"^exclude \(.*?^\)", "", go_mod, flags=re.MULTILINE | re.DOTALL)
    return dict(re.findall(r"^(?:require|\t) ?(\S+) (v\S+)(?: // indirect)?$", without_excluded, re.MULTILINE))


def held_back(kubernetes: dict[str, str], selected: dict[str, str], staged: dict[str, str]) -> dict[str, str]:
    """Return the version of each library that other programs have raised above the one that Kubernetes asks for."""
    return {
        module: version
        for module, version in kubernetes.items()
        if module not in staged and not module.startswith("go.etcd.io/") and selected.get(module, version) != version
    }


def _tools() -> list[str]:
    """Return the packages of other modules that programs are, with their versions: else Go would take the newest."""
    return [
        f"{package}@{version}"
        for package in PROGRAMS.values()
        for module, version in REQUIREMENTS.items()
        if f"{package}/".startswith(f"{module}/")
    ]


def _replace(replacements: dict[str, str]) -> list[str]:
    return [f"-replace={module}={module}@{version}" for module, version in replacements.items()]


def _go(folder: Path, *command: str) -> str:
    return run(["go", *command], cwd=folder, environment={**ENVIRONMENT, "GOFLAGS": "-mod=mod"})


if __name__ == "__main__":
    lock()
