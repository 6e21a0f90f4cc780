"""The watch on the custom resources: kopf sees a change, its key goes on a workqueue, nothing else happens.

The registry is an explicit one with event handlers only. So kopf adds no finalizer and no annotation, posts no event,
keeps no progress in the objects: it never writes. It runs on an event loop of its own, in a thread, because stopping
its operator cancels every task of the loop that it shares, and because it takes over the signals of the main thread.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import kopf

from muster.controllers.clock import Clock, SystemClock
from muster.controllers.workqueue import BackOff
from muster.kube.config import Connection
from muster.kube.resource import Resource

logger = logging.getLogger(__name__)

Enqueue = Callable[[str], None]
"""Takes the key of an object that changed; called on kopf's thread."""


_RESTARTS = BackOff(first=1.0, factor=2.0, longest=30.0)


@dataclass(frozen=True, kw_only=True)
class _Credentials(kopf.ConnectionInfo):
    """A connection whose TLS context exists already."""

    context: ssl.SSLContext | None = None

    def as_ssl_context(self) -> ssl.SSLContext:
        return self.context or ssl.create_default_context()


def build_registry(connection: Connection, enqueue: Mapping[Resource, Enqueue]) -> kopf.OperatorRegistry:
    """An operator that hands each changed object's key to `enqueue` of its resource, and logs in with `connection`."""
    registry = kopf.OperatorRegistry()

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

    for resource, put in enqueue.items():
        _watch(registry, resource, put)
    return registry


def _watch(registry: kopf.OperatorRegistry, resource: Resource, put: Enqueue) -> None:
    @kopf.on.event(resource.group, resource.version, resource.plural, registry=registry, id=resource.plural)
    async def changed(namespace: str | None, name: str | None, **_: Any) -> None:
        put(f"{namespace}/{name}" if namespace else str(name))


def kopf_settings() -> kopf.OperatorSettings:
    """kopf as a mere watch: alone (no peering objects), silent in the API."""
    # An event handled is no news, and it is on purpose that kopf has no signals.
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)
    logging.getLogger("kopf._core.reactor.running").addFilter(_worth_saying)
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.watching.chunk_size = 500
    return settings


def _worth_saying(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith("OS signals are ignored")


class CustomResourceWatch:
    """Runs the operator of `build_registry` on its own thread and hands the keys over to this loop.

    Should kopf give up (the API server was away for long, or refused the credentials), it is started again after a
    while, and begins with a list of everything.
    """

    def __init__(
        self,
        connection: Connection,
        enqueue: Mapping[Resource, Enqueue],
        namespaces: Collection[str] = (),
        *,
        clock: Clock | None = None,
        back_off: BackOff = _RESTARTS,
    ) -> None:
        self._connection = connection
        self._enqueue = enqueue
        self._namespaces = namespaces
        self._clock = clock or SystemClock()
        self._back_off = back_off

    async def run(self) -> None:
        """Watch until cancelled; kopf's thread has ended when it returns."""
        failures = 0
        while True:
            started = self._clock.monotonic()
            await self._run_once()
            failures = 1 if self._clock.monotonic() - started > self._back_off.longest else failures + 1
            delay = self._back_off.delay(failures)
            logger.warning("the watch on the custom resources has ended; it starts again in %.0f s", delay)
            await self._clock.sleep(delay)

    async def _run_once(self) -> None:
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()
        stop = threading.Event()
        thread = threading.Thread(target=self._watch, args=(loop, ended, stop), name="custom resources", daemon=True)
        thread.start()
        try:
            await asyncio.shield(ended)
        except asyncio.CancelledError:
            stop.set()
            await ended
            raise

    def _watch(self, loop: asyncio.AbstractEventLoop, ended: asyncio.Future[None], stop: threading.Event) -> None:
        # Connection's lock belongs to one loop: this thread reads credentials through a copy of its own.
        connection = replace(self._connection)
        enqueue = {resource: _across(loop, put) for resource, put in self._enqueue.items()}
        # By default kopf asks the system for the user's name, and a container's user may have none.
        identity: Any = "muster"
        operator = kopf.operator(
            identity=identity,
            registry=build_registry(connection, enqueue),
            settings=kopf_settings(),
            clusterwide=not self._namespaces,
            namespaces=self._namespaces,
            stop_flag=stop,
        )
        try:
            asyncio.run(operator)
        except Exception:
            logger.exception("the watch on the custom resources failed")
        finally:
            with suppress(RuntimeError):  # the other loop may be closed already
                loop.call_soon_threadsafe(_set, ended)


def _set(ended: asyncio.Future[None]) -> None:
    if not ended.done():
        ended.set_result(None)


def _across(loop: asyncio.AbstractEventLoop, put: Enqueue) -> Enqueue:
    def across(key: str) -> None:
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(put, key)

    return across
