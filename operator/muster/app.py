"""The composition root: builds every part of the operator once and runs them until told to stop.

Nothing else imports it, and no part finds another by itself: clients, clocks, informers and options are handed over
here. If any part fails for good the process ends with status 1 and is started again; all state is in the API server.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import secrets
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from muster import __version__
from muster.controllers.batch_scheduler import BatchScheduler
from muster.controllers.context import MADE_BY_US, ObservedRayCluster, ObservedRayJob
from muster.controllers.controllers import ControllerInformers, ControllerOptions, Controllers
from muster.controllers.dashboard import ProxiedDashboards
from muster.controllers.deletion_defaults import DeletionDefaults
from muster.controllers.figures import ControllerFigures
from muster.engine.clock import SystemClock
from muster.engine.configuration_source import ConfigurationSource, FileConfiguration, FixedConfiguration
from muster.engine.device_mirror import DeviceInformers
from muster.engine.engine import Engine, EngineInformers
from muster.engine.kept_pods import KeptPods
from muster.engine.storage_mirror import StorageInformers
from muster.engine.timeouts import WithTimeouts
from muster.health import serve_health
from muster.kube.access_objects import Role, RoleBinding, ServiceAccount
from muster.kube.background_turns import BackgroundTurns
from muster.kube.client import ApiClient
from muster.kube.config import Connection, ConnectionConfigError, load_connection
from muster.kube.device_objects import DeviceClass, ResourceClaim, ResourceSlice
from muster.kube.errors import ApiError
from muster.kube.events import EventRecorder, ObjectReference
from muster.kube.informer import Informer
from muster.kube.lease import LeaderElector
from muster.kube.objects import ApiObject, Ingress, Job, Node, Pod, PodGroup, PriorityClass, Queue, Service
from muster.kube.policy_objects import PodDisruptionBudget, ResourceQuota
from muster.kube.resource import (
    CSINODES,
    DEVICECLASSES,
    INGRESSES,
    JOBS,
    NAMESPACES,
    NODES,
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    PODDISRUPTIONBUDGETS,
    PODGROUPS,
    PODS,
    PRIORITYCLASSES,
    QUEUES,
    RAYCLUSTERS,
    RAYJOBS,
    RESOURCECLAIMS,
    RESOURCEQUOTAS,
    RESOURCESLICES,
    ROLEBINDINGS,
    ROLES,
    SERVICEACCOUNTS,
    SERVICES,
    STORAGECLASSES,
    Resource,
)
from muster.kube.storage_objects import CSINode, Namespace, PersistentVolume, PersistentVolumeClaim, StorageClass
from muster.metrics import metrics_text, serve_metrics
from muster.ray import labels
from muster.ray.pod_options import PodOptions
from muster.scheduler.conf import ConfigurationError

if TYPE_CHECKING:
    from muster.admission.admission import Admission

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=ApiObject)

CONTAINER = "muster"
"""The name of the operator's container in its pod."""

DEEP_ENOUGH = 11_000
"""Python's recursion limit: the API server takes objects nested up to 10,000 levels deep (a pod template of a
RayCluster may hold anything), and one that can't be decoded would stop the watch on all of its kind."""

FEW_COLLECTIONS = 50_000
"""Objects made since the last look for garbage in cycles, those let go not counted, that lead to the next one. With
Python's 700, half of the time that the first lists took went into such looks."""


class Component(StrEnum):
    """A part of Muster that can run in a process of its own."""

    CONTROLLERS = "controllers"
    SCHEDULER = "scheduler"
    ADMISSION = "admission"

    @property
    def lease(self) -> str | None:
        """The Lease whose holder works as this component; a process of several holds several. None: all work."""
        return None if self is Component.ADMISSION else f"muster-{self}"


