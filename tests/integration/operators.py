"""Muster's controllers against a real API server, started and killed at will."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import fields
from typing import Any, Self, TypeVar

from muster.controllers.clock import Clock
from muster.controllers.context import MADE_BY_US, ObservedRayCluster, ObservedRayJob
from muster.controllers.controllers import ControllerInformers, ControllerOptions, Controllers
from muster.controllers.dashboard import DashboardResolver
from muster.kube.access_objects import Role, RoleBinding, ServiceAccount
from muster.kube.client import ApiClient
from muster.kube.config import Connection
from muster.kube.events import EventRecorder
from muster.kube.informer import Informer
from muster.kube.objects import Ingress, Job, Node, Pod, PodGroup, Queue, Service
from muster.kube.resource import (
    INGRESSES,
    JOBS,
    NODES,
    PODGROUPS,
    PODS,
    QUEUES,
    RAYCLUSTERS,
    RAYJOBS,
    ROLEBINDINGS,
    ROLES,
    SERVICEACCOUNTS,
    SERVICES,
)

T = TypeVar("T")

PATIENCE = 90.0
"""Seconds to wait for something that takes one or two on an idle machine."""


class Operator:
    """The controllers of one namespace (None: of all); an async context manager."""

    def __init__(
        self,
        connection: Connection,
        namespace: str | None,
        dashboards: DashboardResolver,
        *,
        clock: Clock | None = None,
        **options: Any,
    ) -> None:
        self._connection = connection
        self._namespace = namespace
        self._dashboards = dashboards
        self._clock = clock
        self._options = ControllerOptions(
            submitter_image="muster:test",
            namespaces=() if namespace is None else (namespace,),
            **{"poll_interval": 0.2, **options},
        )
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.kill()

    async def start(self) -> None:
        """Start everything, with nothing remembered."""
        self._client = ApiClient(self._connection, timeout=5.0)
        await self._client.__aenter__()
        client, namespace = self._client, self._namespace
        informers = ControllerInformers(
            pods=Informer(client, PODS, Pod, namespace=namespace),
            services=Informer(client, SERVICES, Service, namespace=namespace),
            jobs=Informer(client, JOBS, Job, namespace=namespace),
            pod_groups=Informer(client, PODGROUPS, PodGroup, namespace=namespace),
            queues=Informer(client, QUEUES, Queue),
            ray_clusters=Informer(client, RAYCLUSTERS, ObservedRayCluster, namespace=namespace),
            service_accounts=Informer(
                client, SERVICEACCOUNTS, ServiceAccount, namespace=namespace, label_selector=MADE_BY_US
            ),
            roles=Informer(client, ROLES, Role, namespace=namespace, label_selector=MADE_BY_US),
            role_bindings=Informer(client, ROLEBINDINGS, RoleBinding, namespace=namespace, label_selector=MADE_BY_US),
            ingresses=Informer(client, INGRESSES, Ingress, namespace=namespace, label_selector=MADE_BY_US),
            nodes=Informer(client, NODES, Node),
            ray_jobs=Informer(client, RAYJOBS, ObservedRayJob, namespace=namespace),
        )
        recorder = EventRecorder(client, "muster")
        self.controllers = Controllers(
            client,
            informers,
            recorder,
            self._options,
            connection=self._connection,
            dashboards=self._dashboards,
            clock=self._clock,
        )
        parts: list[Informer[Any]] = [getattr(informers, field.name) for field in fields(informers)]
        work = [*(part.run() for part in parts), recorder.run(), self.controllers.run()]
        self._tasks = [asyncio.create_task(part) for part in work]

    async def kill(self) -> None:
        """End everything at its next await, whatever it is about to write."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
        await self._client.__aexit__(None, None, None)


async def eventually(probe: Callable[[], Awaitable[T | None]], what: str, within: float = PATIENCE) -> T:
    """The first truthy answer of `probe`; AssertionError, with the last answer, when none comes in so many seconds."""
    answer: T | None = None
    try:
        async with asyncio.timeout(within):
            while True:
                answer = await probe()
                if answer:
                    return answer
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"{what} within {within} s; last seen: {answer!r}") from None
