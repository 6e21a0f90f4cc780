"""Where the cluster's engine and images come from: what everyone uses, or all of it made here."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from tests.cluster.cache import Cache
from tests.cluster.gobuild import go_binaries, is_built
from tests.cluster.node import base_image, muster_image, node_image, ray_image
from tests.cluster.node.docker import Docker
from tests.cluster.node.own_engine import OwnEngine
from tests.cluster.node.requirements import install_packages
from tests.cluster.progress import Steps

_PROGRAMS = (*node_image.ALL_PROGRAMS, "kind")


PUBLIC_REDIS = "redis:7.4-bookworm"


class Supply(Protocol):
    """An engine and the names of the images for it.

    `node_image` is None where kind's own default is used; `ray_archive` is None where Ray's image is in the engine.
    """

    docker: Docker
    node_image: str | None
    ray_image: str
    base_image: str
    redis_image: str
    ray_archive: Path | None

    def engine_in_use(self) -> bool:
        """Tell whether there is, or was until it was killed, an engine that a cluster may be on."""

    def start_engine(self) -> None:
        """Make the engine answer."""

    def is_prepared(self) -> bool:
        """Tell whether what takes minutes the first time has been built."""

    def prepare_cluster(self) -> None:
        """Have everything at hand that a cluster is made of; the engine runs then."""

    def prepare_base(self) -> None:
        """Have the base of Muster's image in the engine, which runs then."""

    def stop_engine(self) -> None:
        """Stop an engine of our own if nothing runs on it any more."""


class PublicSupply:
    """The engine that this environment names, with public images."""

    node_image: str | None = None
    ray_image = ray_image.PUBLIC_TAG
    base_image = base_image.PUBLIC_TAG
    redis_image = PUBLIC_REDIS
    ray_archive: Path | None = None

    def __init__(self, steps: Steps) -> None:
        self.docker = Docker()
        self._steps = steps

    def engine_in_use(self) -> bool:
        """It is, where it answers."""
        return self.docker.answers()

    def start_engine(self) -> None:
        """Nothing: it runs."""

    def is_prepared(self) -> bool:
        """Nothing is built."""
        return True

    def prepare_cluster(self) -> None:
        """Pull Ray's image once, rather than on each worker; kind pulls its own."""
        with self._steps.step(f"Pulling {self.ray_image}"):
            self.docker.run("pull", "--quiet", self.ray_image)

    def prepare_base(self) -> None:
        """Nothing: the build pulls it."""

    def stop_engine(self) -> None:
        """Nothing: it is not ours to stop."""


class BuiltSupply:
    """An engine of our own and images made from Go modules, Debian packages and Python packages."""

    node_image: str | None = node_image.TAG
    redis_image = ray_image.TAG
    ray_image = ray_image.TAG
    base_image = base_image.TAG

    def __init__(self, cache: Cache, steps: Steps) -> None:
        self._cache, self._steps = cache, steps
        self._engine = OwnEngine(cache, steps)
        self.docker = self._engine.docker
        self.ray_archive: Path | None = None

    def engine_in_use(self) -> bool:
        """It is, until it was stopped in order."""
        return self._engine.in_use()

    def start_engine(self) -> None:
        """Start it, with Debian's docker.io installed if need be."""
        install_packages(self._steps)
        self._engine.start()

    def is_prepared(self) -> bool:
        """The programs have been: all else takes a fraction of their time."""
        return is_built(_PROGRAMS, cache=self._cache)

    def prepare_cluster(self) -> None:
        """Build the images that the cache lacks, the Go programs at the same time, and load the node image."""
        install_packages(self._steps)
        with ThreadPoolExecutor(1) as beside:
            ray_archive = beside.submit(self._prepare_without_programs, not self.is_prepared())
            go_binaries(_PROGRAMS, cache=self._cache, steps=self._steps)
            self.ray_archive = ray_archive.result()
        node = node_image.node_image(self._cache, self._steps)
        self._load(node_image.TAG, node)

    def prepare_base(self) -> None:
        """Build and load it."""
        self.start_engine()
        self._load(self.base_image, base_image.base_image(self._cache, self._steps))

    def stop_engine(self) -> None:
        """Stop it if it has no containers, and undo what it did to the machine."""
        self._engine.stop_if_idle()

    def _prepare_without_programs(self, first_time: bool) -> Path:
        """Do all that needs no compiled program, which takes minutes of waiting for the network and the disk.

        The first time Muster's image is built as well, early: who asks for it when the cluster is up then has it.
        """
        self.prepare_base()
        if first_time:
            muster_image.build_image(self.docker, self.base_image, cache=self._cache, steps=self._steps)
        node_image.node_root(self._cache, self._steps)
        return ray_image.ray_image(self._cache, self._steps)

    def _load(self, tag: str, archive: Path) -> None:
        if self.docker.image_id(tag) is None:
            with self._steps.step(f"Loading {tag} into the engine"):
                self.docker.run("load", "--quiet", "--input", archive)
                self.docker.forget_old(tag)


def make_supply(cache: Cache, steps: Steps, *, public: bool) -> Supply:
    """Return the one way or the other."""
    return PublicSupply(steps) if public else BuiltSupply(cache, steps)
