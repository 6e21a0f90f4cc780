"""The cluster as the scheduler sees it: watch events become model changes.

An object that can't be translated is kept out of the model and named, with the field, in a Warning event; all others go
on. A PodGroup stays in with its problem, so that its gang can say why it waits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from functools import partial
from operator import attrgetter
from typing import Any, Final

from muster.engine.amounts import TranslationError
from muster.engine.budget_specs import disruption_budget_spec
from muster.engine.device_mirror import DeviceInformers, DeviceMirror
from muster.engine.node_specs import node_spec, unreadable_node_spec
from muster.engine.pod_specs import task_spec, task_spec_again
from muster.engine.podgroup_specs import malformed_pod_group_spec, pod_group_spec
from muster.engine.queue_specs import priority_class_spec, queue_spec
from muster.engine.quota_specs import resource_quota_spec
from muster.engine.references import reference
from muster.engine.reflection import Listener, Reflection
from muster.engine.storage_mirror import StorageInformers, StorageMirror
from muster.kube.events import EventRecorder, ObjectReference
from muster.kube.informer import Informer, MalformedObject
from muster.kube.objects import ApiObject, Node, Pod, PodGroup, PriorityClass, Queue, controller_of
from muster.kube.policy_objects import PodDisruptionBudget, ResourceQuota
from muster.kube.resource import (
    NODES,
    PODDISRUPTIONBUDGETS,
    PODGROUPS,
    PODS,
    PRIORITYCLASSES,
    QUEUES,
    RESOURCEQUOTAS,
    Resource,
)
from muster.scheduler.cache import SchedulerCache
from muster.scheduler.specs import (
    NodeSpec,
    PodDisruptionBudgetSpec,
    PodGroupSpec,
    PriorityClassSpec,
    QueueSpec,
    ResourceQuotaSpec,
    TaskSpec,
)


@dataclass(frozen=True, slots=True)
class EngineInformers:
    """The watches that the engine reads, run by their owner.

    Pods of all namespaces, unfiltered: the pods of others fill nodes too. What only some plugins read may be left out.
    """

    pods: Informer[Pod]
    nodes: Informer[Node]
    pod_groups: Informer[PodGroup]
    queues: Informer[Queue]
    priority_classes: Informer[PriorityClass]
    resource_quotas: Informer[ResourceQuota] | None = None
    disruption_budgets: Informer[PodDisruptionBudget] | None = None
    storage: StorageInformers | None = None
    devices: DeviceInformers | None = None

    def all(self) -> tuple[Informer[Any], ...]:
        """All of them but those of devices, which nothing waits for."""
        optional: list[Informer[Any]] = [
            each for each in (self.resource_quotas, self.disruption_budgets) if each is not None
        ]
        if self.storage is not None:
            optional += self.storage.all()
        return (*optional, self.priority_classes, self.queues, self.nodes, self.pod_groups, self.pods)


class Mirror:
    """Keeps `cache` equal to what the informers show.

    `wake` is called when a decision could be another one, `doubt` when the cache raised an exception: then it can't be
    trusted any more.
    """

    def __init__(
        self,
        cache: SchedulerCache,
        recorder: EventRecorder,
        wake: Callable[[], None],
        doubt: Callable[[Exception], None],
        *,
        scheduler_names: Collection[str],
        gate: str,
    ) -> None:
        self._recorder = recorder
        listener = Listener(wake, self._complain, doubt)
        self._task_spec = partial(task_spec, scheduler_names=frozenset(scheduler_names), gate=gate)
        self._task_spec_again = partial(task_spec_again, scheduler_names=frozenset(scheduler_names), gate=gate)
        self._pods: Reflection[Pod, TaskSpec] = Reflection(
            PODS,
            listener,
            self._translate_pod,
            cache.set_task,
            cache.remove_task,
            identify=lambda pod: pod.metadata.uid,
            again=self._translate_pod_again,
            kin=_controller,
        )
        self._nodes: Reflection[Node, NodeSpec] = Reflection(
            NODES, listener, self._translate_node, cache.set_node, cache.remove_node
        )
        self._pod_groups: Reflection[PodGroup, PodGroupSpec] = Reflection(
            PODGROUPS,
            listener,
            self._translate_pod_group,
            cache.set_pod_group,
            cache.remove_pod_group,
            matters=pod_group_matters,
        )
        self._queues: Reflection[Queue, QueueSpec] = Reflection(
            QUEUES, listener, self._translate_queue, cache.set_queue, cache.remove_queue
        )
        self._priority_classes: Reflection[PriorityClass, PriorityClassSpec] = Reflection(
            PRIORITYCLASSES, listener, priority_class_spec, cache.set_priority_class, cache.remove_priority_class
        )
        self._resource_quotas: Reflection[ResourceQuota, ResourceQuotaSpec] = Reflection(
            RESOURCEQUOTAS, listener, resource_quota_spec, cache.set_resource_quota, cache.remove_resource_quota
        )
        self._disruption_budgets: Reflection[PodDisruptionBudget, PodDisruptionBudgetSpec] = Reflection(
            PODDISRUPTIONBUDGETS,
            listener,
            disruption_budget_spec,
            cache.set_disruption_budget,
            cache.remove_disruption_budget,
        )

        self._storage = StorageMirror(cache, listener)
        self.devices = DeviceMirror(cache, listener)

    def attach(self, informers: EngineInformers) -> None:
        """Tell the cache of everything that the informers know, and from now on of every change."""
        if informers.disruption_budgets is not None:
            informers.disruption_budgets.subscribe(self._disruption_budgets.on_change)
        if informers.storage is not None:
            self._storage.attach(informers.storage)
        if informers.devices is not None:
            self.devices.attach(informers.devices)
        if informers.resource_quotas is not None:
            informers.resource_quotas.subscribe(self._resource_quotas.on_change)
        informers.priority_classes.subscribe(self._priority_classes.on_change)
        informers.queues.subscribe(self._queues.on_change)
        informers.nodes.subscribe(self._nodes.on_change)
        informers.pod_groups.subscribe(self._pod_groups.on_change)
        informers.pods.subscribe(self._pods.on_change)

    def close(self) -> None:
        """Pass over every change from now on: informers outlive the engine that owned the cache."""
        for each in (
            self._pods,
            self._nodes,
            self._pod_groups,
            self._queues,
            self._priority_classes,
            self._resource_quotas,
            self._disruption_budgets,
        ):
            each.closed = True
        self._storage.close()
        self.devices.close()

    def on_malformed(self, found: MalformedObject) -> None:
        """Say that an object can't even be read. A PodGroup stays in the model with that as its problem, a node as one
        that takes nothing: who forgot it would count the pods on it as lost.
        """
        resource = found.resource
        about = ObjectReference(resource.api_version, resource.kind, found.namespace, found.name, found.uid)
        self._warn(about, found.path_message)
        if resource == PODGROUPS:
            spec = malformed_pod_group_spec(found)
            self._pod_groups.tell(spec.key, spec)
        elif resource == NODES:
            self._nodes.tell(found.name, unreadable_node_spec(found.name))

    def on_malformed_deleted(self, found: MalformedObject) -> None:
        """Forget an object that could not even be read."""
        if found.resource == PODGROUPS:
            self._pod_groups.forget(malformed_pod_group_spec(found).key)
        elif found.resource == NODES:
            self._nodes.forget(found.name)

    def _translate_node(self, node: Node) -> NodeSpec:
        try:
            return node_spec(node)
        except TranslationError as error:
            self._complain(NODES, node, error)
            return unreadable_node_spec(node.metadata.name)

    def _translate_pod(self, pod: Pod) -> TaskSpec | None:
        return self._with_devices(self._task_spec(pod))

    def _translate_pod_again(self, pod: Pod, before: Pod, known: TaskSpec) -> TaskSpec | None:
        return self._with_devices(self._task_spec_again(pod, before, known))

    def _with_devices(self, spec: TaskSpec | None) -> TaskSpec | None:
        """The same; what devices there are is read from the first pod of ours on that claims some."""
        if spec is not None and spec.ours and spec.scheduling.devices is not None:
            self.devices.want()
        return spec

    def _translate_pod_group(self, group: PodGroup) -> PodGroupSpec:
        spec = pod_group_spec(group)
        if spec.problem:
            self._warn(reference(PODGROUPS, group.metadata), spec.problem)
        return spec

    def _translate_queue(self, queue: Queue) -> QueueSpec:
        spec = queue_spec(queue)
        if spec.problem:
            self._warn(reference(QUEUES, queue.metadata), spec.problem)
        return spec

    def _complain(self, resource: Resource, found: ApiObject, error: TranslationError) -> None:
        self._warn(reference(resource, found.metadata), str(error))

    def _warn(self, about: ObjectReference, problem: str) -> None:
        self._recorder.event(about, "Warning", f"Invalid{about.kind}", problem, "Scheduling")


def _controller(pod: Pod) -> str:
    """The UID of the pod's controller."""
    owner = controller_of(pod.metadata)
    return owner.uid if owner is not None else ""


_OURS: Final = frozenset(
    {"conditions", "running", "succeeded", "failed", "companion_nodes", "broken_since", "minimum_met", "wait"}
)
_others: Final = attrgetter(*(each.name for each in fields(PodGroupSpec) if each.name not in _OURS))


def pod_group_matters(old: PodGroupSpec, new: PodGroupSpec) -> bool:
    """Whether more has changed than what we ourselves write; the phase counts, for others write it too."""
    return bool(_others(old) != _others(new))
