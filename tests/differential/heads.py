"""The dashboards of all Ray heads, as one HTTP proxy: a head is known by the name of its service.

KubeRay's operator is told to go through it, as Go programs are, by an environment variable; Muster by a resolver.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from muster.controllers.dashboard import Dashboard, PodDashboards
from muster.ray.jobs_api import RayJobsClient
from tests.integration.ray_dashboard import RayJobRun

_FAILS = "fail"


class Heads:
    """What the heads run, by head service (host and port) and submission id; also Muster's way to them."""

    def __init__(self) -> None:
        self.runs: dict[tuple[str, str], RayJobRun] = {}
        self.port = 0
        self._ways = PodDashboards()

    @property
    def proxy(self) -> dict[str, str]:
        """The environment in which a Go program finds the heads here."""
        return {"HTTP_PROXY": f"http://127.0.0.1:{self.port}"}

    def address(self, dashboard: Dashboard) -> str:
        """What Muster says in a cluster, too."""
        return self._ways.address(dashboard)

    def connect(self, dashboard: Dashboard) -> RayJobsClient:
        """A client that says which head it means as the one of a cluster does."""
        headers = {"Host": self.address(dashboard)}
        return RayJobsClient(f"http://127.0.0.1:{self.port}", timeout=5.0, headers=headers)

    def submit(self, head: str, submission_id: str, entrypoint: str) -> None:
        """Begin to run a job, unless the head has it."""
        self.runs.setdefault((head, submission_id), RayJobRun(submission_id, entrypoint))

    def end_all(self) -> None:
        """Every job ends: in failure if its entrypoint says so."""
        for run in self.runs.values():
            if run.ended is None:
                run.end("FAILED" if run.entrypoint.startswith(_FAILS) else "SUCCEEDED")

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[Heads]:
        """Listen for the length of a block."""
        app = web.Application()
        app.router.add_post("/api/jobs/", self._post)
        app.router.add_get("/api/jobs/{id}", self._get)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.port = runner.addresses[0][1]
        try:
            yield self
        finally:
            await runner.cleanup()

    async def _post(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.submit(request.headers["Host"], body["submission_id"], body["entrypoint"])
        return web.json_response({"job_id": body["submission_id"], "submission_id": body["submission_id"]})

    async def _get(self, request: web.Request) -> web.Response:
        run = self.runs.get((request.headers["Host"], request.match_info["id"]))
        return web.json_response(run.look()) if run else web.Response(status=404, text="no such job")
