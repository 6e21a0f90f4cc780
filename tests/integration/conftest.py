"""Ways to the control plane: straight (`api`), and through the proxy that can make things go wrong (`proxied`)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from muster.kube.client import ApiClient
from muster.kube.config import Connection, load_connection
from tests.cluster.control_plane import ControlPlane
from tests.integration.fault_proxy import FaultProxy


@pytest.fixture
def connection(control_plane: ControlPlane) -> Connection:
    """Give an administrator's connection to the control plane."""
    return load_connection(control_plane.kubeconfig)


@pytest.fixture
async def api(connection: Connection) -> AsyncIterator[ApiClient]:
    """Give a client that nothing comes between."""
    async with ApiClient(connection, user_agent="test") as client:
        yield client


@pytest.fixture
async def proxy(connection: Connection) -> AsyncIterator[FaultProxy]:
    """Give a proxy in front of the control plane."""
    async with FaultProxy(connection) as proxy:
        yield proxy


@pytest.fixture
async def proxied(proxy: FaultProxy) -> AsyncIterator[ApiClient]:
    """Give a client that goes through the proxy, with a short time-out for stalled answers."""
    async with ApiClient(proxy.connection(), user_agent="muster", timeout=3.0) as client:
        yield client
