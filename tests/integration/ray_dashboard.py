"""A small HTTP server that answers as the Jobs API of Ray heads does. It stands for real Ray only where a test is about
what Muster does with the answers (faults, restarts, deadlines); real Ray is used end to end.

One server speaks for every cluster: the cluster's head service is part of the path. What an entrypoint does is in its
text: `succeed` and `fail` end at the second look, anything else runs until `end` is called.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from muster.controllers.dashboard import Dashboard
from muster.ray.jobs_api import RayJobsClient

_VERDICTS = {"succeed": "SUCCEEDED", "fail": "FAILED"}


@dataclass
class RayJobRun:
    """A job that a head has."""

    submission_id: str
    entrypoint: str
    words: str = "the job is"
    """What Ray says, before the status."""
    status: str = "PENDING"
    looks: int = 0
    started: int = field(default_factory=lambda: int(time.time() * 1000))
    ended: int | None = None

    def end(self, status: str) -> None:
        """Reach a final state."""
        self.status, self.ended = status, int(time.time() * 1000)

    def look(self) -> dict[str, Any]:
        """Answer a GET, and move on."""
        self.looks += 1
        if self.ended is None:
            self.status = "RUNNING"
            verdict = _VERDICTS.get(self.entrypoint)
            if verdict and self.looks >= 2:
                self.end(verdict)
        return {
            "type": "SUBMISSION",
            "submission_id": self.submission_id,
            "entrypoint": self.entrypoint,
            "status": self.status,
            "message": f"{self.words} {self.status}",
            "start_time": self.started,
            "end_time": self.ended,
        }


class RayDashboards:
    """All heads' dashboards, and the way to them (a DashboardResolver)."""

    def __init__(self) -> None:
        self.runs: dict[tuple[str, str], RayJobRun] = {}
        """By head service and submission id."""
        self.submissions: list[tuple[str, str]] = []
        self.stops: list[str] = []
        self.asked: set[str | None] = set()
        """The addresses of the head pods that Muster has turned to."""
        self.token: str | None = None
        """What every call has to show, if anything."""
        self.down = False
        self.timeout = 2.0
        self.hangs: set[str] = set()
        """The entrypoints of jobs about which a dashboard never answers."""
        self.fickle: set[str] = set()
        """The entrypoints of jobs of which a dashboard says something else each time, and which it does not stop."""
        self.takes_jobs = True
        self.login_page: str | None = None
        """What is answered to a submission, with status 200, in place of Ray's word, if anything."""
        self.port = 0

    def address(self, dashboard: Dashboard) -> str:
        """Where the head service's dashboard is."""
        return f"127.0.0.1:{self.port}/{dashboard.namespace}/{dashboard.service}"

    def connect(self, dashboard: Dashboard) -> RayJobsClient:
        """A client for it."""
        self.asked.add(dashboard.head_ip)
        return RayJobsClient(f"http://{self.address(dashboard)}", dashboard.token, timeout=self.timeout)

    def run_of(self, submission_id: str) -> RayJobRun:
        """The one run of this id."""
        (run,) = [run for (_, known), run in self.runs.items() if known == submission_id]
        return run

    def lose_everything(self) -> None:
        """The heads restart and forget what they ran."""
        self.runs.clear()

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[RayDashboards]:
        """Listen for the length of a block."""
        app = web.Application(middlewares=[self._unless_down])
        base = "/{namespace}/{service}/api/jobs/"
        app.router.add_post(base, self._submit)
        app.router.add_get(base + "{id}", self._get)
        app.router.add_post(base + "{id}/stop", self._stop)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.port = runner.addresses[0][1]
        try:
            yield self
        finally:
            await runner.cleanup()

    @web.middleware
    async def _unless_down(self, request: web.Request, handler: Any) -> web.StreamResponse:
        if self.down and request.transport is not None:
            request.transport.close()
        if self.token is not None and request.headers.get("x-ray-authorization") != f"Bearer {self.token}":
            return web.Response(status=401, text="Unauthorized: missing or wrong token")
        answer: web.StreamResponse = await handler(request)
        return answer

    async def _submit(self, request: web.Request) -> web.Response:
        body = await request.json()
        service, submission_id = request.match_info["service"], body["submission_id"]
        if not self.takes_jobs:
            return web.Response(status=500, text="no agent is available") if self.login_page is None else self._page()
        self.submissions.append((service, submission_id))
        if (service, submission_id) in self.runs:
            return web.Response(status=500, text="Please use a different submission_id.")
        self.runs[service, submission_id] = RayJobRun(submission_id, body["entrypoint"])
        if self.login_page is not None:
            return self._page()
        return web.json_response({"job_id": submission_id, "submission_id": submission_id})

    def _page(self) -> web.Response:
        return web.Response(text=self.login_page, content_type="text/html")

    async def _get(self, request: web.Request) -> web.Response:
        run = self.runs.get((request.match_info["service"], request.match_info["id"]))
        if run is not None and run.entrypoint in self.hangs:
            await asyncio.Event().wait()
        if run is not None and run.entrypoint in self.fickle:
            answer = run.look()
            status = ("RUNNING", "PENDING", None)[(run.looks - 1) % 3]
            return web.json_response({**answer, "status": status} if status else [])
        return web.json_response(run.look()) if run else web.Response(status=404, text="no such job")

    async def _stop(self, request: web.Request) -> web.Response:
        run = self.runs.get((request.match_info["service"], request.match_info["id"]))
        if run is None:
            return web.Response(status=404, text="no such job")
        self.stops.append(run.submission_id)
        if run.entrypoint not in self.fickle:
            run.end("STOPPED")
        return web.json_response({"stopped": True})
