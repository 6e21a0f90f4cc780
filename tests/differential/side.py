"""One operator's namespaces: a case goes in, and what the operator makes of it is looked at."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Set

from muster.kube.client import ApiClient
from muster.kube.errors import Invalid
from muster.kube.resource import (
    CONFIGMAPS,
    EVENTS,
    JOBS,
    NAMESPACES,
    PERSISTENTVOLUMECLAIMS,
    PODGROUPS,
    PODS,
    RAYCLUSTERS,
    RAYJOBS,
    SECRETS,
    SERVICEACCOUNTS,
    SERVICES,
    Resource,
)
from tests.differential.heads import Heads
from tests.differential.manifests import Case, Manifest
from tests.differential.normal_form import NormalForm, Object, normal_form
from tests.integration.followed_namespace import FollowedNamespace

ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
ROLEBINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
INGRESSES = Resource("networking.k8s.io", "v1", "ingresses", "Ingress")
MADE = (
    *(PODS, SERVICES, SERVICEACCOUNTS, SECRETS, ROLES, ROLEBINDINGS, JOBS, INGRESSES, PERSISTENTVOLUMECLAIMS),
    *(PODGROUPS, RAYCLUSTERS, RAYJOBS, EVENTS),
)
_PAUSE = 0.3
_NODE_TYPE = "ray.io/node-type"
_VERDICTS = ("SUCCEEDED", "FAILED")
_RAY = (RAYCLUSTERS, RAYJOBS)
_APPLIED = {resource.kind: resource for resource in (*MADE, CONFIGMAPS)}


class Side:
    """The cases under one operator, each in the namespace PREFIX-NUMBER."""

    def __init__(self, name: str, api: ApiClient, prefix: str, cases: Iterable[Case]) -> None:
        self.name = name
        self._api = api
        self.namespaces = {case.name: f"{prefix}-{number:03}" for number, case in enumerate(cases)}
        self._applied: set[tuple[str, str, str]] = set()
        self.refused: dict[str, str] = {}
        """The API server's words on the cases whose RayCluster or RayJob it did not take."""
        self.there = FollowedNamespace(api, None, MADE)

    async def make_namespaces(self) -> None:
        """Create all namespaces."""
        for namespace in self.namespaces.values():
            await self._api.create(NAMESPACES, None, {"metadata": {"name": namespace}})

    async def apply(self, cases: Iterable[Case]) -> None:
        """Create the objects of all cases; kinds that neither operator reads are left out."""
        for case in cases:
            for document in case.documents:
                await self._create(case, document)

    async def _create(self, case: Case, document: Manifest) -> None:
        resource = _APPLIED.get(document["kind"])
        if resource is None:
            return
        namespace, metadata = self.namespaces[case.name], dict(document["metadata"])
        metadata["namespace"] = namespace
        try:
            await self._api.create(resource, namespace, {**document, "metadata": metadata})
        except Invalid as error:
            self.refused[case.name] = str(error)
        self._applied.add((namespace, document["kind"], metadata["name"]))

    def is_behind(self, heads: Heads) -> str | None:
        """Tell what has not come yet that surely will; a busy machine may be silent for long."""
        pods = self.there.all(PODS)
        pending = [pod for pod in pods if pod["status"].get("phase") == "Pending"]
        if pending:
            return f"{len(pending)} pods are to start"
        running = Counter(_cluster_of(pod) for pod in pods if pod["metadata"]["labels"].get(_NODE_TYPE) == "worker")
        clusters = {_key(one): one.get("status") or {} for one in self.there.all(RAYCLUSTERS)}
        for key, status in clusters.items():
            if status.get("availableWorkerReplicas", 0) != running[key]:
                return f"RayCluster {key} has {running[key]} workers"
        runs = {run.submission_id: run.status for run in heads.runs.values()}
        for job in self.there.all(RAYJOBS):
            state = _job_is_behind(job, clusters, runs)
            if state:
                return f"RayJob {_key(job)} {state}"
        return None

    def versions(self) -> tuple[Mapping[str, str], Set[tuple[str, str, str]]]:
        """The version of every object but events, by UID, and what events tell of: the same as long as all is quiet.

        An event may be written long after what it tells of, where the machine is busy, and some are told over and over.
        """
        versions = {
            uid: one["metadata"]["resourceVersion"]
            for resource in MADE
            if resource is not EVENTS
            for uid, one in self.there.objects[resource].items()
        }
        return versions, {_told(event) for event in self.there.all(EVENTS)}

    def look(self, case: str) -> NormalForm:
        """What there is in the case's namespace, without what the case itself brought (but for its Ray objects)."""
        found: list[Object] = []
        for resource in MADE:
            for one in self._all(resource, case):
                mine = (self.namespaces[case], resource.kind, one["metadata"]["name"]) in self._applied
                if resource in _RAY or not mine:
                    found.append({**one, "kind": resource.kind})
        return normal_form(found)

    def _all(self, resource: Resource, case: str) -> list[Object]:
        namespace = self.namespaces[case]
        return [one for one in self.there.all(resource) if one["metadata"].get("namespace") == namespace]


async def quiet(sides: Mapping[Side, Heads], *, seconds: float, within: float) -> None:
    """Wait until nobody is behind and nothing has been written for so long; TimeoutError after `within` seconds."""
    behind: dict[str, str | None] = {}
    try:
        await asyncio.wait_for(_quiet(sides, behind, seconds), within)
    except TimeoutError:
        raise TimeoutError(f"not quiet within {within} s: {behind}") from None


async def _quiet(sides: Mapping[Side, Heads], behind: dict[str, str | None], seconds: float) -> None:
    """Looks are counted, not seconds: on a busy machine many a second may lie between two of them."""
    looks, last = 0, None
    while looks * _PAUSE < seconds:
        await asyncio.sleep(_PAUSE)
        seen = [side.versions() for side in sides]
        behind.update({side.name: side.is_behind(heads) for side, heads in sides.items()})
        looks = 0 if seen != last or any(behind.values()) else looks + 1
        last = seen


def _key(one: Object) -> str:
    return f"{one['metadata']['namespace']}/{one['metadata']['name']}"


def _told(event: Object) -> tuple[str, str, str]:
    about = event.get("regarding") or {}
    return about.get("namespace") or "", about.get("kind") or "", event.get("reason") or ""


def _cluster_of(pod: Object) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['labels']['ray.io/cluster']}"


def _job_is_behind(job: Object, clusters: Mapping[str, Object], runs: Mapping[str, str]) -> str | None:
    """Tell what the RayJob has not noticed yet, of its cluster or of what runs there."""
    status = job.get("status") or {}
    state, found = status.get("jobDeploymentStatus") or "", runs.get(status.get("jobId", ""))
    cluster = clusters.get(f"{job['metadata']['namespace']}/{status.get('rayClusterName')}", {})
    if state == "Initializing" and cluster.get("state") == "ready":
        return "is to notice that its cluster is ready"
    if state == "Running" and found is None:
        return "is to be submitted"
    if found is not None and (status.get("jobStatus") != found or (state == "Running" and found in _VERDICTS)):
        return f"is to notice that its job is {found}"
    return None
