"""All controllers as one thing to run: watches in, workqueues between, reconcilers out."""

from __future__ import annotations

import asyncio
from dataclasses import fields
from random import Random

from muster.controllers.clock import Clock
from muster.controllers.context import Context, ControllerInformers, ControllerOptions
from muster.controllers.custom_resources import CustomResourceWatch, Enqueue
from muster.controllers.dashboard import DashboardResolver, PodDashboards
from muster.controllers.figures import ControllerFigures
from muster.controllers.queue import QueueReconciler
from muster.controllers.raycluster import RayClusterReconciler
from muster.controllers.rayjob import RayJobReconciler
from muster.controllers.runner import Runner
from muster.controllers.slots import Slots
from muster.controllers.wiring import Wiring
from muster.controllers.workqueue import WorkQueue
from muster.kube.client import ApiClient
from muster.kube.config import Connection
from muster.kube.events import EventRecorder
from muster.kube.resource import RAYCLUSTERS, RAYJOBS, Resource

__all__ = ["ControllerInformers", "ControllerOptions", "Controllers"]

SYNC_SECONDS = 120.0
"""How long the informers may take for their first lists."""


class Controllers:
    """The reconcilers for RayJob, RayCluster and Queue.

    The caller runs the informers (and the recorder) beside `run`, and holds the Lease while it runs. `connection` is
    the API server for kopf's watch on the custom resources; `dashboards` is the way to Ray's dashboards, by default
    from inside the cluster.
    """

    def __init__(
        self,
        client: ApiClient,
        informers: ControllerInformers,
        recorder: EventRecorder,
        options: ControllerOptions,
        *,
        connection: Connection,
        dashboards: DashboardResolver | None = None,
        clock: Clock | None = None,
        random: Random | None = None,
    ) -> None:
        self._informers = informers
        ways = dashboards or PodDashboards(options.pods.cluster_domain)
        self._context = Context(client, informers, recorder, options, ways, clock, random)
        clock = self._context.clock
        self.ray_jobs = WorkQueue(clock=clock, rest=options.rest)
        self.ray_clusters = WorkQueue(clock=clock, rest=options.rest)
        self.queues = WorkQueue(clock=clock)
        self._queue_reconciler = QueueReconciler(self._context)
        slots = Slots(options.concurrency, options.most_at_once, clock=clock)
        self._runners = [
            Runner("RayJob", RayJobReconciler(self._context), self.ray_jobs, slots=self._context.job_slots),
            Runner("RayCluster", RayClusterReconciler(self._context), self.ray_clusters, slots=slots),
        ]
        self._gangs = options.gangs
        if self._gangs:
            self._runners.append(Runner("Queue", self._queue_reconciler, self.queues))
        enqueue = {
            RAYJOBS: self._told_of(RAYJOBS, self.ray_jobs),
            RAYCLUSTERS: self._told_of(RAYCLUSTERS, self.ray_clusters),
        }
        self._custom_resources = CustomResourceWatch(connection, enqueue, options.namespaces)
        self._wiring = Wiring(self._context, self.ray_jobs, self.ray_clusters, self.queues, options.namespaces)

    def _told_of(self, resource: Resource, queue: WorkQueue) -> Enqueue:
        def changed(key: str, version: str) -> None:
            # A state that a look at a RayJob has stored is where the next one goes on; a look at a RayCluster says
            # itself when it needs another.
            is_news = self._context.primaries[resource].told_of(key, version)
            if is_news or resource is RAYJOBS:
                queue.add(key, begun=not is_news)

        return changed

    def figures(self) -> ControllerFigures:
        """What can be counted at the moment."""
        return ControllerFigures.of(self._context, self._runners)

    async def run(self) -> None:
        """Reconcile until cancelled; starts once the informers have synced (TimeoutError when they do not).

        Every reconcile and the watch have ended when it returns.
        """
        of_gangs = () if self._gangs else (self._informers.pod_groups, self._informers.queues)
        every = [getattr(self._informers, field.name) for field in fields(self._informers)]
        watched = [informer for informer in every if informer not in of_gangs]
        # Together, not one after another: a cancellation that meets the end of one wait must not be lost in the next.
        await asyncio.gather(*(informer.wait_synced(SYNC_SECONDS) for informer in watched))
        self._wiring.connect()
        for name in ("root", "default"):
            self.queues.add(name)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._custom_resources.run(), name="custom resources")
            tasks.create_task(self._context.dashboard_questions.close_idle(), name="idle connections to dashboards")
            for runner in self._runners:
                tasks.create_task(runner.run())