@dataclass(frozen=True, slots=True)
class Options:
    """What `muster run` was asked for. Times are in seconds."""

    components: frozenset[Component]
    kubeconfig: Path | None
    scheduler_names: tuple[str, ...]
    scheduler_configuration: Path | None
    submitter_image: str | None
    namespace: str
    pod_name: str | None
    leader_election: bool
    health_port: int
    gang_repair_timeout: float
    admission_timeout: float
    starvation_timeout: float
    create_queues: bool = True
    batch_scheduler: BatchScheduler = BatchScheduler.MUSTER
    use_kubernetes_proxy: bool = False
    delete_finished_jobs: bool = False
    finished_cluster_ttl: float | None = None
    metrics_port: int = 8080
    redis_cleanup: bool = True
    dead_node_timeout: float = 300.0
    watch_namespaces: tuple[str, ...] = ()
    admission_port: int = 9443
    admission_hosts: tuple[str, ...] = ()
    admission_certificates: Path | None = None
    random_pod_delete: bool = False
    status_check_timeout: float = 300.0
    submitter_grace: float = 300.0
    pods: PodOptions = field(default_factory=PodOptions)


async def operate(options: Options) -> int:
    """Run the operator until SIGTERM or SIGINT; the exit status: 0 when asked to stop, 1 when a part failed."""
    sys.setrecursionlimit(max(DEEP_ENOUGH, sys.getrecursionlimit()))
    gc.set_threshold(FEW_COLLECTIONS, *gc.get_threshold()[1:])
    work = asyncio.ensure_future(_work(options))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, work.cancel)
    try:
        await work
    except asyncio.CancelledError:
        logger.info("told to stop")
        return 0
    except (ApiError, ConfigurationError, ConnectionConfigError, OSError) as error:
        logger.error("%s", error)
        return 1
    except Exception:
        logger.exception("a part of the operator failed")
        return 1
    logger.error("the operator ended by itself")
    return 1


async def _work(options: Options) -> None:
    connection = load_connection(options.kubeconfig)
    async with ApiClient(connection, user_agent=f"muster/{__version__}") as client:
        operator = Operator(options, connection, client)
        text = metrics_text(operator.figures)
        async with serve_health(options.health_port, operator.is_ready), serve_metrics(options.metrics_port, text):
            await operator.run()


@dataclass(frozen=True, slots=True)
class OwnPod:
    """The pod that this process runs in: the submitter's image is its image, the operator's events are about it."""

    image: str
    reference: ObjectReference


