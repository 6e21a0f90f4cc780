"""Builds the cluster's Go programs, once, into the user's cache.

Nothing but a Go tool chain and its module proxy is needed. All programs that are missing are built by one `go build`,
which compiles what they share once; Go's own build cache is used as it is, so a new version costs what changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from tests.cluster.binaries import MODULE, PROGRAMS, stamps
from tests.cluster.cache import Cache, digest
from tests.cluster.prerequisites import missing_go, require
from tests.cluster.process import run
from tests.cluster.progress import Steps

ENVIRONMENT = {"CGO_ENABLED": "0", "GOWORK": "off"}
# A compiler that lives for seconds had better not collect its garbage, as long as there is memory.
COMPILER = {"GOGC": "400", "GOMEMLIMIT": "1GiB"}

_LINK = " ".join(["-s -w", *(f"-X {variable}={value}" for variable, value in sorted(stamps().items()))])
# Much of what is compiled is command line tools and generated code that runs once, if at all, or that calls more than
# it computes: functions of it are not inlined, which is a fifth of a compiler's work. What the API server, etcd and the
# client compute all the time is not here.
_SELDOM_RUN = (
    *("k8s.io/kubernetes/cmd/...", "k8s.io/kubernetes/pkg/generated/...", "k8s.io/kubernetes/pkg/kubelet/..."),
    *("k8s.io/kubernetes/pkg/controller/...", "k8s.io/kubernetes/pkg/volume/...", "k8s.io/kubernetes/pkg/proxy/..."),
    *("k8s.io/client-go/applyconfigurations/...", "k8s.io/client-go/informers/...", "k8s.io/client-go/listers/..."),
    *("k8s.io/client-go/kubernetes/...", "k8s.io/kubectl/...", "k8s.io/cli-runtime/...", "k8s.io/cri-api/..."),
    *("k8s.io/kubelet/...", "sigs.k8s.io/kustomize/...", "sigs.k8s.io/kind/..."),
    *("k8s.io/kubernetes/pkg/apis/...", "k8s.io/kubernetes/pkg/registry/...", "k8s.io/kubernetes/pkg/scheduler/..."),
    *("k8s.io/api/...", "k8s.io/apiextensions-apiserver/pkg/apis/...", "github.com/google/cel-go/..."),
    *("github.com/google/gnostic-models/...", "github.com/google/cadvisor/...", "go.opentelemetry.io/otel/..."),
    *("github.com/antlr4-go/...", "github.com/quic-go/...", "github.com/coredns/..."),
)
# The linker drops what debuggers need: so the compiler need not write it, which is a tenth of its work.
BUILD = (
    *("go", "build", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false"),
    *(f"-gcflags={pattern}=-dwarf=false -l" for pattern in _SELDOM_RUN),
    f"-ldflags={_LINK}",
)


def recipe() -> str:
    """Return a digest of all that the programs are made from and how; another one builds all of them anew."""
    files = sorted(path for pattern in ("go.*", "*/*.go") for path in MODULE.glob(pattern))
    return digest(*BUILD, *(f"{path.relative_to(MODULE)}\n{path.read_text()}" for path in files))


RECIPE = recipe()


def go_binaries(names: Iterable[str], *, cache: Cache | None = None, steps: Steps | None = None) -> dict[str, Path]:
    """Return the path of each named program, building what the cache lacks.

    Raises KeyError for an unknown name, PrerequisiteError when something has to be built and there is no Go, and
    CommandFailedError with Go's last lines when a build fails.
    """
    steps = steps or Steps()
    cache = cache or Cache(steps=steps)
    found = _paths(names, cache)
    if not all(path.exists() for path in found.values()):
        _build(found, cache, steps)
    return found


def is_built(names: Iterable[str], *, cache: Cache | None = None) -> bool:
    """Tell whether `go_binaries(names)` would build nothing."""
    return all(path.exists() for path in _paths(names, cache or Cache()).values())


def module_source(module: str) -> Path:
    """Return the folder with the source of a module ("sigs.k8s.io/kind", ...), in Go's read-only module cache."""
    require([missing_go()])
    printed = run(["go", "mod", "download", "-json", module], cwd=MODULE, environment=ENVIRONMENT)
    return Path(json.loads(printed)["Dir"])


def _paths(names: Iterable[str], cache: Cache) -> dict[str, Path]:
    folder = cache.path("programs", RECIPE)
    return {name: folder / PROGRAMS[name].rpartition("/")[2] for name in names}


def _build(wanted: dict[str, Path], cache: Cache, steps: Steps) -> None:
    """Build the programs that are still missing once the lock is held."""
    require([missing_go()])
    folder = cache.path("programs", RECIPE)
    with cache.lock(f"programs/{folder.name}"):
        missing = [name for name, path in wanted.items() if not path.exists()]
        if not missing:
            return
        folder.mkdir(parents=True, exist_ok=True)
        with cache.scratch(folder) as scratch, steps.step(f"Building {', '.join(missing)}"):
            packages = [PROGRAMS[name] for name in missing]
            run([*BUILD, "-o", f"{scratch}/", *packages], cwd=MODULE, environment={**COMPILER, **ENVIRONMENT})
            for name in missing:
                (scratch / name).rename(folder / name)
        cache.forget_old(folder)
