"""The writes that an API server has answered, by its own metrics, without those of the fake nodes."""

from __future__ import annotations

from collections import Counter

from bench.api_writes import writes
from tests.cluster.control_plane import ControlPlane


def writes_by_kind(plane: ControlPlane) -> Counter[str]:
    """All so far, refused ones too, by verb and resource (`PATCH pods/status`), without Leases and nodes."""
    return without_nodes(writes(plane.api.text("/metrics")))


def without_nodes(counted: Counter[str]) -> Counter[str]:
    """Nobody but kwok writes nodes here, as kubelets do."""
    return Counter({kind: number for kind, number in counted.items() if _resource(kind) != "nodes"})


def _resource(kind: str) -> str:
    return kind.partition(" ")[2].partition("/")[0]
