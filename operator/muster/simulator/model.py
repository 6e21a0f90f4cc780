"""Typed objects to the scheduler's model, by the decoders of the engine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, TypeVar

from muster.engine.amounts import TranslationError
from muster.engine.budget_specs import disruption_budget_spec
from muster.engine.node_specs import node_spec
from muster.engine.pod_specs import task_spec
from muster.engine.podgroup_specs import pod_group_spec
from muster.engine.queue_specs import priority_class_spec, queue_spec
from muster.engine.quota_specs import resource_quota_spec
from muster.engine.storage_specs import claim_spec, csi_node_spec, storage_class_spec, volume_spec
from muster.kube.objects import ApiObject, Node, Pod, PodGroup, PriorityClass, Queue
from muster.kube.policy_objects import PodDisruptionBudget, ResourceQuota
from muster.kube.resource import (
    CSINODES,
    NAMESPACES,
    NODES,
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    PODDISRUPTIONBUDGETS,
    PODGROUPS,
    PODS,
    PRIORITYCLASSES,
    QUEUES,
    RESOURCEQUOTAS,
    STORAGECLASSES,
)
from muster.kube.storage_objects import CSINode, Namespace, PersistentVolume, PersistentVolumeClaim, StorageClass
from muster.scheduler.cache import SchedulerCache
from muster.simulator.admission import (
    admit_node,
    admit_pod,
    check_pod_group,
    check_queue,
    check_times,
    with_built_in,
)
from muster.simulator.input_error import InputError
from muster.simulator.manifests import Found, Manifests

GATE: Final = "muster.dev/gang"

T = TypeVar("T", bound=ApiObject)
S = TypeVar("S")


class Model:
    """A cluster: its pods as objects, by uid, and all of it as the scheduler sees it."""

    def __init__(self, scheduler_names: Collection[str]) -> None:
        self.cache = SchedulerCache()
        self.pods: dict[str, Pod] = {}
        self._ours = frozenset(scheduler_names)

    def set_pod(self, pod: Pod) -> None:
        """A pod is there, or has changed. Raises TranslationError."""
        spec = task_spec(pod, scheduler_names=self._ours, gate=GATE)
        self.pods[pod.metadata.uid] = pod
        if spec is not None:
            self.cache.set_task(spec)
        else:
            self.cache.remove_task(pod.metadata.uid)

    def remove_pod(self, uid: str) -> None:
        """A pod is gone."""
        self.cache.remove_task(uid)
        del self.pods[uid]


def build_model(manifests: Manifests, scheduler_names: Collection[str]) -> Model:
    """A model of all objects, told of them in an order that does not depend on the documents'. Raises InputError."""
    model = Model(scheduler_names)
    cache = model.cache
    classes = with_built_in(found.object for found in manifests.of(PRIORITYCLASSES, PriorityClass))
    for priority_class in classes.values():
        cache.set_priority_class(priority_class_spec(priority_class))
    for queue in _in_order(manifests.of(QUEUES, Queue)):
        check_queue(queue)
        cache.set_queue(_translated(queue, queue_spec))
    for quota in _in_order(manifests.of(RESOURCEQUOTAS, ResourceQuota)):
        quota_spec = _translated(quota, resource_quota_spec)
        if quota_spec is not None:
            cache.set_resource_quota(quota_spec)
    for budget in _in_order(manifests.of(PODDISRUPTIONBUDGETS, PodDisruptionBudget)):
        cache.set_disruption_budget(_translated(budget, disruption_budget_spec))
    _add_storage(cache, manifests)
    for node in _in_order(manifests.of(NODES, Node)):
        cache.set_node(_translated(node, lambda each: node_spec(admit_node(each))))
    for group in _in_order(manifests.of(PODGROUPS, PodGroup)):
        check_pod_group(group)
        cache.set_pod_group(pod_group_spec(group.object))
    _add_pods(model, _in_order(manifests.of(PODS, Pod)), classes)
    return model


def _add_storage(cache: SchedulerCache, manifests: Manifests) -> None:
    for namespace in manifests.of(NAMESPACES, Namespace):
        cache.set_namespace(namespace.object.metadata.name, namespace.object.metadata.labels)
    for storage_class in manifests.of(STORAGECLASSES, StorageClass):
        cache.storage.set_class(_translated(storage_class, storage_class_spec))
    for csi_node in manifests.of(CSINODES, CSINode):
        cache.storage.set_csi_node(_translated(csi_node, csi_node_spec))
    for volume in manifests.of(PERSISTENTVOLUMES, PersistentVolume):
        cache.storage.set_volume(_translated(volume, volume_spec))
    for claim in manifests.of(PERSISTENTVOLUMECLAIMS, PersistentVolumeClaim):
        cache.storage.set_claim(_translated(claim, claim_spec))


def _add_pods(model: Model, pods: Iterable[Found[Pod]], classes: Mapping[str, PriorityClass]) -> None:
    for found in pods:
        _translated(Found(found.place, admit_pod(found, classes)), model.set_pod)


def _in_order(objects: list[Found[T]]) -> list[Found[T]]:
    for each in objects:
        check_times(each)
    return sorted(objects, key=_age)


def _age(found: Found[Any]) -> tuple[str, str]:
    meta = found.object.metadata
    return (meta.creation_timestamp or "", meta.uid)


def _translated(found: Found[T], translate: Callable[[T], S]) -> S:
    try:
        return translate(found.object)
    except TranslationError as error:
        raise InputError(found.place, error.path, f"{error.message} ({found.object.key})") from error
