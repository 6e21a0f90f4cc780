"""Connections to dashboards that outlive the clients which use them.

A running job is asked about every few seconds. A client is made for each question, since each has its own address and
token; to connect anew each time took more processor time than the question.
"""

from __future__ import annotations

import functools
import ssl
from typing import Final

import httpx

_KEPT: Final = 200
_KEPT_SECONDS: Final = 10.0
"""Longer than the pause between two looks at a job."""
_BROKEN: Final = (httpx.ReadError, httpx.WriteError, httpx.CloseError, httpx.RemoteProtocolError)


@functools.cache
def without_tls() -> ssl.SSLContext:
    """A TLS context for clients that talk plain HTTP only. It trusts nobody, and no CA certificates are loaded."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class KeptConnections(httpx.AsyncBaseTransport):
    """The transport of any number of clients, one after the other or at once. Closing a client leaves it open.

    As many requests as there are may be under way at once. Up to 200 idle connections are kept, each for ten seconds.
    A kept connection may turn out to be closed only when something is sent over it: then a GET is sent once more.
    """

    def __init__(self) -> None:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=_KEPT, keepalive_expiry=_KEPT_SECONDS)
        self._transport = httpx.AsyncHTTPTransport(verify=without_tls(), limits=limits, trust_env=False)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send it, over a connection that is there or a new one."""
        try:
            return await self._transport.handle_async_request(request)
        except _BROKEN:
            if request.method != "GET":
                raise
            return await self._transport.handle_async_request(request)