class Operator:
    """The parts that were asked for, and the informers that they share."""

    def __init__(self, options: Options, connection: Connection, client: ApiClient) -> None:
        self._options = options
        self._connection = connection
        self._client = client
        self._turns = BackgroundTurns()
        self._recorder = EventRecorder(client, "muster", turns=self._turns)
        self._informers: list[Informer[Any]] = []
        self._leads = False
        self._working: Controllers | None = None

    def figures(self) -> ControllerFigures | None:
        """What can be counted of the controllers; None while they don't work here."""
        return self._working.figures() if self._leads and self._working is not None else None

    def is_ready(self) -> bool:
        """Whether it works, or stands by for a Lease: a stand-by is ready too, else no roll-out would end."""
        return not self._leads or all(informer.has_synced for informer in self._informers)

    async def run(self) -> None:
        """Work until a part ends: what has a Lease while that is held, if Leases are wanted, admission always."""
        works = [self._compete] if any(one.lease for one in self._options.components) else []
        if Component.ADMISSION in self._options.components:
            works.append(self._admission().run)
        await until_one_ends(*works)

    async def _compete(self) -> None:
        if not self._options.leader_election:
            await self._lead()
            return
        # Connections of its own: a Lease must not be lost because many other requests are waiting for an answer.
        async with ApiClient(self._connection, user_agent=f"muster/{__version__}") as client:
            identity, work = self._identity(), self._lead
            # Always in the same order, so that no two processes each hold what the other waits for.
            for lease in sorted(one.lease for one in self._options.components if one.lease):
                elector = LeaderElector(client, self._options.namespace, lease, identity)
                work = partial(elector.run, work)
            await work()

    def _identity(self) -> str:
        # A container that is started again in its pod takes its own Lease over at once: the one before it is dead.
        return self._options.pod_name or f"{socket.gethostname()}-{secrets.token_hex(4)}"

    async def _lead(self) -> None:
        # Everything anew at each turn: what was known before the Lease was lost is worth nothing.
        self._informers = []
        parts = self._parts(await self._own_pod())
        self._leads = True  # from now on ready means that all informers know what there is
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._recorder.run(), name="events")
                for informer in self._informers:
                    tasks.create_task(informer.run(), name=f"informer of {informer.resource.plural}")
                for run in parts:
                    tasks.create_task(run())
        finally:
            self._leads = False

    def _parts(self, own_pod: OwnPod | None) -> list[Callable[[], Coroutine[Any, Any, None]]]:
        """Build what was asked for; each part comes back as the function that runs it."""
        pods = Informer(self._client, PODS, Pod, compact=KeptPods(self._options.scheduler_names))
        self._informers.append(pods)
        pod_groups, queues = self._gang_informers()
        nodes = self._informer(NODES, Node)
        parts: list[Callable[[], Coroutine[Any, Any, None]]] = []
        if Component.SCHEDULER in self._options.components:
            # Not among those that readiness waits for: they run only where pods claim devices.
            devices = DeviceInformers(
                claims=Informer(self._client, RESOURCECLAIMS, ResourceClaim),
                slices=Informer(self._client, RESOURCESLICES, ResourceSlice),
                classes=Informer(self._client, DEVICECLASSES, DeviceClass),
            )
            parts.append(devices.run)
            priority_classes = self._informer(PRIORITYCLASSES, PriorityClass)
            engine_informers = EngineInformers(
                pods,
                nodes,
                pod_groups,
                queues,
                priority_classes,
                resource_quotas=self._informer(RESOURCEQUOTAS, ResourceQuota),
                disruption_budgets=self._informer(PODDISRUPTIONBUDGETS, PodDisruptionBudget),
                storage=StorageInformers(
                    claims=self._informer(PERSISTENTVOLUMECLAIMS, PersistentVolumeClaim),
                    volumes=self._informer(PERSISTENTVOLUMES, PersistentVolume),
                    classes=self._informer(STORAGECLASSES, StorageClass),
                    csi_nodes=self._informer(CSINODES, CSINode),
                    namespaces=self._informer(NAMESPACES, Namespace),
                ),
                devices=devices,
            )
            parts.append(self._engine(engine_informers, own_pod).run)
        if Component.CONTROLLERS in self._options.components:
            controller_informers = ControllerInformers(
                pods=pods,
                # A RayJob's head service carries no label of ours: it has to look as KubeRay's does.
                services=self._informer(SERVICES, Service),
                jobs=self._informer(JOBS, Job, label_selector=MADE_BY_US),
                pod_groups=pod_groups,
                queues=queues,
                ray_clusters=self._informer(RAYCLUSTERS, ObservedRayCluster),
                service_accounts=self._informer(SERVICEACCOUNTS, ServiceAccount, label_selector=MADE_BY_US),
                roles=self._informer(ROLES, Role, label_selector=MADE_BY_US),
                role_bindings=self._informer(ROLEBINDINGS, RoleBinding, label_selector=MADE_BY_US),
                ingresses=self._informer(INGRESSES, Ingress, label_selector=MADE_BY_US),
                nodes=nodes,
                ray_jobs=self._informer(RAYJOBS, ObservedRayJob),
            )
            parts.append(self._controllers(controller_informers, own_pod).run)
        return parts

    def _gang_informers(self) -> tuple[Informer[PodGroup], Informer[Queue]]:
        if self._has_gangs():
            return self._informer(PODGROUPS, PodGroup), self._informer(QUEUES, Queue)
        # The API server may not even serve them; they are not run.
        return Informer(self._client, PODGROUPS, PodGroup), Informer(self._client, QUEUES, Queue)

    def _has_gangs(self) -> bool:
        scheduling = Component.SCHEDULER in self._options.components
        return scheduling or self._options.batch_scheduler is not BatchScheduler.NONE

    def _informer(self, resource: Resource, decode: type[T], label_selector: str | None = None) -> Informer[T]:
        informer = Informer(self._client, resource, decode, label_selector=label_selector)
        self._informers.append(informer)
        return informer

    def _engine(self, informers: EngineInformers, own_pod: OwnPod | None) -> Engine:
        return Engine(
            self._client,
            informers,
            self._recorder,
            configuration_source=self._configuration(),
            turns=self._turns,
            scheduler_names=self._options.scheduler_names,
            itself=own_pod.reference if own_pod else None,
        )

    def _configuration(self) -> ConfigurationSource:
        path = self._options.scheduler_configuration
        return WithTimeouts(
            FileConfiguration(path, SystemClock()) if path else FixedConfiguration(),
            gang_repair=self._options.gang_repair_timeout,
            admission=self._options.admission_timeout,
            starvation=self._options.starvation_timeout,
        )

    def _controllers(self, informers: ControllerInformers, own_pod: OwnPod | None) -> Controllers:
        image = self._options.submitter_image or (own_pod.image if own_pod else None)
        if image is None:
            raise ConnectionConfigError("outside a pod, --submitter-image has to name Muster's image")
        options = controller_options(self._options, image)
        proxied = self._options.use_kubernetes_proxy
        dashboards = ProxiedDashboards(self._connection, options.pods.cluster_domain) if proxied else None
        self._working = Controllers(
            self._client, informers, self._recorder, options, connection=self._connection, dashboards=dashboards
        )
        return self._working

    def _admission(self) -> Admission:
        # Who runs the scheduler or the controllers alone does not load a web server and certificates for it.
        from muster.admission.admission import Admission, AdmissionOptions

        options = AdmissionOptions(
            port=self._options.admission_port,
            hosts=self._options.admission_hosts or (f"muster-admission.{self._options.namespace}.svc",),
            namespace=self._options.namespace,
            certificates=self._options.admission_certificates,
            pods=self._options.pods,
        )
        return Admission(self._connection, options)

    async def _own_pod(self) -> OwnPod | None:
        if self._options.pod_name is None:
            return None
        pod = await self._client.get(PODS, self._options.namespace, self._options.pod_name)
        meta = pod["metadata"]
        reference = ObjectReference("v1", "Pod", meta["namespace"], meta["name"], meta["uid"])
        return OwnPod(own_image(pod), reference)


