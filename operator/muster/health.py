"""Whether the process is well, for the kubelet: /healthz while the event loop turns, /readyz once it does its work."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from aiohttp import web

from muster.http_server import serve


def serve_health(port: int, ready: Callable[[], bool]) -> AbstractAsyncContextManager[None]:
    """Answers while the block runs; on no port where `port` is 0. Raises OSError when the port is taken."""

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n") if ready() else web.Response(status=503, text="not ready\n")

    return serve(port, {"/healthz": healthz, "/readyz": readyz})
