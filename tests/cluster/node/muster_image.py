"""Muster's own image, made by `docker build` of the repository's Dockerfile from wheels that are prepared beside it."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster.cache import Cache, digest
from tests.cluster.node.docker import Docker
from tests.cluster.process import run
from tests.cluster.progress import Steps

if TYPE_CHECKING:
    from tests.cluster.node.cluster import NodeCluster

REPOSITORY = Path(__file__).parents[3]
WHEELS = REPOSITORY / "build/wheels"

_PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")


def prepare_wheels(cache: Cache, steps: Steps) -> Path:
    """Fill build/wheels with Muster's wheel and the pinned wheels of all it depends on, and return the folder.

    Only the first time, and when requirements.txt has changed, does it need the network.
    """
    requirements = REPOSITORY / "requirements.txt"

    def download(folder: Path) -> None:
        with steps.step("Downloading the wheels that Muster depends on"):
            wanted = ("--python-version", "3.11", "--only-binary", ":all:")
            run([*_PIP, "download", *wanted, "--no-deps", "--dest", folder, "--requirement", requirements])

    dependencies = cache.entry("muster-wheels", digest(requirements.read_text()), build=download)
    shutil.rmtree(WHEELS, ignore_errors=True)
    shutil.copytree(dependencies, WHEELS)
    run([*_PIP, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", WHEELS, REPOSITORY])
    return WHEELS


def build_image(docker: Docker, base_image: str, *, cache: Cache, steps: Steps) -> str:
    """Build Muster's image in the engine unless it has it, and return its tag, which stands for its content."""
    wheels = prepare_wheels(cache, steps)
    dockerfile = REPOSITORY / "Dockerfile"
    content = [f"{wheel.name} {digest(wheel.read_bytes().hex())}" for wheel in sorted(wheels.iterdir())]
    tag = f"localhost/muster:{digest(base_image, dockerfile.read_text(), *content)}"
    if docker.image_id(tag) is None:
        with steps.step("Building Muster's image"), tempfile.TemporaryDirectory() as name:
            context = Path(name)
            shutil.copy(dockerfile, context)
            shutil.copytree(wheels, context / "build/wheels")
            # The newer builder is a plugin that an engine from Debian does not have.
            builder = {} if docker.host is None else {"DOCKER_BUILDKIT": "0"}
            build = ("build", "--quiet", "--tag", tag, "--build-arg", f"BASE_IMAGE={base_image}", context)
            docker.run(*build, **builder)
        if docker.host is not None:
            docker.forget_old(tag)
    return tag


def build_muster_image(cluster: NodeCluster) -> str:
    """Build Muster's image in the cluster's engine unless it has it, and return its tag; see `load_image`."""
    return build_image(cluster.docker, cluster.base_image, cache=cluster.cache, steps=cluster.steps)
