"""Runs one of kopf's operators on an event loop of its own, in a thread, and starts it again when it gives up.

A loop of its own because stopping an operator of kopf cancels every task of the loop that it shares, and because kopf
takes over the signals of the main thread.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import kopf

from muster.controllers.clock import Clock, SystemClock
from muster.controllers.workqueue import BackOff
from muster.kube.config import Connection

logger = logging.getLogger(__name__)

KopfWork = Callable[[Connection, threading.Event], Coroutine[Any, Any, None]]
"""Runs an operator on the thread's loop, with a connection of that loop, until the event is set."""

_RESTARTS = BackOff(first=1.0, factor=2.0, longest=30.0)


class KopfThread:
    """Keeps `work` running. `name` says in the log what ended, as in "the watch on the custom resources"."""

    def __init__(
        self,
        name: str,
        connection: Connection,
        work: KopfWork,
        *,
        clock: Clock | None = None,
        back_off: BackOff = _RESTARTS,
    ) -> None:
        self._name = name
        self._connection = connection
        self._work = work
        self._clock = clock or SystemClock()
        self._back_off = back_off

    async def run(self) -> None:
        """Run until cancelled; kopf's thread has ended when it returns."""
        failures = 0
        while True:
            started = self._clock.monotonic()
            await self._run_once()
            failures = 1 if self._clock.monotonic() - started > self._back_off.longest else failures + 1
            delay = self._back_off.delay(failures)
            logger.warning("%s has ended; it starts again in %.0f s", self._name, delay)
            await self._clock.sleep(delay)

    async def _run_once(self) -> None:
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()
        stop = threading.Event()
        thread = threading.Thread(target=self._serve, args=(loop, ended, stop), name=self._name, daemon=True)
        thread.start()
        try:
            await asyncio.shield(ended)
        except asyncio.CancelledError:
            stop.set()
            await ended
            raise

    def _serve(self, loop: asyncio.AbstractEventLoop, ended: asyncio.Future[None], stop: threading.Event) -> None:
        # Connection's lock belongs to one loop: this thread reads credentials through a copy of its own.
        connection = replace(self._connection)
        try:
            asyncio.run(self._work(connection, stop))
        except Exception:
            logger.exception("%s failed", self._name)
        finally:
            with suppress(RuntimeError):  # the other loop may be closed already
                loop.call_soon_threadsafe(_set, ended)


def _set(ended: asyncio.Future[None]) -> None:
    if not ended.done():
        ended.set_result(None)


@dataclass(frozen=True, kw_only=True)
class _Credentials(kopf.ConnectionInfo):
    """A connection whose TLS context exists already."""

    context: ssl.SSLContext | None = None

    def as_ssl_context(self) -> ssl.SSLContext:
        return self.context or ssl.create_default_context()


def log_in_with(registry: kopf.OperatorRegistry, connection: Connection) -> None:
    """Have the registry's operator log in with `connection`."""

    @kopf.on.login(registry=registry)
    async def log_in(**_: Any) -> kopf.ConnectionInfo:
        scheme, token = [*(await connection.authorization() or "").split(" ", 1), "", ""][:2]
        return _Credentials(
            server=connection.server,
            context=connection.ssl,
            scheme=scheme or None,
            token=token or None,
            proxy_url=connection.proxy,
        )


def quiet_settings() -> kopf.OperatorSettings:
    """kopf alone (no peering objects) and silent in the API."""
    # An event handled is no news, and it is on purpose that kopf has no signals.
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)
    logging.getLogger("kopf._core.reactor.running").addFilter(_worth_saying)
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.watching.chunk_size = 500
    settings.persistence.diffbase_storage = _NoBase()
    settings.persistence.progress_storage = kopf.MultiProgressStorage([])
    return settings


class _NoBase(kopf.DiffBaseStorage):
    """No state to compare an object with: no handler of ours asks kopf what changed in it.

    By default kopf copies each object several times over for each event to find out, and reads an annotation of the
    object as JSON, whatever a user wrote into it.
    """

    def fetch(self, **_: Any) -> None:
        return None

    def build(self, **_: Any) -> Any:
        return {}

    def store(self, **_: Any) -> None:
        pass


def _worth_saying(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith("OS signals are ignored")
