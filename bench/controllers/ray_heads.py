"""The dashboards of all Ray heads, as one process: the Ray Jobs API, as far as the submission of a job needs it.

    python -m bench.controllers.ray_heads --port PORT --job-seconds SECONDS

A head is known by the Host header. A job is RUNNING for so many seconds from its submission, and then SUCCEEDED. Asked
as an HTTP proxy it answers as the head that is meant. It listens on all addresses of the loopback interface, and on no
other.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
from aiohttp import web

COUNTS_PATH = "/counts"


@dataclass
class Counts:
    """What has been asked of all heads: jobs that were taken, submissions of jobs that a head had, questions."""

    taken: int = 0
    again: int = 0
    questions: int = 0


@dataclass
class Job:
    """What a head runs. Times are seconds since 1970."""

    submission_id: str
    entrypoint: str
    submitted: float
    seconds: float

    def document(self, now: float) -> dict[str, Any]:
        """What Ray says about it."""
        end = self.submitted + self.seconds
        is_over = now >= end
        return {
            "type": "SUBMISSION",
            "job_id": None,
            "submission_id": self.submission_id,
            "status": "SUCCEEDED" if is_over else "RUNNING",
            "entrypoint": self.entrypoint,
            "message": "Job finished successfully." if is_over else "Job is currently running.",
            "start_time": int(self.submitted * 1000),
            "end_time": int(end * 1000) if is_over else None,
        }


@dataclass
class Heads:
    """The jobs of all heads, by Host header and submission id."""

    job_seconds: float
    clock: Callable[[], float] = time.time
    counts: Counts = field(default_factory=Counts)
    jobs: dict[tuple[str, str], Job] = field(default_factory=dict)

    def application(self) -> web.Application:
        """What answers."""
        app = web.Application()
        app.router.add_post("/api/jobs/", self._submit)
        app.router.add_get("/api/jobs/{id}", self._get)
        app.router.add_get(COUNTS_PATH, self._count)
        return app

    async def _submit(self, request: web.Request) -> web.Response:
        body = await request.json()
        submission_id = body["submission_id"]
        key = (_head(request), submission_id)
        if key in self.jobs:
            self.counts.again += 1
            text = f"Job with submission_id {submission_id} already exists. Please use a different submission_id."
            return web.Response(status=500, text=text)
        self.counts.taken += 1
        self.jobs[key] = Job(submission_id, body["entrypoint"], self.clock(), self.job_seconds)
        return web.json_response({"job_id": submission_id, "submission_id": submission_id})

    async def _get(self, request: web.Request) -> web.Response:
        self.counts.questions += 1
        job = self.jobs.get((_head(request), request.match_info["id"]))
        if job is None:
            return web.Response(status=404, text=f"Job {request.match_info['id']} does not exist")
        return web.json_response(job.document(self.clock()))

    async def _count(self, _: web.Request) -> web.Response:
        return web.Response(body=msgspec.json.encode(self.counts), content_type="application/json")


def _head(request: web.Request) -> str:
    """Which head is asked. Not `request.host`, which is without the port where a proxy is asked."""
    return request.headers["Host"]


def listening(port: int) -> socket.socket:
    """A socket for all addresses of the loopback interface, whatever else the machine has."""
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo")
    found.bind(("0.0.0.0", port))  # noqa: S104 - the device is the loopback interface
    found.listen(4096)
    return found


async def serve(port: int, job_seconds: float) -> None:
    """Answer until the process is ended."""
    runner = web.AppRunner(Heads(job_seconds).application(), access_log=None)
    await runner.setup()
    await web.SockSite(runner, listening(port), backlog=4096).start()
    await asyncio.Event().wait()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--job-seconds", type=float, required=True)
    arguments = parser.parse_args()
    asyncio.run(serve(arguments.port, arguments.job_seconds))


if __name__ == "__main__":
    main()
