"""The ceiling: a plain client that makes what Muster makes for RayClusters, binds the pods, and decides nothing."""

from __future__ import annotations

import resource
import time
from typing import Any

from bench.controllers.arrivals import Failed
from bench.controllers.at_once import for_each
from bench.controllers.manifests import PODS_EACH, pod_spec
from bench.controllers.plane import node_name, plane_sessions
from bench.controllers.result import Figures, percentile, used_since
from bench.controllers.scenario import Kind, Scenario
from bench.controllers.writes_by_kind import writes_by_kind
from bench.processes import Usage, usage
from muster.kube.client import ApiClient
from muster.kube.config import load_connection
from muster.kube.resource import NAMESPACES, PODGROUPS, PODS, RAYCLUSTERS, SERVICES, Resource
from tests.cluster.control_plane import ControlPlane

_CLIENT = "client"


async def plain_client(plane: ControlPlane, scenario: Scenario, nodes: int, namespace: str) -> Figures:
    """The figures of the plain client; its processor time is this process's. Raises Failed for RayJobs."""
    if scenario.kind is not Kind.CLUSTERS:
        raise Failed("there is no ceiling for RayJobs")
    async with ApiClient(load_connection(plane.kubeconfig), user_agent="bench") as client:
        await client.create(NAMESPACES, None, {"metadata": {"name": namespace}})
        wrote, before, started = writes_by_kind(plane), _used(plane), time.monotonic()
        seconds: list[float] = []

        async def make(numbered: tuple[int, str]) -> None:
            index, name = numbered
            begun = time.monotonic()
            await _Cluster(client, namespace, name, index * PODS_EACH, nodes).make(scenario)
            seconds.append(time.monotonic() - begun)

        await for_each(enumerate(scenario.names), make)
        took = time.monotonic() - started
        used = used_since(before, _used(plane), scenario.count)
        made = writes_by_kind(plane) - wrote
        # The object itself; and what kwok has written so far, since nobody waits for it here.
        del made["POST rayclusters"], made["PATCH pods/status"]
        seconds.sort()
        return Figures(
            per_second=scenario.count / took,
            p50=percentile(seconds, 0.5),
            p99=percentile(seconds, 0.99),
            system={_CLIENT: used.pop(_CLIENT)},
            plane=used,
            writes=made.total() / scenario.count,
            writes_by_kind={kind: number / scenario.count for kind, number in made.most_common()},
            writes_after=0,
            writes_after_by_kind={},
        )


class _Cluster:
    """One cluster in the making; its pods go to the nodes in turn."""

    def __init__(self, client: ApiClient, namespace: str, name: str, first: int, nodes: int) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._nodes = [node_name((first + member) % nodes) for member in range(PODS_EACH)]

    async def make(self, scenario: Scenario) -> None:
        """RayCluster, PodGroup, service and pods; gates off, bindings, and one status."""
        await self._client.create(RAYCLUSTERS, self._namespace, scenario.manifest(self._name, 0))
        await self._create(PODGROUPS, f"ray-{self._name}-pg", {"minMember": PODS_EACH})
        ports = [{"name": "client", "port": 10001}]
        await self._create(SERVICES, f"{self._name}-head-svc", {"ports": ports, "clusterIP": "None"})
        for member, node in enumerate(self._nodes):
            await self._pod(f"{self._name}-{member}", node)
        status = {"status": {"state": "ready"}}
        await self._client.patch(RAYCLUSTERS, self._namespace, self._name, status, subresource="status")

    async def _pod(self, name: str, node: str) -> None:
        made = await self._create(PODS, name, {**pod_spec("ray"), "schedulingGates": [{"name": "bench"}]})
        uid = made["metadata"]["uid"]
        patch = {"metadata": {"uid": uid}, "spec": {"schedulingGates": None}}
        await self._client.patch(PODS, self._namespace, name, patch)
        await self._client.bind(self._namespace, name, uid=uid, node=node)

    async def _create(self, resource: Resource, name: str, spec: dict[str, Any]) -> dict[str, Any]:
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}, "spec": spec}
        return await self._client.create(resource, self._namespace, body)


def _used(plane: ControlPlane) -> dict[str, Usage]:
    """That of the control plane, and that of this process, which is the client."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    used = {name: usage(session) for name, session in plane_sessions(plane).items()}
    return {**used, _CLIENT: Usage(time.process_time(), peak)}
