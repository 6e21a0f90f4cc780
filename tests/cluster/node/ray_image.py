"""Ray's image where rayproject/ray is out of reach: Debian's Python with Ray from PyPI in a virtual environment.

It holds what KubeRay's pods expect of a Ray image: `ray` in the PATH of login and other shells, wget for the probes;
and a Redis server, which is small and spares the tests an image more.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tests.cluster import versions
from tests.cluster.cache import Cache, digest
from tests.cluster.node.image_archive import PATH, ImageConfig, write_image
from tests.cluster.node.root_file_system import chroot, remove, temporary_root
from tests.cluster.process import run
from tests.cluster.progress import Steps

TAG = f"localhost/ray:{versions.RAY}"
PUBLIC_TAG = f"rayproject/ray:{versions.RAY}-py311"

_RECIPE = "1"
_PACKAGES = ("python3", "python3-venv", "wget", "curl", "ca-certificates", "procps", "redis-server")
_REQUIREMENT = f"ray[default]=={versions.RAY}"


def ray_image(cache: Cache, steps: Steps) -> Path:
    """Return the archive of the image TAG, built if the cache lacks it."""

    def build(folder: Path) -> None:
        with steps.step(f"Building the image of Ray {versions.RAY}"):
            wheels = _wheels(cache, steps)
            with temporary_root(_PACKAGES, folder, cache, steps) as root:
                _install_ray(root, wheels)
                environment = {"PATH": f"/opt/ray/bin:{PATH}", "LANG": "C.UTF-8"}
                write_image(folder / "image.tar", TAG, root, ImageConfig(command=("bash",), environment=environment))

    key = (versions.RAY, versions.DEBIAN, digest(_RECIPE, *_PACKAGES))
    return cache.entry("ray-image", *key, build=build) / "image.tar"


def _wheels(cache: Cache, steps: Steps) -> Path:
    def download(folder: Path) -> None:
        with steps.step(f"Downloading Ray {versions.RAY}"):
            pip = [sys.executable, "-m", "pip", "--quiet", "download", "--python-version", "3.11"]
            run([*pip, "--only-binary", ":all:", "--dest", folder, _REQUIREMENT])

    return cache.entry("ray-wheels", versions.RAY, _RECIPE, build=download)


def _install_ray(root: Path, wheels: Path) -> None:
    shutil.copytree(wheels, root / "wheels")
    chroot(root, "python3", "-m", "venv", "/opt/ray")
    pip = ("/opt/ray/bin/pip", "--quiet", "install", "--no-index", "--find-links=/wheels")
    chroot(root, *pip, "--no-compile", "--no-cache-dir", _REQUIREMENT)
    remove(root, "wheels")
    remove(root, "opt/ray/lib/python3*/site-packages/ray/jars")
    # Without compiled files every new container would compile Ray again.
    chroot(root, "/opt/ray/bin/python", "-m", "compileall", "-q", "-j", "2", "/opt/ray/lib")
    for program in ("ray", "serve"):
        (root / "usr/local/bin" / program).symlink_to(f"/opt/ray/bin/{program}")
    # A login shell sets PATH anew.
    (root / "etc/profile.d/ray.sh").write_text('PATH="/opt/ray/bin:$PATH"\n')
