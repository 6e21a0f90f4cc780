"""Ray's dashboard by way of a real API server, as an operator outside of the cluster reaches it."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from muster.controllers.dashboard import Dashboard, ProxiedDashboards
from muster.kube.client import ApiClient
from muster.kube.config import Connection, ConnectionConfigError
from muster.kube.resource import PODS
from muster.ray.job_info import Submission
from muster.ray.jobs_api import DashboardUnreachable, JobNotFound
from tests.conftest import refuse
from tests.integration.ray_manifests import template

PORT_NAME = "dashboard"


def own_address() -> str:
    """An address of this machine that is not the loopback one: the API server passes nothing on to that."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            refuse("this machine has no address but its loopback one")
        return str(probe.getsockname()[0])


@asynccontextmanager
async def head(api: ApiClient, namespace: str, port: int, address: str) -> AsyncIterator[Dashboard]:
    """A pod that claims to be at this address."""
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "head"}, **template()}
    manifest["spec"]["nodeName"] = "somewhere"
    await api.create(PODS, namespace, manifest)
    status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
    await api.patch(PODS, namespace, "head", {"status": status}, subresource="status")
    yield Dashboard(namespace, "demo-head-svc", port, head_ip=address, head_pod="head", token="the token of Ray")


@pytest.fixture
async def asked() -> AsyncIterator[tuple[int, list[web.Request]]]:
    """Give the port of a dashboard, and what it was asked."""
    requests: list[web.Request] = []

    async def jobs(request: web.Request) -> web.Response:
        requests.append(request)
        if request.method == "POST":
            return web.json_response({"submission_id": "a/b"})
        if request.match_info["id"] != "a/b":
            return web.Response(status=404, text="no such job")
        return web.json_response({"submission_id": "a/b", "status": "RUNNING", "entrypoint": "x"})

    application = web.Application()
    application.router.add_post("/api/jobs/", jobs)
    application.router.add_get("/api/jobs/{id:.+}", jobs)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "0.0.0.0", 0)  # noqa: S104 - the API server has to reach it
    await site.start()
    yield runner.addresses[0][1], requests
    await runner.cleanup()


async def test_calls_are_passed_on_with_rays_token_and_without_ours(
    api: ApiClient, administrator: Connection, namespace: str, asked: tuple[int, list[web.Request]]
) -> None:
    port, requests = asked
    async with (
        head(api, namespace, port, own_address()) as dashboard,
        ProxiedDashboards(administrator).connect(dashboard) as ray,
    ):
        assert await ray.submit(Submission(entrypoint="x", submission_id="a/b")) == "a/b"
        assert (await ray.get("a/b")).status == "RUNNING"
        with pytest.raises(JobNotFound):
            await ray.get("other")
    assert {request.headers["x-ray-authorization"] for request in requests} == {"Bearer the token of Ray"}
    assert not any("Authorization" in request.headers for request in requests)


async def test_what_the_api_server_says_itself_is_no_word_of_ray(
    api: ApiClient, administrator: Connection, namespace: str, asked: tuple[int, list[web.Request]]
) -> None:
    port, _ = asked
    gone = Dashboard(namespace, "demo-head-svc", port, head_ip="192.0.2.1", head_pod="gone")
    async with ProxiedDashboards(administrator).connect(gone) as ray:
        with pytest.raises(DashboardUnreachable, match="not found"):
            await ray.get("a/b")
    async with (
        head(api, namespace, 9, own_address()) as nobody_listens,
        ProxiedDashboards(administrator).connect(nobody_listens) as ray,
    ):
        with pytest.raises(DashboardUnreachable):
            await ray.get("a/b")
    with pytest.raises(DashboardUnreachable):
        ProxiedDashboards(administrator).connect(Dashboard(namespace, "demo-head-svc"))


def test_an_api_server_behind_a_proxy_is_refused_at_the_start() -> None:
    with pytest.raises(ConnectionConfigError, match="proxy-url"):
        ProxiedDashboards(Connection("https://kube.example", proxy="http://proxy.example:3128"))
