"""Fixtures for tests of the controllers: a namespace with its stand-ins, dashboards and a running operator."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from muster.kube.client import ApiClient
from muster.kube.config import Connection
from tests.integration.observed import Observed
from tests.integration.operators import Operator
from tests.integration.ray_dashboard import RayDashboards
from tests.integration.stand_ins import StandIns


@pytest.fixture
def seen(api: ApiClient, namespace: str) -> Observed:
    return Observed(api, namespace)


@pytest.fixture
async def dashboards() -> AsyncIterator[RayDashboards]:
    async with RayDashboards().serve() as dashboards:
        yield dashboards


@pytest.fixture
async def stand_ins(api: ApiClient, namespace: str, seen: Observed) -> AsyncIterator[StandIns]:
    async with StandIns(api, namespace).at_work() as stand_ins:
        seen.watches = stand_ins
        yield stand_ins


@pytest.fixture
async def operator(
    connection: Connection, namespace: str, dashboards: RayDashboards, stand_ins: StandIns
) -> AsyncIterator[Operator]:
    async with Operator(connection, namespace, dashboards) as operator:
        yield operator
