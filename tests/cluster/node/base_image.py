"""The base of Muster's own image where python:3.11-slim is out of reach: Debian's Python and CA certificates."""

from __future__ import annotations

from pathlib import Path

from tests.cluster import versions
from tests.cluster.cache import Cache, digest
from tests.cluster.node.image_archive import ImageConfig, write_image
from tests.cluster.node.root_file_system import temporary_root
from tests.cluster.progress import Steps

_RECIPE = "1"
_PACKAGES = ("python3", "python3-venv", "ca-certificates")
_DIGEST = digest(_RECIPE, *_PACKAGES)

TAG = f"localhost/muster-base:{versions.DEBIAN}-{_DIGEST}"
PUBLIC_TAG = f"python:3.11-slim-{versions.DEBIAN}"


def base_image(cache: Cache, steps: Steps) -> Path:
    """Return the archive of the image TAG, built if the cache lacks it."""

    def build(folder: Path) -> None:
        with steps.step("Building the base of Muster's image"), temporary_root(_PACKAGES, folder, cache, steps) as root:
            (root / "usr/local/bin/python").symlink_to("/usr/bin/python3")
            write_image(folder / "image.tar", TAG, root, ImageConfig(command=("python3",)))

    return cache.entry("base-image", versions.DEBIAN, _DIGEST, build=build) / "image.tar"
