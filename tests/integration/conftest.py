"""Ways to the control plane: an administrator's (`api`), and Muster's own, which may do what the shipped ClusterRole
grants: straight (`connection`), and through the proxy that can make things go wrong (`proxied`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from muster.kube.client import ApiClient
from muster.kube.config import Connection, load_connection
from tests.cluster.control_plane import ControlPlane
from tests.integration.fault_proxy import FaultProxy
from tests.integration.permissions import account_of_muster, note_refusals


@pytest.fixture
def administrator(control_plane: ControlPlane) -> Connection:
    """Give a connection to the control plane that may do everything."""
    return load_connection(control_plane.kubeconfig)


@pytest.fixture(scope="session")
def account(control_plane: ControlPlane) -> Path:
    """Give the kubeconfig of Muster's account."""
    return account_of_muster(control_plane)


@pytest.fixture
def connection(account: Path) -> Connection:
    """Give a connection to the control plane in the name of Muster's account."""
    return load_connection(account)


@pytest.fixture(autouse=True)
def refused(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Fail a test in which Muster lacked a permission."""
    refused = note_refusals(monkeypatch)
    yield refused
    assert refused == []


@pytest.fixture
async def api(administrator: Connection) -> AsyncIterator[ApiClient]:
    """Give a client that nothing comes between."""
    async with ApiClient(administrator, user_agent="test") as client:
        yield client


@pytest.fixture
async def proxy(connection: Connection) -> AsyncIterator[FaultProxy]:
    """Give a proxy in front of the control plane, in the name of Muster's account."""
    async with FaultProxy(connection) as proxy:
        yield proxy


@pytest.fixture
async def proxied(proxy: FaultProxy) -> AsyncIterator[ApiClient]:
    """Give a client that goes through the proxy, with a short time-out for stalled answers."""
    async with ApiClient(proxy.connection(), user_agent="muster", timeout=3.0) as client:
        yield client
