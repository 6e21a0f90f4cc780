"""The operator's small HTTP servers, for kubelets and Prometheus: a few paths to GET, on all addresses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serve(port: int, paths: Mapping[str, Handler]) -> AsyncIterator[None]:
    """Answers while the block runs; on no port where `port` is 0. Raises OSError when the port is taken."""
    if port == 0:
        yield
        return
    application = web.Application()
    for path, handler in paths.items():
        application.router.add_get(path, handler)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, port=port).start()
        yield
    finally:
        await runner.cleanup()
