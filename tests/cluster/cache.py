"""The user's cache of things that take long to build: Go programs, images, root file systems.

An entry is a folder named after what it is and the versions it was built from. It appears at once and whole: a build
writes into a scratch folder beside it, which is renamed when the build has succeeded. Runs that want the same entry at
the same time wait for one builder (a file lock, which the kernel drops if the builder is killed); what a killed build
left is removed by the next builder of that entry. A new entry takes the place of old ones of its kind, but for the
newest: another checkout may use that.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

from tests.cluster.progress import Steps

_OTHERS_KEPT = 1


def default_root() -> Path:
    """Return `$XDG_CACHE_HOME/muster-cluster`, or `~/.cache/muster-cluster`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "muster-cluster"


def digest(*parts: str) -> str:
    """Return ten hexadecimal digits that stand for the parts: for versions and recipes too long for a name."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:10]


class Cache:
    """Entries and locks under one root folder."""

    def __init__(self, root: Path | None = None, *, steps: Steps | None = None) -> None:
        self.root = root or default_root()
        self._steps = steps or Steps()

    def path(self, kind: str, *versions: str) -> Path:
        """Return where the entry is, or would be."""
        return self.root / kind / "-".join(versions)

    def entry(self, kind: str, *versions: str, build: Callable[[Path], None]) -> Path:
        """Return the entry's folder, built by `build(scratch folder)` if it is not there.

        The scratch folder exists and is empty; when `build` returns it becomes the entry. An exception of `build`
        passes through and leaves nothing.
        """
        target = self.path(kind, *versions)
        if target.exists():
            return target
        with self.lock(f"{kind}/{target.name}"):
            if not target.exists():
                with self.scratch(target) as scratch:
                    build(scratch)
                    scratch.rename(target)
                self.forget_old(target)
        return target

    def forget_old(self, target: Path) -> None:
        """Remove what was built before `target` from other versions or by other recipes, but for the newest of them.

        What somebody builds or adds to at this moment, and so holds the lock of, stays.
        """
        others = [path for path in target.parent.iterdir() if path != target and not path.name.startswith(".")]
        for old in sorted(others, key=_age)[_OTHERS_KEPT:]:
            with self._lock_path(f"{old.parent.name}/{old.name}").open("w") as file:
                if try_lock(file):
                    with self.scratch(old) as scratch, contextlib.suppress(FileNotFoundError):
                        old.rename(scratch / "old")

    @contextlib.contextmanager
    def scratch(self, target: Path) -> Iterator[Path]:
        """Give a fresh folder beside `target`, on the same file system; the caller holds the lock of `target`.

        Folders that killed builds of the same target left are removed first, and this one at the end.
        """
        target.parent.mkdir(parents=True, exist_ok=True)
        prefix = f".{target.name}."
        for stale in target.parent.glob(f"{prefix}*"):
            shutil.rmtree(stale, ignore_errors=True)
        # A name of its own, so that a compiler that outlived its killed parent cannot write into this build.
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))
        folder.chmod(0o755)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @contextlib.contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Hold the machine-wide lock `name` (this user's); says so when it has to wait for another run."""
        with self._lock_path(name).open("w") as file:
            if not try_lock(file):
                with self._steps.step(f"Waiting for another run that holds {name}"):
                    fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _lock_path(self, name: str) -> Path:
        path = self.root / "locks" / f"{name.replace('/', '_')}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


def _age(entry: Path) -> float:
    """Return what sorts the newest first; the last is an entry that has just gone."""
    try:
        return -entry.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def try_lock(file: TextIO) -> bool:
    """Lock the open file for this process unless someone holds it; the lock ends with the file or the process."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
