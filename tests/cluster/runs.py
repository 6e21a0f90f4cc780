"""State folders of clusters, and the recovery of those whose owner was killed.

Each cluster has one folder below the machine's temporary folder, with everything that it wrote and a pid file for each
process. Its owner holds a lock on the folder for as long as it lives; the kernel drops the lock whatever the owner died
of. So a folder whose lock can be had is a dead run's: whoever starts the next cluster stops its processes and removes
it. A cluster that shall outlive the command that started it (`up`) is marked as kept and is left alone.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.cluster.cache import Cache, try_lock
from tests.cluster.process import background_programs, stop_all
from tests.cluster.termination import raise_if_told

_OWNER, _KEPT = "owner.lock", "kept"


def default_root() -> Path:
    """Return the folder of this user's runs."""
    return Path(tempfile.gettempdir()) / f"muster-cluster-{os.getuid()}"


def destroy(folder: Path) -> None:
    """Kill every process of a run and remove its folder; what they had written is of no use to anyone."""
    stop_all(background_programs(folder), signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


class Runs:
    """The runs of one kind of cluster: `level` begins the names of their folders.

    `destroy` takes one run down; a level with more to undo than processes and files gives its own.
    """

    def __init__(
        self,
        level: str,
        *,
        root: Path | None = None,
        cache: Cache | None = None,
        destroy: Callable[[Path], None] = destroy,
    ) -> None:
        self.root = root or default_root()
        self._level = level
        self._cache = cache or Cache()
        self._destroy = destroy

    @contextlib.contextmanager
    def own(self) -> Iterator[Path]:
        """Give a fresh folder that belongs to this process, and destroy the run at the end, however it ends."""
        with self._claim(lambda: Path(tempfile.mkdtemp(prefix=f"{self._level}-", dir=self.root))) as folder:
            try:
                yield folder
            finally:
                self._destroy(folder)
        self._drop_empty_root()

    @contextlib.contextmanager
    def keep(self, name: str) -> Iterator[Path]:
        """Give the folder of a run that stays after the block, until `remove(name)`.

        A block that fails or is killed leaves nothing, as with `own`. FileExistsError if the run is there already.
        """
        with self._claim(lambda: self._make_kept(name)) as folder:
            try:
                yield folder
                raise_if_told()
                (folder / _KEPT).touch()
            except BaseException:
                self._destroy(folder)
                raise

    def _make_kept(self, name: str) -> Path:
        folder = self.kept(name)
        folder.mkdir(mode=0o700)
        return folder

    @contextlib.contextmanager
    def _claim(self, make: Callable[[], Path]) -> Iterator[Path]:
        """Recover dead runs, make a folder, and hold its owner's lock."""
        with contextlib.ExitStack() as stack:
            with self._registry():
                self._recover()
                folder = make()
                owner = stack.enter_context((folder / _OWNER).open("w"))
                try_lock(owner)
            yield folder

    def kept(self, name: str) -> Path:
        """Return where the folder of the kept run is, or would be."""
        return self.root / f"{self._level}-kept-{name}"

    def remove(self, name: str) -> None:
        """Destroy the kept run, if there is one, and recover dead ones."""
        with self._registry():
            if self.kept(name).exists():
                self._destroy(self.kept(name))
            self._recover()
        self._drop_empty_root()

    def recover(self) -> list[Path]:
        """Destroy the runs whose owner is dead; return their folders."""
        with self._registry():
            dead = self._recover()
        self._drop_empty_root()
        return dead

    def _recover(self) -> list[Path]:
        dead = [folder for folder in self.root.glob(f"{self._level}-*") if _owner_is_dead(folder)]
        for folder in dead:
            self._destroy(folder)
        return dead

    def _drop_empty_root(self) -> None:
        with self._cache.lock("runs"), contextlib.suppress(OSError):
            self.root.rmdir()

    @contextlib.contextmanager
    def _registry(self) -> Iterator[None]:
        """Hold the list of runs still: a folder is never seen before its owner has locked it."""
        with self._cache.lock("runs"):
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            yield


def _owner_is_dead(folder: Path) -> bool:
    if (folder / _KEPT).exists():
        return False
    try:
        with (folder / _OWNER).open("r+") as owner:
            return try_lock(owner)
    except FileNotFoundError:
        return True
