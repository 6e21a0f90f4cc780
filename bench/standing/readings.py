"""What is read while a process runs, and the errors that end a measurement."""

from __future__ import annotations

from typing import Final

import aiohttp
import httpx

from bench.api_client import RefusedError
from bench.controllers.arrivals import Failed
from bench.controllers.running_system import RunningSystem
from bench.processes import resident, usage, waited
from bench.standing.result import Used
from muster.kube.errors import ApiError

FAULTS: Final = (Failed, RefusedError, ApiError, aiohttp.ClientError, httpx.HTTPError, RuntimeError, OSError)
"""What may go wrong in a run without being a fault of the benchmark's."""


def used(program: RunningSystem) -> Used:
    """What the one process of the system, and all that it has started, have used so far."""
    (session,) = program.sessions.values()
    now, so_far = resident(session), usage(session)
    return Used(cpu=so_far.cpu, waited=waited(session), resident_mib=now, peak_mib=so_far.peak)


def said(error: BaseException) -> str:
    """The error in words."""
    return str(error) or type(error).__name__
