"""Builds the cluster's Go programs from their modules, once, into the user's cache.

Nothing but a Go tool chain and its module proxy is needed. All programs of a group that are missing are built by one
`go build`, which shares their packages; Go's own build cache is used as it is, so a new version costs what changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

from tests.cluster.binaries import GROUPS, ModuleGroup, group_of
from tests.cluster.cache import Cache, digest
from tests.cluster.prerequisites import missing_go, require
from tests.cluster.process import run
from tests.cluster.progress import Steps

_BUILD = ("go", "build", "-trimpath")
_ENVIRONMENT = {"CGO_ENABLED": "0", "GOWORK": "off"}


def go_binaries(names: Iterable[str], *, cache: Cache | None = None, steps: Steps | None = None) -> dict[str, Path]:
    """Return the path of each named program, building what the cache lacks.

    Raises KeyError for an unknown name, PrerequisiteError when something has to be built and there is no Go, and
    CommandFailedError with Go's last lines when a build fails.
    """
    steps = steps or Steps()
    cache = cache or Cache(steps=steps)
    wanted = list(names)
    found = {name: _path(cache, group_of(name), name) for name in wanted}
    for group in GROUPS:
        missing = [name for name in wanted if name in group.programs and not found[name].exists()]
        if missing:
            _build(group, missing, cache, steps)
    return found


def is_built(names: Iterable[str], *, cache: Cache | None = None) -> bool:
    """Tell whether `go_binaries(names)` would build nothing."""
    cache = cache or Cache()
    return all(_path(cache, group_of(name), name).exists() for name in names)


def module_source(group_name: str, *, cache: Cache | None = None, steps: Steps | None = None) -> Path:
    """Return the folder with the source of a group's module ("kind", "kwok", ...), in Go's read-only module cache."""
    steps = steps or Steps()
    cache = cache or Cache(steps=steps)
    group = next(group for group in GROUPS if group.name == group_name)
    require([missing_go()])
    module = cache.entry("modules", *_key(group), build=lambda folder: _prepare(group, folder, steps))
    printed = run(["go", "mod", "download", "-json", group.module], cwd=module, environment=_ENVIRONMENT)
    return Path(json.loads(printed)["Dir"])


def _key(group: ModuleGroup) -> tuple[str, ...]:
    recipe = digest(*_BUILD, _link_flags(group), str(sorted(group.programs.items())), group.staging or "")
    return group.name, group.version, recipe


def _path(cache: Cache, group: ModuleGroup, name: str) -> Path:
    return cache.path("programs", *_key(group)) / name


def _link_flags(group: ModuleGroup) -> str:
    stamps = [f"-X {variable}={value}" for variable, value in sorted(group.stamps.items())]
    return " ".join(["-s -w", *stamps])


def _build(group: ModuleGroup, names: list[str], cache: Cache, steps: Steps) -> None:
    """Build the programs that are still missing once the group's lock is held."""
    require([missing_go()])
    module = cache.entry("modules", *_key(group), build=lambda folder: _prepare(group, folder, steps))
    folder = cache.path("programs", *_key(group))
    with cache.lock(f"programs/{folder.name}"):
        missing = [name for name in names if not (folder / name).exists()]
        if not missing:
            return
        folder.mkdir(parents=True, exist_ok=True)
        with cache.scratch(folder) as scratch, steps.step(f"Building {', '.join(missing)} {group.version}"):
            _compile(group, missing, module, scratch)
            for name in missing:
                (scratch / name).rename(folder / name)


def _compile(group: ModuleGroup, names: list[str], module: Path, output: Path) -> None:
    # Go names a program after its package when several are built at once; a single one gets the name that we want.
    target = f"{output}/" if len(names) > 1 else str(output / names[0])
    packages = [group.programs[name] for name in names]
    run([*_BUILD, "-ldflags", _link_flags(group), "-o", target, *packages], cwd=module, environment=_ENVIRONMENT)


def _prepare(group: ModuleGroup, folder: Path, steps: Steps) -> None:
    """Write a module whose tools are the group's programs, with every dependency pinned and summed."""
    with steps.step(f"Fetching the modules of {group.module} {group.version}"):
        (folder / "go.mod").write_text("module build\n")
        # The replacements are asked for first: with the requirement alone, go.mod names versions that do not exist.
        libraries = _staged_libraries(group, folder) if group.staging else []
        replacements = [f"-replace={library}={library}@{group.staging}" for library in libraries]
        requirement = f"-require={group.module}@{group.version}"
        run(["go", "mod", "edit", requirement, *replacements], cwd=folder, environment=_ENVIRONMENT)
        packages = [f"{package}@{group.version}" for package in group.programs.values()]
        run(["go", "get", "-tool", *packages], cwd=folder, environment=_ENVIRONMENT)


def _staged_libraries(group: ModuleGroup, folder: Path) -> list[str]:
    """Return the modules that the group's own go.mod replaces by folders of its repository."""
    target = f"{group.module}@{group.version}"
    printed = run(["go", "mod", "download", "-json", target], cwd=folder, environment=_ENVIRONMENT)
    go_mod = Path(json.loads(printed)["GoMod"]).read_text()
    return re.findall(r"^\s*(\S+) => \./", go_mod, re.MULTILINE)
