"""The ceiling: a plain client that makes the very objects that Muster makes for RayClusters, and decides nothing.

PodGroup, service and pods are those that Muster's controllers would post, each pod loses its gate and is bound, and
PodGroup and RayCluster are given the status that they have in the end, once. Nothing is looked at on the way but
whether the pods of a cluster are ready, and no event is written.
"""

from __future__ import annotations

import asyncio
import resource
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.controllers.arrivals import Arrivals, Failed, followed, watched
from bench.controllers.at_once import for_each
from bench.controllers.manifests import PODS_EACH
from bench.controllers.plane import dead_of_plane, node_name, plane_sessions
from bench.controllers.result import Figures, percentile, used_since
from bench.controllers.scenario import Kind, Scenario
from bench.controllers.writes_by_kind import writes_by_kind
from bench.processes import Usage, usage
from muster.api.raycluster import RayCluster
from muster.engine.gates import gate_removal
from muster.kube.client import ApiClient, PatchKind
from muster.kube.config import load_connection
from muster.kube.errors import ApiError
from muster.kube.informer import Change, Informer
from muster.kube.objects import Pod, Service
from muster.kube.resource import NAMESPACES, PODGROUPS, PODS, RAYCLUSTERS, SERVICES
from muster.ray import labels
from muster.ray.cluster_status import cluster_status
from muster.ray.gang import pod_group_name, ray_cluster_pod_group
from muster.ray.gang_membership import GangMembership
from muster.ray.pod_health import is_running_and_ready
from muster.ray.pods import head_pod, worker_pod
from muster.ray.services import head_service
from tests.cluster.control_plane import ControlPlane

_CLIENT = "client"
_RUNNING = {"phase": "Running", "running": PODS_EACH}


async def plain_client(
    plane: ControlPlane, kubeconfig: Path, scenario: Scenario, nodes: int, namespace: str, *, patience: float
) -> Figures:
    """The figures of the plain client; its processor time is this process's. Raises Failed for RayJobs, and when no
    cluster has become ready for `patience` seconds.
    """
    if scenario.kind is not Kind.CLUSTERS:
        raise Failed("there is no ceiling for RayJobs")
    async with ApiClient(load_connection(kubeconfig), user_agent="bench") as client:
        await client.create(NAMESPACES, None, {"metadata": {"name": namespace}})
        async with watched(client, scenario) as arrivals, _making(client, namespace, nodes) as maker:
            wrote, before = writes_by_kind(plane), _used(plane)
            await for_each(enumerate(scenario.names), lambda numbered: maker.make(*numbered, scenario, arrivals))
            await arrivals.all_there(
                scenario.names, patience=patience, dead=lambda: maker.failed() or dead_of_plane(plane)
            )
            used = used_since(before, _used(plane), scenario.count)
            made = writes_by_kind(plane) - wrote
        # The object itself, and what kwok writes.
        del made["POST rayclusters"], made["PATCH pods/status"]
        seconds = arrivals.seconds(scenario.names)
        return Figures(
            per_second=scenario.count / arrivals.elapsed(scenario.names),
            p50=percentile(seconds, 0.5),
            p99=percentile(seconds, 0.99),
            system={_CLIENT: used.pop(_CLIENT)},
            plane=used,
            writes=made.total() / scenario.count,
            writes_by_kind={kind: number / scenario.count for kind, number in made.most_common()},
            writes_after=0,
            writes_after_by_kind={},
        )


class _Maker:
    """Makes clusters, and says of each that it is ready when its pods are. Pods go to the nodes in turn."""

    def __init__(self, client: ApiClient, namespace: str, nodes: int, statuses: asyncio.TaskGroup) -> None:
        self._client = client
        self._namespace = namespace
        self._nodes = nodes
        self._statuses = statuses
        self._made: dict[str, tuple[RayCluster, Service]] = {}
        self._ready: dict[str, dict[str, Pod]] = defaultdict(dict)
        self._error: str | None = None

    def failed(self) -> str | None:
        """What the API server had against a status; None where it has taken all."""
        return self._error

    async def make(self, index: int, name: str, scenario: Scenario, arrivals: Arrivals) -> None:
        """One cluster, up to the binding of its pods."""
        arrivals.note_created(name)
        stored = await self._client.create(RAYCLUSTERS, self._namespace, scenario.manifest(name, 0))
        cluster = RayCluster.parse(stored)
        await self._make_pod_group(cluster)
        service = await self._client.create(SERVICES, self._namespace, head_service(cluster), decode=Service)
        self._made[name] = cluster, service
        for member, pod in enumerate(_pods(cluster)):
            await self._run(pod, node_name((index * PODS_EACH + member) % self._nodes))

    async def _make_pod_group(self, cluster: RayCluster) -> None:
        manifest = ray_cluster_pod_group(cluster)
        assert manifest is not None, "no RayJob made it"
        await self._client.create(PODGROUPS, self._namespace, manifest)
        name = manifest["metadata"]["name"]
        await self._client.patch(PODGROUPS, self._namespace, name, {"status": _RUNNING})

    async def _run(self, manifest: dict[str, Any], node: str) -> None:
        pod = await self._client.create(PODS, self._namespace, manifest, decode=Pod)
        patch = gate_removal(pod, labels.GANG_GATE)
        assert patch is not None, "it was made with the gate"
        name, uid = pod.metadata.name, pod.metadata.uid
        await self._client.patch(PODS, self._namespace, name, patch, kind=PatchKind.JSON, decode=Pod)
        await self._client.bind(self._namespace, name, uid=uid, node=node)

    def hear(self, change: Change[Pod]) -> None:
        """A pod has changed."""
        pod = change.object
        cluster = pod.metadata.labels.get(labels.CLUSTER, "")
        if not is_running_and_ready(pod) or pod.metadata.name in self._ready[cluster]:
            return
        self._ready[cluster][pod.metadata.name] = pod
        if len(self._ready[cluster]) == PODS_EACH:
            self._statuses.create_task(self._say_ready(cluster))

    async def _say_ready(self, name: str) -> None:
        cluster, service = self._made.pop(name)
        pods = list(self._ready.pop(name).values())
        status = cluster_status(cluster, pods, service, now=datetime.now(UTC))
        try:
            await self._client.patch(RAYCLUSTERS, self._namespace, name, {"status": status}, subresource="status")
        except ApiError as error:
            self._error = f"{name}: {error}"


def _pods(cluster: RayCluster) -> list[dict[str, Any]]:
    gang = GangMembership(pod_group_name(cluster))
    name = cluster.metadata.name
    (group,) = cluster.spec.worker_groups
    workers = [worker_pod(cluster, group, f"{name}-worker-{index}", gang) for index in range(PODS_EACH - 1)]
    return [head_pod(cluster, f"{name}-head", gang), *workers]


@asynccontextmanager
async def _making(client: ApiClient, namespace: str, nodes: int) -> AsyncIterator[_Maker]:
    """A maker that hears of the pods of the namespace."""
    informer = Informer(client, PODS, Pod, namespace=namespace)
    async with asyncio.TaskGroup() as statuses:
        maker = _Maker(client, namespace, nodes, statuses)
        informer.subscribe(maker.hear)
        async with followed(informer):
            yield maker


def _used(plane: ControlPlane) -> dict[str, Usage]:
    """That of the control plane, and that of this process, which is the client."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    used = {name: usage(session) for name, session in plane_sessions(plane).items()}
    return {**used, _CLIENT: Usage(time.process_time(), peak)}
