"""Builds KubeRay's end-to-end tests as programs, once, into the user's cache.

They are part of KubeRay's Go module, so they are built there, in the read-only folder of Go's module cache, with that
module's own `go.mod`. What the cluster's programs are compiled with already is held to their versions, as for KubeRay's
operator: so it is not compiled again.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.cluster import kuberay, versions
from tests.cluster.cache import Cache, digest
from tests.cluster.gobuild import BUILD, COMPILER, ENVIRONMENT
from tests.cluster.lock_kuberay import replacements
from tests.cluster.lock_programs import required_versions
from tests.cluster.process import run
from tests.cluster.progress import Steps
from tests.compatibility.cases import PARTS

_TEST = ("go", "test", "-c", "-vet=off", *BUILD[2:])


def programs(cache: Cache, steps: Steps) -> dict[str, Path]:
    """Return the program of each package in PARTS.

    Raises PrerequisiteError where there is no Go, CommandFailedError when the build fails.
    """

    def build(folder: Path) -> None:
        source = kuberay.source()
        with steps.step(f"Building the end-to-end tests of KubeRay {versions.KUBERAY}"), _module(source) as modfile:
            packages = [f"./test/{package}" for package in PARTS]
            command = [*_TEST, f"-modfile={modfile}/go.mod", "-mod=mod", "-o", f"{folder}/", *packages]
            run(command, cwd=source, environment={**COMPILER, **ENVIRONMENT})

    key = digest(*_TEST, *PARTS, *(file.read_text() for file in sorted(kuberay.MODULE.glob("go.*"))))
    folder = cache.entry("kuberay-tests", versions.KUBERAY, key, build=build)
    return {package: folder / f"{package}.test" for package in PARTS}


def tests_of(program: Path) -> list[str]:
    """The names of the tests that a program has."""
    return run([program, "-test.list", "^Test"]).split()


def _module(source: Path) -> tempfile.TemporaryDirectory[str]:
    """A folder with KubeRay's go.mod and go.sum, and the versions that this repository holds its operator to.

    The two together are not tidy (what those versions do not need is still there), so Go is let write to them.
    """
    folder = tempfile.TemporaryDirectory(prefix="kuberay-tests-")
    sums = {line for where in (source, kuberay.MODULE) for line in (where / "go.sum").read_text().splitlines()}
    (Path(folder.name) / "go.mod").write_text("\n".join([(source / "go.mod").read_text(), *_held(), ""]))
    (Path(folder.name) / "go.sum").write_text("\n".join([*sorted(sums), ""]))
    return folder


def _held() -> list[str]:
    """The lines of go.mod that take each library from the version that the operator is built from."""
    go_mod = (kuberay.MODULE / "go.mod").read_text()
    built_from = {**required_versions(go_mod), **replacements(go_mod)}
    del built_from[kuberay.KUBERAY_MODULE]
    return [f"replace {module} => {module} {version}" for module, version in built_from.items()]
