"""The watch on the custom resources: kopf sees a change, its key goes on a workqueue, nothing else happens.

The registry is an explicit one with event handlers only. So kopf adds no finalizer and no annotation, posts no event,
keeps no progress in the objects: it never writes. Should kopf give up (the API server was away for long, or refused the
credentials), it is started again after a while, and begins with a list of everything.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any

import kopf

from muster.controllers.kopf_thread import KopfThread, log_in_with, quiet_settings
from muster.kube.config import Connection
from muster.kube.resource import Resource

Enqueue = Callable[[str, str], None]
"""Takes the key of an object that changed, and the version that it has now; called on kopf's thread."""


def build_registry(connection: Connection, enqueue: Mapping[Resource, Enqueue]) -> kopf.OperatorRegistry:
    """An operator that tells `enqueue` of its resource of each changed object, and logs in with `connection`."""
    registry = kopf.OperatorRegistry()
    log_in_with(registry, connection)
    for resource, put in enqueue.items():
        _watch(registry, resource, put)
    return registry


def _watch(registry: kopf.OperatorRegistry, resource: Resource, put: Enqueue) -> None:
    @kopf.on.event(resource.group, resource.version, resource.plural, registry=registry, id=resource.plural)
    async def changed(namespace: str | None, name: str | None, meta: Mapping[str, Any], **_: Any) -> None:
        put(f"{namespace}/{name}" if namespace else str(name), str(meta.get("resourceVersion") or ""))


class CustomResourceWatch:
    """Runs the operator of `build_registry` on its own thread and hands the keys over to this loop."""

    def __init__(
        self, connection: Connection, enqueue: Mapping[Resource, Enqueue], namespaces: Collection[str] = ()
    ) -> None:
        self._enqueue = enqueue
        self._namespaces = namespaces
        self._connection = connection

    async def run(self) -> None:
        """Watch until cancelled; kopf's thread has ended when it returns."""
        loop = asyncio.get_running_loop()
        enqueue = {resource: Handover(loop, put) for resource, put in self._enqueue.items()}

        async def watch(connection: Connection, stop: threading.Event) -> None:
            # By default kopf asks the system for the user's name, and a container's user may have none.
            identity: Any = "muster"
            await kopf.operator(
                identity=identity,
                registry=build_registry(connection, enqueue),
                settings=quiet_settings(),
                clusterwide=not self._namespaces,
                namespaces=self._namespaces,
                stop_flag=stop,
            )

        await KopfThread("the watch on the custom resources", self._connection, watch).run()


class Handover:
    """Takes keys on any thread and puts them on the loop's; a loop that is closed gets no more.

    All that come before the loop has looked are handed over in one go, each once and with the last version that was
    told: to wake a loop costs a system call, and a turn of that loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, put: Enqueue) -> None:
        self._loop = loop
        self._put = put
        self._lock = threading.Lock()
        self._told: dict[str, str] = {}

    def __call__(self, key: str, version: str) -> None:
        """Hand over that the object of this key has this version now."""
        with self._lock:
            is_first = not self._told
            self._told[key] = version
        if is_first:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        with self._lock:
            told, self._told = self._told, {}
        for key, version in told.items():
            self._put(key, version)
