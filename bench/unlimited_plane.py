"""A fresh control plane that meets no limit of its own: the machine's is the one that is measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.cluster.control_plane import ControlPlane
from tests.cluster.control_plane_commands import Options

_IN_FLIGHT = 4000
_FLAGS = ("--enable-priority-and-fairness=false",)
_MEMORY = "8GiB"
"""Of each program. 10,000 pods and what it remembers of their last changes are 1 GiB to the API server, which then
would spend its time on collecting garbage; 50,000 are 2."""


@contextmanager
def unlimited_plane(
    *, kwok: bool = False, crds: bool = True, flags: Sequence[str] = (), pod_range: str = Options.pod_range
) -> Iterator[ControlPlane]:
    """Run one for the length of the block; `flags` are further ones of the API server's, the others as for
    ControlPlane.start.
    """
    with ControlPlane.start(
        kwok=kwok,
        crds=crds,
        max_requests_inflight=_IN_FLIGHT,
        max_mutating_requests_inflight=_IN_FLIGHT,
        api_server_flags=(*_FLAGS, *flags),
        pod_range=pod_range,
        memory_limit=_MEMORY,
    ) as plane:
        yield plane
