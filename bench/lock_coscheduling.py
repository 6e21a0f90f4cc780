"""Writes the Go module that coscheduling is built in (coscheduling_module/go.mod and go.sum); part of `make lock`.

All that it has in common with the cluster's programs is taken in the versions of those, Kubernetes itself included: so
it is compiled once, and the two schedulers differ by the plugin alone.
"""

from __future__ import annotations

from pathlib import Path

from bench.coscheduling import MODULE, MODULE_NAME, PLUGINS_MODULE
from tests.cluster import versions
from tests.cluster.binaries import KUBERNETES_MODULE
from tests.cluster.binaries import MODULE as PROGRAMS
from tests.cluster.gobuild import ENVIRONMENT
from tests.cluster.lock_kuberay import hold_to_programs, replacements
from tests.cluster.process import run

_GO = ".".join(map(str, versions.GO_MINIMUM)) + ".0"


def lock(folder: Path = MODULE) -> None:
    """Write go.mod and go.sum into the folder, beside the program."""
    (folder / "go.sum").unlink(missing_ok=True)
    (folder / "go.mod").write_text(f"module {MODULE_NAME}\n")
    staged = {
        module: version
        for module, version in replacements((PROGRAMS / "go.mod").read_text()).items()
        if module.startswith("k8s.io/")
    }
    wanted = {KUBERNETES_MODULE: versions.KUBERNETES, PLUGINS_MODULE: versions.SCHEDULER_PLUGINS}
    requirements = [f"-require={module}@{version}" for module, version in wanted.items()]
    # Kubernetes asks for libraries in versions that exist in its own repository only.
    replaced = [f"-replace={module}={module}@{version}" for module, version in staged.items()]
    flags = (f"-go={_GO}", *requirements, *replaced)
    run(["go", "mod", "edit", *flags], cwd=folder, environment={**ENVIRONMENT, "GOFLAGS": "-mod=mod"})
    hold_to_programs(folder)


if __name__ == "__main__":
    lock()