async def until_one_ends(*works: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Do all of it at once; when one ends the others are stopped, and how it ended is how this ends."""
    tasks = [asyncio.create_task(work()) for work in works]
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in ended:
        task.result()


def controller_options(options: Options, submitter_image: str) -> ControllerOptions:
    """What the controllers need to know of what was asked for."""
    batch_scheduler = options.batch_scheduler
    ours = batch_scheduler is BatchScheduler.MUSTER
    return ControllerOptions(
        submitter_image=submitter_image,
        scheduler_name=options.scheduler_names[0] if ours else batch_scheduler.value,
        gate=labels.GANG_GATE if ours else None,
        gangs=batch_scheduler is not BatchScheduler.NONE,
        namespaces=options.watch_namespaces,
        create_queues=options.create_queues,
        deletion_defaults=DeletionDefaults(options.delete_finished_jobs, options.finished_cluster_ttl),
        redis_cleanup=options.redis_cleanup,
        dead_node_timeout=options.dead_node_timeout,
        random_pod_delete=options.random_pod_delete,
        status_check_timeout=options.status_check_timeout,
        submitter_grace=options.submitter_grace,
        pods=options.pods,
    )


def own_image(pod: Mapping[str, Any]) -> str:
    """Muster's image: that of the container of its name, for others may have been injected before it."""
    containers = pod["spec"]["containers"]
    named = (one["image"] for one in containers if one["name"] == CONTAINER)
    image: str = next(named, containers[0]["image"])
    return image
