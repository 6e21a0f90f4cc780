"""Root file systems of small Debian systems, made from packages by debootstrap.

The smallest system is made once; every other is a copy of it with more packages installed inside. Nothing in them is
started, and they keep no package lists.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.cluster import versions
from tests.cluster.cache import Cache
from tests.cluster.process import run
from tests.cluster.progress import Steps

_RECIPE = "1"
_QUIET: Mapping[str, str] = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
_SUPERFLUOUS = ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale", "var/log")
_APT = ("-o", "Dpkg::Options::=--force-unsafe-io", "-o", "APT::Sandbox::User=root", "-q")


@contextlib.contextmanager
def temporary_root(packages: Sequence[str], folder: Path, cache: Cache, steps: Steps) -> Iterator[Path]:
    """Give a Debian system with the packages and all that they depend on, in `folder`, until the block ends.

    Needs root (to own the files and to enter the system).
    """
    root = folder / "root"
    try:
        make_root(root, packages, cache, steps)
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


@contextlib.contextmanager
def temporary_copy(source: Path, folder: Path) -> Iterator[Path]:
    """Give a copy of a root file system, in `folder`, until the block ends."""
    root = folder / "root"
    try:
        run(["cp", "-a", source, root])
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


def make_root(root: Path, packages: Sequence[str], cache: Cache, steps: Steps) -> None:
    """Make a Debian system with the packages and all that they depend on, in the new folder `root`."""
    run(["cp", "-a", _minimal_root(cache, steps), root])
    with steps.step(f"Installing {', '.join(packages)[:60]} ..."), _able_to_install(root):
        chroot(root, "apt-get", *_APT, "update")
        chroot(root, "apt-get", *_APT, "install", "--yes", "--no-install-recommends", *packages)
    for child in _SUPERFLUOUS:
        remove(root, f"{child}/*")


@contextlib.contextmanager
def _able_to_install(root: Path) -> Iterator[None]:
    """Let apt in the root file system resolve names, and keep package scripts from starting services."""
    resolver, no_services = root / "etc/resolv.conf", root / "usr/sbin/policy-rc.d"
    shutil.copy("/etc/resolv.conf", resolver)
    no_services.write_text("#!/bin/sh\nexit 101\n")
    no_services.chmod(0o755)
    yield
    no_services.unlink()
    resolver.write_text("")


def remove(root: Path, pattern: str) -> None:
    """Remove what matches the pattern in the root file system, folders whole; links are not followed."""
    for path in root.glob(pattern):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def chroot(root: Path, *command: str) -> str:
    """Run a command inside the root file system and return its output."""
    return run(["chroot", root, *command], environment=_QUIET)


def _minimal_root(cache: Cache, steps: Steps) -> Path:
    def build(folder: Path) -> None:
        with steps.step(f"Installing a minimal Debian {versions.DEBIAN}"):
            # From debootstrap's own default mirror. It mounts in the folder; its mounts end with its own mount
            # namespace, however it ends: left behind, they would keep the folder from being removed.
            command = ("debootstrap", "--variant=minbase", versions.DEBIAN)
            run(["unshare", "--mount", *command, folder], environment=_QUIET)

    return cache.entry("minimal-root", versions.DEBIAN, _RECIPE, build=build)
