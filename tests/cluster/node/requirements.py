"""What the node level needs of the machine, and which way it takes: an engine and images that are there, or its own."""

from __future__ import annotations

import os
import shutil
import urllib.error
import urllib.request

from tests.cluster.node.docker import Docker
from tests.cluster.prerequisites import Missing, missing_debian_packages, missing_go, missing_root, require
from tests.cluster.process import run
from tests.cluster.progress import Steps

CHOICE = "MUSTER_CLUSTER_IMAGES"
"""The environment variable that decides the way: `public` images on the engine there is, or `built` ones on our own."""

_REGISTRY = "https://registry-1.docker.io/v2/"
_REGISTRY_SECONDS = 3.0
_PACKAGES = ("docker.io", "debootstrap")


def images_are_public() -> bool:
    """Tell whether an engine and a registry are in reach, so that kind's and Ray's own images are used."""
    chosen = os.environ.get(CHOICE)
    if chosen not in (None, "", "public", "built"):
        raise ValueError(f"{CHOICE} is {chosen!r}; it may be public or built")
    return chosen == "public" if chosen else Docker().answers() and registry_answers()


def registry_answers(url: str = _REGISTRY) -> bool:
    """Tell whether the image registry can be reached, within a few seconds."""
    try:
        with urllib.request.urlopen(url, timeout=_REGISTRY_SECONDS):  # noqa: S310
            return True
    except urllib.error.HTTPError as error:
        # A registry that asks who we are is there.
        return error.code == 401
    except OSError:
        return False


def missing_for_node_level() -> list[Missing]:
    """Return what keeps the node level from running here. Packages that it can install itself do not count."""
    found: list[Missing | None] = [missing_go()]
    if not images_are_public():
        found.append(missing_root())
        if shutil.which("apt-get") is None:
            found.append(missing_debian_packages(*_PACKAGES))
    return [missing for missing in found if missing is not None]


def install_packages(steps: Steps) -> None:
    """Install the Debian packages that an engine and images of our own need; raises PrerequisiteError if it may not."""
    packages = missing_debian_packages(*_PACKAGES)
    if packages is None:
        return
    if missing_root() is not None or shutil.which("apt-get") is None:
        require([packages, missing_root()])
    with steps.step(f"Installing {packages.what}"):
        quiet = {"DEBIAN_FRONTEND": "noninteractive"}
        run(["apt-get", "-q", "update"], environment=quiet)
        run(["apt-get", "-q", "install", "--yes", "--no-install-recommends", *_PACKAGES], environment=quiet)
