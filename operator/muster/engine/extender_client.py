"""Asks an extender over HTTP.

A cycle waits for each answer, so it has to come, or be given up, within a time that holds for the whole exchange: httpx
by itself bounds only each single read. The exchange therefore runs under one deadline on an event loop of its own, in a
thread that exists from the first question on. There is one connection, kept open between questions.

What is logged names the address, and never what was sent or answered: that is about the tenants' pods.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time

import httpx

from muster.scheduler.extender_client import Answer, ExtenderError

logger = logging.getLogger(__name__)

LARGEST_ANSWER = 10 << 20
"""Volcano's limit, in bytes."""


class HttpExtenderClient:
    """The engine's ExtenderClient. Close it when it is needed no more."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._http: httpx.AsyncClient | None = None
        self._failing: set[str] = set()

    def post(self, url: str, body: bytes, timeout: float) -> Answer:
        """POST JSON and wait for the answer. Raises ExtenderError, after `timeout` seconds at the latest."""
        began = time.monotonic()
        exchange = asyncio.run_coroutine_threadsafe(self._exchange(url, body, timeout), self._started())
        try:
            answer = Answer(exchange.result(), time.monotonic() - began)
        except ExtenderError as error:
            self._note(url, error.problem)
            raise ExtenderError(error.problem, time.monotonic() - began) from error
        self._note(url, None)
        return answer

    def close(self) -> None:
        """Close the connection and end the thread."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        self._loop = self._thread = None
        asyncio.run_coroutine_threadsafe(self._hang_up(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="extender", daemon=True)
            self._thread.start()
        return self._loop

    async def _exchange(self, url: str, body: bytes, timeout: float) -> bytes:
        http = self._connected()
        try:
            async with asyncio.timeout(timeout):
                return await _ask(http, url, body)
        except TimeoutError:
            raise ExtenderError("no answer in time") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            raise ExtenderError(type(error).__name__) from error

    def _connected(self) -> httpx.AsyncClient:
        """Made before the time of a question begins to run: the first one would spend it on reading certificates."""
        if self._http is None:
            one = httpx.Limits(max_connections=1, max_keepalive_connections=1)
            self._http = httpx.AsyncClient(limits=one, timeout=None)  # noqa: S113  # `_exchange` bounds it all
        return self._http

    async def _hang_up(self) -> None:
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    def _note(self, url: str, problem: str | None) -> None:
        """Say what fails once, and that it works again."""
        if problem is not None and url not in self._failing:
            self._failing.add(url)
            logger.warning("the extender fails at %s: %s", _without_credentials(url), problem)
        elif problem is None and url in self._failing:
            self._failing.discard(url)
            logger.info("the extender answers again at %s", _without_credentials(url))


async def _ask(http: httpx.AsyncClient, url: str, body: bytes) -> bytes:
    headers = {"content-type": "application/json", "accept-encoding": "identity"}
    async with http.stream("POST", url, content=body, headers=headers) as response:
        if response.status_code != httpx.codes.OK:
            raise ExtenderError(f"HTTP status {response.status_code}")
        found = bytearray()
        async for piece in response.aiter_raw():
            found += piece
            if len(found) > LARGEST_ANSWER:
                raise ExtenderError(f"an answer longer than {LARGEST_ANSWER >> 20} MiB")
        return bytes(found)


def _without_credentials(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}{separator}{authority.rpartition('@')[2]}{slash}{path}"
