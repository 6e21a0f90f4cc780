"""What the API server would have done to the objects before a scheduler sees them.

It refuses what no such object can be (quantities that are none, times that are none, a wish with a weight of 0) and
fills in defaults: a pod's priority from its PriorityClass, a node's allocatable from its capacity. Requests from limits
and the phase Pending are the decoders' business already.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from muster.engine import wire_keys
from muster.engine.amounts import TranslationError
from muster.engine.pod_validation import check_placement
from muster.engine.times import unix_seconds
from muster.kube.objects import ApiObject, Node, ObjectMeta, Pod, PodGroup, PriorityClass, Quantities, Queue
from muster.quantities import QuantityError, parse_quantity
from muster.scheduler.plugins.arguments import duration
from muster.simulator.input_error import InputError, Place
from muster.simulator.manifests import Found

BUILT_IN: Final = (
    PriorityClass(metadata=ObjectMeta(name="system-cluster-critical", uid="system-cluster-critical"), value=2000000000),
    PriorityClass(metadata=ObjectMeta(name="system-node-critical", uid="system-node-critical"), value=2000001000),
)
"""The PriorityClasses that every cluster has."""


def with_built_in(classes: Iterable[PriorityClass]) -> dict[str, PriorityClass]:
    """All PriorityClasses by name."""
    return {each.metadata.name: each for each in (*BUILT_IN, *classes)}


def check_times(found: Found[ApiObject]) -> None:
    """Raise InputError for a time that is none."""
    meta = found.object.metadata
    for name, text in (("creationTimestamp", meta.creation_timestamp), ("deletionTimestamp", meta.deletion_timestamp)):
        try:
            unix_seconds(text)
        except ValueError as error:
            raise InputError(found.place, f"metadata.{name}", f"{text!r} is no RFC 3339 time") from error


def admit_pod(found: Found[Pod], classes: Mapping[str, PriorityClass]) -> Pod:
    """The pod with its priority. Raises InputError for a run time, start time or wish for a place that is none."""
    pod = found.object
    if not found.place.observed:
        _check_placement(found)
    runtime = pod.metadata.annotations.get(wire_keys.EXPECTED_RUNTIME, "0")
    try:
        duration(runtime)
    except ValueError as error:
        raise InputError(found.place, f"metadata.annotations[{wire_keys.EXPECTED_RUNTIME}]", str(error)) from error
    try:
        unix_seconds(pod.status.start_time)
    except ValueError as error:
        raise InputError(found.place, "status.startTime", f"{pod.status.start_time!r} is no RFC 3339 time") from error
    return _with_priority(pod, classes)


def _check_placement(found: Found[Pod]) -> None:
    try:
        check_placement(found.object.spec, "spec")
    except TranslationError as error:
        raise InputError(found.place, error.path, error.message) from error


def _with_priority(pod: Pod, classes: Mapping[str, PriorityClass]) -> Pod:
    spec = pod.spec
    if spec.priority is not None:
        return pod
    chosen = classes.get(spec.priority_class_name) if spec.priority_class_name else global_default(classes)
    if chosen is None:
        return msgspec.structs.replace(pod, spec=msgspec.structs.replace(spec, priority=0))
    admitted = msgspec.structs.replace(
        spec,
        priority=chosen.value,
        priority_class_name=chosen.metadata.name,
        preemption_policy=spec.preemption_policy or chosen.preemption_policy,
    )
    return msgspec.structs.replace(pod, spec=admitted)


def global_default(classes: Mapping[str, PriorityClass]) -> PriorityClass | None:
    """The class of pods that name none; of several the lowest holds."""
    defaults = [each for each in classes.values() if each.global_default]
    return min(defaults, key=lambda each: (each.value, each.metadata.name), default=None)


def admit_node(node: Node) -> Node:
    """The node, offering all that it has when it does not say what it offers."""
    status = node.status
    if status.allocatable or not status.capacity:
        return node
    return msgspec.structs.replace(node, status=msgspec.structs.replace(status, allocatable=status.capacity))


def check_queue(found: Found[Queue]) -> None:
    """Raise InputError for a quantity that is none."""
    spec = found.object.spec
    guarantee = spec.guarantee.resource if spec.guarantee is not None else None
    for path, quantities in (
        ("spec.capability", spec.capability),
        ("spec.deserved", spec.deserved),
        ("spec.guarantee.resource", guarantee),
    ):
        _check_quantities(found.place, path, quantities)


def check_pod_group(found: Found[PodGroup]) -> None:
    """Raise InputError for a quantity that is none."""
    _check_quantities(found.place, "spec.minResources", found.object.spec.min_resources)


def _check_quantities(place: Place, path: str, quantities: Quantities | None) -> None:
    for name, quantity in (quantities or {}).items():
        try:
            parse_quantity(quantity)
        except QuantityError as error:
            raise InputError(place, f"{path}[{name}]", str(error)) from error
