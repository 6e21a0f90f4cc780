"""Whom a change concerns: from changes of children, and of what others wait for, to keys on workqueues.

Children name their owner; what a reconciler waits for besides, it has put down in `Interests`. A child that names
another owner than before, or none any more, concerns its former owner too. Only changes that matter
to the owner count: the status of a RayCluster changes with every pod, but a RayJob hears of it through the cluster's
own status.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, TypeVar

from muster.controllers.context import Context, ObservedRayCluster, ray_cluster_of
from muster.controllers.dead_nodes import NODE_INDEX, silence_changed
from muster.controllers.pod_trouble import mark
from muster.controllers.queue import queue_of
from muster.controllers.relevance import concerns_cluster
from muster.controllers.runner import LOOKING_AT
from muster.controllers.workqueue import WorkQueue
from muster.kube.informer import Change
from muster.kube.malformed import MalformedObject
from muster.kube.objects import ApiObject, Node, OwnerReference, PartialObject, Pod, PodGroup, Queue, controller_of
from muster.kube.resource import PODS, QUEUES, RAYCLUSTERS, RAYJOBS, Resource
from muster.ray import labels

T = TypeVar("T", bound=ApiObject)


_MAY_NAME_AN_OBJECT = re.compile("[a-z0-9][-.a-z0-9]{0,252}")


class Wiring:
    """The subscriptions of the controllers. Owners outside of `namespaces` (empty: all) are somebody else's."""

    def __init__(
        self,
        context: Context,
        ray_jobs: WorkQueue,
        ray_clusters: WorkQueue,
        queues: WorkQueue,
        namespaces: Collection[str] = (),
    ) -> None:
        self._context = context
        self._namespaces = namespaces
        self._ray_jobs = ray_jobs
        self._ray_clusters = ray_clusters
        self._queues = queues

    def connect(self) -> None:
        """Subscribe to every informer; what exists already counts as added."""
        context = self._context
        context.pods.informer.subscribe(self._pod)
        context.nodes.subscribe(self._node)
        context.services.informer.subscribe(self._child)
        context.jobs.informer.subscribe(self._child)
        context.service_accounts.informer.subscribe(self._child)
        context.roles.informer.subscribe(self._child)
        context.role_bindings.informer.subscribe(self._child)
        context.ingresses.informer.subscribe(self._child)
        context.pod_groups.informer.subscribe(self._pod_group)
        context.ray_clusters.informer.subscribe(self._ray_cluster)
        context.queues.informer.subscribe(self._queue)
        for children in (
            context.pods,
            context.services,
            context.jobs,
            context.service_accounts,
            context.roles,
            context.role_bindings,
            context.ingresses,
            context.pod_groups,
            context.ray_clusters,
        ):
            children.informer.on_malformed(self._unreadable)
            children.informer.on_malformed_deleted(self._unreadable)
        for resource, queue in ((RAYJOBS, self._ray_jobs), (RAYCLUSTERS, self._ray_clusters)):
            context.primaries[resource].tell_ends(partial(self._end, queue))

    def _end(self, queue: WorkQueue, key: str) -> None:
        """kopf's watch may have missed it; what is remembered of the object goes at a last look."""
        if not self._namespaces or key.partition("/")[0] in self._namespaces:
            queue.add(key)

    def _node(self, change: Change[Node]) -> None:
        """Whose pods are on a node that has fallen silent, or has come back."""
        if silence_changed(change):
            for pod in self._context.pods.informer.by_index(NODE_INDEX, change.object.metadata.name):
                self._wake_owner(pod)

    def _child(self, change: Change[T]) -> None:
        concerns = concerns_cluster(change.old, change.new)
        for version in _versions_by(_owner_references, change):
            self._wake_owner(version, concerns_cluster=concerns)

    def _unreadable(self, found: MalformedObject) -> None:
        """Whose child has become one that can't be read, or has other faults than before, or is gone."""
        if found.metadata is not None:
            self._wake_owner(PartialObject(metadata=found.metadata))

    def _wake_owner(self, child: ApiObject, *, concerns_cluster: bool = True) -> None:
        meta = child.metadata
        owner = controller_of(meta)
        if owner is None or (self._namespaces and meta.namespace not in self._namespaces):
            return
        if _is(owner.api_version, owner.kind, RAYJOBS):
            _wake(self._ray_jobs, meta.namespace, owner.name)
            return
        # What a look at a cluster has made itself, it has taken into account.
        by_itself = LOOKING_AT.get() == (RAYCLUSTERS.kind, f"{meta.namespace}/{owner.name}")
        if concerns_cluster and not by_itself and _is(owner.api_version, owner.kind, RAYCLUSTERS):
            _wake(self._ray_clusters, meta.namespace, owner.name)

    def _pod(self, change: Change[Pod]) -> None:
        self._child(change)
        for version in _versions_by(_labels, change):
            cluster = ray_cluster_of(version)
            if cluster is not None:
                self._wake_interested(PODS, cluster)
            if mark(change.old) != mark(change.new):
                self._wake_job_of(version)

    def _wake_job_of(self, pod: Pod) -> None:
        """Wake the RayJob that the pod works for, a pod of its cluster or of its submitter's Job."""
        meta = pod.metadata
        if self._namespaces and meta.namespace not in self._namespaces:
            return
        by_job = meta.labels.get(labels.ORIGINATED_FROM_KIND) == RAYJOBS.kind
        job = meta.labels.get(labels.ORIGINATED_FROM_NAME) if by_job else None
        name = meta.labels.get(labels.CLUSTER)
        cluster = self._context.ray_clusters.get(meta.namespace, name) if name else None
        owner = controller_of(cluster.metadata) if cluster is not None else None
        if owner is not None and _is(owner.api_version, owner.kind, RAYJOBS):
            job = owner.name
        if job:
            _wake(self._ray_jobs, meta.namespace, job)

    def _ray_cluster(self, change: Change[ObservedRayCluster]) -> None:
        self._child(change)
        self._wake_interested(RAYCLUSTERS, change.object.key)

    def _pod_group(self, change: Change[PodGroup]) -> None:
        self._child(change)
        for version in (change.old, change.new):
            if version is not None:
                self._queues.add(queue_of(version))

    def _queue(self, change: Change[Queue]) -> None:
        self._queues.add(change.object.metadata.name)
        self._wake_interested(QUEUES, change.object.metadata.name)

    def _wake_interested(self, resource: Resource, target: str) -> None:
        for key in self._context.job_interests.in_object(resource, target):
            self._ray_jobs.add(key, begun=True)
        for key in self._context.cluster_interests.in_object(resource, target):
            self._ray_clusters.add(key, begun=True)


def _versions_by(belongs_to: Callable[[ApiObject], Any], change: Change[T]) -> list[T]:
    """The newest version, and the one before it where that belonged to somebody else, who has lost it."""
    newest, before = change.object, change.old
    lost = before is not None and belongs_to(before) != belongs_to(newest)
    return [newest, before] if lost and before is not None else [newest]


def _owner_references(child: ApiObject) -> list[OwnerReference]:
    return child.metadata.owner_references


def _labels(child: ApiObject) -> dict[str, str]:
    return child.metadata.labels


def _wake(queue: WorkQueue, namespace: str | None, name: str) -> None:
    """Owner references may say any name: one that no object can have would be asked for, in vain, for ever."""
    if _MAY_NAME_AN_OBJECT.fullmatch(name) is not None:
        queue.add(f"{namespace}/{name}", begun=True)


def _is(api_version: str, kind: str, resource: Resource) -> bool:
    """Whether an owner reference means this resource, in whatever version it was written."""
    return kind == resource.kind and api_version.partition("/")[0] == resource.group
