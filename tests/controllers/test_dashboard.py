"""Whom the operator talks to when it asks a dashboard."""

from __future__ import annotations

import pytest
from aiohttp import web

from muster.controllers.dashboard import Dashboard, PodDashboards
from muster.ray.jobs_api import DashboardUnreachable


async def test_the_head_pod_is_asked_in_the_name_of_its_service() -> None:
    hosts = []

    async def answer(request: web.Request) -> web.Response:
        hosts.append(request.headers.getall("Host"))
        return web.json_response({"version": "4"})

    app = web.Application()
    app.router.add_get("/api/version", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    try:
        head = Dashboard("team", "demo-head-svc", port, head_ip="127.0.0.1")
        async with PodDashboards("example.org").connect(head) as ray:
            assert await ray.version() == {"version": "4"}
    finally:
        await runner.cleanup()
    assert hosts == [[f"demo-head-svc.team.svc.example.org:{port}"]]


async def test_an_address_of_the_sixth_version_is_one_too() -> None:
    async with PodDashboards(timeout=0.5).connect(Dashboard("team", "demo-head-svc", 1, head_ip="::1")) as ray:
        with pytest.raises(DashboardUnreachable, match="connect"):
            await ray.version()


def test_without_a_head_pod_nobody_is_asked() -> None:
    with pytest.raises(DashboardUnreachable, match="no address"):
        PodDashboards().connect(Dashboard("team", "demo-head-svc"))


def test_users_and_submitters_go_by_the_name_of_the_service() -> None:
    head = Dashboard("team", "demo-head-svc", head_ip="10.0.0.1")
    assert PodDashboards().address(head) == "demo-head-svc.team.svc.cluster.local:8265"
