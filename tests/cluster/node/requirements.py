"""What the node level needs of the machine, and which way it takes: an engine and images that are there, or its own."""

from __future__ import annotations

import os
import shutil

from tests.cluster.node import ray_image
from tests.cluster.node.docker import Docker
from tests.cluster.prerequisites import Missing, missing_go, missing_root, require
from tests.cluster.process import run
from tests.cluster.progress import Steps

CHOICE = "MUSTER_CLUSTER_IMAGES"
"""The environment variable that decides the way: `public` images on the engine there is, or `built` ones on our own."""

_REGISTRY_SECONDS = 10.0
_SYSTEM_PATH = ":/usr/sbin:/sbin"
# Never at the cost of a package that is there, such as another vendor's engine.
_INSTALL = ("apt-get", "install", "--yes", "--no-remove", "--no-install-recommends")
_PACKAGES = {
    "dockerd": "docker.io",
    "docker": "docker.io",
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "debootstrap": "debootstrap",
}
"""The programs that an engine and images of our own need, and Debian's packages of them."""


def images_are_public() -> bool:
    """Tell whether an engine and a registry are in reach, so that kind's and Ray's own images are used."""
    chosen = os.environ.get(CHOICE)
    if chosen not in (None, "", "public", "built"):
        raise ValueError(f"{CHOICE} is {chosen!r}; it may be public or built")
    return chosen == "public" if chosen else public_images_are_in_reach(Docker())


def public_images_are_in_reach(docker: Docker) -> bool:
    """Tell whether the engine answers and its client finds the public Ray image, wherever that is configured to be."""
    return docker.answers() and docker.finds_in_registry(ray_image.PUBLIC_TAG, seconds=_REGISTRY_SECONDS)


def missing_for_node_level() -> list[Missing]:
    """Return what keeps the node level from running here. Packages that it can install itself do not count."""
    found = [missing_go()]
    if not images_are_public():
        found.append(missing_root())
        found.append(None if _can_install() else missing_packages())
    return [missing for missing in found if missing is not None]


def missing_packages() -> Missing | None:
    """Check that the programs are there, from whichever package: a Docker engine need not be Debian's."""
    path = os.environ.get("PATH", "") + _SYSTEM_PATH
    absent = [package for program, package in _PACKAGES.items() if shutil.which(program, path=path) is None]
    if not absent:
        return None
    names = " ".join(dict.fromkeys(absent))
    return Missing(f"of Debian's packages {names}", f"{' '.join(_INSTALL)} {names}")


def install_packages(steps: Steps) -> None:
    """Install the Debian packages that are missing; raises PrerequisiteError if that is not possible."""
    if _SYSTEM_PATH not in os.environ.get("PATH", ""):
        # A root shell may have a user's PATH, without the folders of root's programs.
        os.environ["PATH"] = os.environ.get("PATH", "") + _SYSTEM_PATH
    packages = missing_packages()
    if packages is None:
        return
    if not _can_install():
        require([packages, missing_root()])
    with steps.step(f"Installing what is missing {packages.what}"):
        run(["apt-get", "--quiet", "update"])
        # Cut short, it would leave the machine with packages that are half configured.
        run(packages.fix.split(), environment={"DEBIAN_FRONTEND": "noninteractive"}, whole=True)


def _can_install() -> bool:
    return missing_root() is None and shutil.which("apt-get") is not None
