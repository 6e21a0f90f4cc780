"""Writes the Go module that KubeRay's operator is built in (kuberay_module/go.mod and go.sum); part of `make lock`.

It is a module of its own, since its operator needs another controller-runtime than the cluster's programs do. All that
both need is taken from the versions of those, a patch release or two below what KubeRay asks for: so it is compiled
once. For that the selected version has to be the same too, not only what replaces it: Go knows what it has compiled by
the version that was selected. So newer ones are excluded, which makes Go pass over who asks for them.
"""

from __future__ import annotations

import re
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
    hold_to_programs(folder)


def hold_to_programs(folder: Path) -> None:
    """Tidy the module in the folder, with all that it shares with the programs in the very versions of those."""
    _go(folder, "mod", "tidy")
    programs, go_mod = (PROGRAMS / "go.mod").read_text(), folder / "go.mod"
    settled = False
    while not settled:
        before = go_mod.read_text()
        changes = shared(programs, before)
        if changes:
            _go(folder, "mod", "edit", *changes)
        _go(folder, "mod", "tidy")
        # Tidying brings to light what the graph of modules had been spared of before.
        settled = not changes and go_mod.read_text() == before


def shared(programs: str, own: str) -> list[str]:
    """Return the flags of `go mod edit` that take what both go.mod name from where the programs have it.

    None are left when it is. What is excluded may bring another version to light, which has to be excluded then.
    """
    wanted, selected = required_versions(programs), required_versions(own)
    both = sorted((wanted.keys() & selected.keys()) - set(_OWN))
    other = [module for module in both if selected[module] != wanted[module]]
    replaced, already = replacements(programs), replacements(own)
    return [
        *(f"-exclude={module}@{selected[module]}" for module in other if _is_newer(selected[module], wanted[module])),
        *(f"-require={module}@{wanted[module]}" for module in other),
        *(
            f"-replace={module}={module}@{replaced[module]}"
            for module in both
            if module in replaced and already.get(module) != replaced[module]
        ),
        *(f"-dropreplace={module}" for module in both if module in already and module not in replaced),
    ]


def replacements(go_mod: str) -> dict[str, str]:
    """Return the version that a go.mod replaces each module by."""
    return dict(re.findall(r"^replace (\S+) => \S+ (v\S+)$", go_mod, re.MULTILINE))


def _is_newer(one: str, other: str) -> bool:
    """Tell which of two versions of a module Go would select. Of pre-releases only those named by date are known."""
    return _order(one) > _order(other)


def _order(version: str) -> tuple[list[int], bool, str]:
    release, _, before = version.removeprefix("v").removesuffix("+incompatible").partition("-")
    return [int(number) for number in release.split(".")], not before, before


def _go(folder: Path, *command: str) -> str:
    return run(["go", *command], cwd=folder, environment={**ENVIRONMENT, "GOFLAGS": "-mod=mod"})


if __name__ == "__main__":
    lock()
