"""The level `control-plane`, run for real."""

from __future__ import annotations

from tests.cluster.control_plane import ControlPlane


def test_the_api_server_is_ready_and_of_the_pinned_version(control_plane: ControlPlane) -> None:
    assert control_plane.is_ready()
    assert control_plane.api.get("/version")["gitVersion"] == "v1.34.0"
