"""How tests wait: without asking the API server over and over what a watch tells anyway, and never by hearsay alone."""

from __future__ import annotations

import asyncio

import pytest

from muster.kube.client import ApiClient
from muster.kube.resource import PODS, Resource
from tests.integration.fault_proxy import FaultProxy, matching
from tests.integration.gang_objects import Gangs, eventually
from tests.integration.observed import Object, Observed
from tests.integration.stand_ins import StandIns

pytest_plugins = ("tests.integration.controller_fixtures",)

LOOK = matching("GET", "/pods/p$")


@pytest.fixture
def seen(proxied: ApiClient, namespace: str) -> Observed:
    return Observed(proxied, namespace)


async def test_a_wait_asks_the_api_server_once_when_the_watch_says_that_it_is_over(
    proxy: FaultProxy, api: ApiClient, seen: Observed, stand_ins: StandIns
) -> None:
    stand_ins.holds_back = lambda pod: True
    waiting = asyncio.create_task(seen.until(PODS, "p", lambda pod: pod["status"]["phase"] == "Running", "it runs"))
    await Gangs(api, seen.namespace).pod("p", gates=())
    await eventually(lambda: bool(stand_ins.there(PODS)), "the watch tells of the pod")
    await stand_ins.set_pod("p", phase="Running", ready=True)
    pod = await waiting
    assert pod["status"]["phase"] == "Running"
    assert sum(map(LOOK, proxy.requests)) == 1


class Deaf:
    """A watch that has heard of nothing."""

    def heard(self, resource: Resource) -> list[Object]:
        return []


async def test_what_the_watch_says_is_not_believed_before_the_api_server_says_so_too(
    seen: Observed, api: ApiClient
) -> None:
    await Gangs(api, seen.namespace).pod("p", gates=())
    seen.watches = Deaf()
    with pytest.raises(AssertionError, match="no pods left"):
        await seen.gone(PODS, within=0.3)
