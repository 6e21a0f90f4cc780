"""Typed objects to the scheduler's model, by the decoders of the engine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from muster.engine.amounts import TranslationError
from muster.engine.budget_specs import disruption_budget_spec
from muster.engine.device_selectors import DeviceSelectors
from muster.engine.device_specs import device_class_spec, resource_claim_spec, slice_spec
from muster.engine.node_specs import node_spec
from muster.engine.pod_specs import task_spec
from muster.engine.podgroup_specs import pod_group_spec
from muster.engine.queue_specs import priority_class_spec, queue_spec
from muster.engine.quota_specs import resource_quota_spec
from muster.engine.storage_specs import claim_spec, csi_node_spec, storage_class_spec, volume_spec
from muster.kube.device_objects import DeviceClass, ResourceClaim, ResourceSlice
from muster.kube.objects import ApiObject, Node, Pod, PodGroup, PriorityClass, Queue
from muster.kube.policy_objects import PodDisruptionBudget, ResourceQuota
from muster.kube.resource import (
    CSINODES,
    DEVICECLASSES,
    NAMESPACES,
    NODES,
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    PODDISRUPTIONBUDGETS,
    PODGROUPS,
    PODS,
    PRIORITYCLASSES,
    QUEUES,
    RESOURCECLAIMS,
    RESOURCEQUOTAS,
    RESOURCESLICES,
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


class Model:
    """A cluster: its pods as objects, by uid, and all of it as the scheduler sees it."""

    def __init__(self, scheduler_names: Collection[str]) -> None:
        self.cache = SchedulerCache()
        self.pods: dict[str, Pod] = {}
        self.left_out: list[str] = []
        """What could not be used, and why."""
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
    """A model of all objects, told of them in an order that does not depend on the documents'.

    Raises InputError for the first one that can't be used; one that was observed is left out instead, and named.
    """
    model = Model(scheduler_names)
    cache = model.cache
    classes = with_built_in(found.object for found in manifests.of(PRIORITYCLASSES, PriorityClass))
    for priority_class in classes.values():
        cache.set_priority_class(priority_class_spec(priority_class))
    _add(model, manifests.of(QUEUES, Queue), lambda each: cache.set_queue(queue_spec(each)), check_queue)
    _add(model, manifests.of(RESOURCEQUOTAS, ResourceQuota), lambda each: _set_quota(cache, each))
    budgets = manifests.of(PODDISRUPTIONBUDGETS, PodDisruptionBudget)
    _add(model, budgets, lambda each: cache.set_disruption_budget(disruption_budget_spec(each)))
    _add_storage(model, manifests)
    _add_devices(model, manifests)
    _add(model, manifests.of(NODES, Node), lambda each: cache.set_node(node_spec(admit_node(each))))
    groups = manifests.of(PODGROUPS, PodGroup)
    _add(model, groups, lambda each: cache.set_pod_group(pod_group_spec(each)), check_pod_group)
    _add_pods(model, manifests.of(PODS, Pod), classes)
    return model


def _set_quota(cache: SchedulerCache, quota: ResourceQuota) -> None:
    spec = resource_quota_spec(quota)
    if spec is not None:
        cache.set_resource_quota(spec)


def _add_storage(model: Model, manifests: Manifests) -> None:
    cache, storage = model.cache, model.cache.storage
    for namespace in manifests.of(NAMESPACES, Namespace):
        cache.set_namespace(namespace.object.metadata.name, namespace.object.metadata.labels)
    classes = manifests.of(STORAGECLASSES, StorageClass)
    _add(model, classes, lambda each: storage.set_class(storage_class_spec(each)))
    _add(model, manifests.of(CSINODES, CSINode), lambda each: storage.set_csi_node(csi_node_spec(each)))
    volumes = manifests.of(PERSISTENTVOLUMES, PersistentVolume)
    _add(model, volumes, lambda each: storage.set_volume(volume_spec(each)))
    claims = manifests.of(PERSISTENTVOLUMECLAIMS, PersistentVolumeClaim)
    _add(model, claims, lambda each: storage.set_claim(claim_spec(each)))


def _add_devices(model: Model, manifests: Manifests) -> None:
    """Without any object of these kinds, what pods claim is passed over, as for volumes."""
    devices = model.cache.devices
    if any(manifests.objects[kind] for kind in (DEVICECLASSES, RESOURCESLICES, RESOURCECLAIMS)):
        devices.complete()
    devices.selects = DeviceSelectors()
    classes = manifests.of(DEVICECLASSES, DeviceClass)
    _add(model, classes, lambda each: devices.set_class(device_class_spec(each)))
    slices = manifests.of(RESOURCESLICES, ResourceSlice)
    _add(model, slices, lambda each: devices.set_slice(slice_spec(each)))
    claims = manifests.of(RESOURCECLAIMS, ResourceClaim)
    _add(model, claims, lambda each: devices.set_claim(resource_claim_spec(each)))


def _add_pods(model: Model, pods: list[Found[Pod]], classes: Mapping[str, PriorityClass]) -> None:
    for found in sorted(pods, key=_age):
        with _left_out_if_observed(model):
            check_times(found)
            _tell(Found(found.place, admit_pod(found, classes)), model.set_pod)


def _add(
    model: Model,
    objects: list[Found[T]],
    tell: Callable[[T], object],
    check: Callable[[Found[T]], None] | None = None,
) -> None:
    """Tell the model of these, oldest first. `check` is stricter than the scheduler, which knows some by a problem."""
    for found in sorted(objects, key=_age):
        with _left_out_if_observed(model):
            check_times(found)
            if check is not None and not found.place.observed:
                check(found)
            _tell(found, tell)


@contextmanager
def _left_out_if_observed(model: Model) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        if not error.place.observed:
            raise
        model.left_out.append(str(error))


def _age(found: Found[Any]) -> tuple[str, str]:
    meta = found.object.metadata
    return (meta.creation_timestamp or "", meta.uid)


def _tell(found: Found[T], tell: Callable[[T], object]) -> None:
    try:
        tell(found.object)
    except TranslationError as error:
        raise InputError(found.place, error.path, error.message) from error
