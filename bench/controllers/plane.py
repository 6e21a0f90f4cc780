"""The control plane of one run: fresh, with fake nodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

from bench.controllers.systems import System
from bench.unlimited_plane import unlimited_plane
from tests.cluster import kuberay
from tests.cluster.control_plane import ControlPlane, crd_documents
from tests.cluster.process import Background

POD_RANGE = "127.128.0.0/9"
"""The half of the loopback addresses from which kwok takes those of pods: a process here can answer at each."""

_PROGRAMS = ("kube-apiserver", "etcd", "kwok")


class Crds(StrEnum):
    """Whose definitions of RayCluster and RayJob there are."""

    OWN = "own"
    KUBERAY = "kuberay"


@contextmanager
def fresh_plane(system: System, crds: Crds, nodes: int) -> Iterator[ControlPlane]:
    """A control plane with so many nodes of 32 CPUs and 128 GiB, and the definitions that the system works with."""
    with unlimited_plane(kwok=True, crds=False, pod_range=POD_RANGE) as plane:
        plane.api.install_crds(_definitions(system, crds), deadline_seconds=120.0)
        for index in range(nodes):
            plane.add_node(node_name(index), cpu="32", memory="128Gi")
        yield plane


def node_name(index: int) -> str:
    """The name of a node, counted from 0."""
    return f"n{index}"


def plane_sessions(plane: ControlPlane) -> dict[str, int]:
    """The sessions of the control plane's processes that run, by name."""
    pids = {name: Background(plane.folder, name).pid for name in _PROGRAMS}
    return {name: pid for name, pid in pids.items() if pid is not None}


def dead_of_plane(plane: ControlPlane) -> str | None:
    """Which process of the control plane has ended; None while all run."""
    missing = [name for name in _PROGRAMS if Background(plane.folder, name).pid is None]
    return f"{missing[0]} has ended" if missing else None


def _definitions(system: System, crds: Crds) -> list[dict[str, Any]]:
    ours = crd_documents()
    if crds is Crds.OWN and system.has_muster_crds:
        return ours
    return [*kuberay.crds(), *(one for one in ours if one["spec"]["group"] != "ray.io")]
