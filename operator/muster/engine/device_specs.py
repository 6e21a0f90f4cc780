"""Devices, their classes, and claims to them to the scheduler's values. Raises TranslationError."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from muster.engine.amounts import TranslationError
from muster.engine.pod_constraints import selector_term
from muster.kube import device_objects as objects
from muster.kube.pod_objects import NodeSelector
from muster.quantities import QuantityError, parse_quantity
from muster.scheduler.constraints import NODE_NAME_FIELD
from muster.scheduler.devices import (
    AttributeValue,
    Device,
    DeviceAllocation,
    DeviceAsk,
    DeviceClassSpec,
    DeviceRequest,
    QualifiedName,
    Reach,
    ResourceClaimSpec,
    SliceSpec,
    Version,
)
from muster.scheduler.selectors import Operator


def resource_claim_spec(claim: objects.ResourceClaim) -> ResourceClaimSpec:
    """Translate a ResourceClaim."""
    found = claim.status.allocation
    return ResourceClaimSpec(
        namespace=claim.metadata.namespace or "",
        name=claim.metadata.name,
        requests=tuple(_request(each) for each in claim.spec.devices.requests),
        allocation=_allocation(found) if found is not None else None,
        leaving=claim.metadata.deletion_timestamp is not None,
    )


def _request(request: objects.DeviceRequest) -> DeviceRequest:
    asks = [request.exactly] if request.exactly is not None else request.first_available
    return DeviceRequest(request.name, tuple(_ask(each) for each in asks))


def _ask(found: objects.DeviceSubRequest) -> DeviceAsk:
    every = found.allocation_mode == "All"
    return DeviceAsk(
        device_class=found.device_class_name,
        selectors=_expressions(found.selectors),
        count=None if every else (found.count or 1),
        admin=bool(found.admin_access),
    )


def _expressions(selectors: Iterable[objects.DeviceSelector]) -> tuple[str, ...]:
    """The CEL expressions; a selector of a kind that is not known yet is left to kube-scheduler."""
    return tuple(each.cel.expression for each in selectors if each.cel is not None)


def _allocation(found: objects.Allocation) -> DeviceAllocation:
    results = found.devices.results
    own = [each for each in results if not each.admin_access and each.share_id is None]
    reach = _reach(None, found.node_selector, "status.allocation.nodeSelector")
    return DeviceAllocation(tuple((each.driver, each.pool, each.device) for each in own), reach)


def _reach(node: str | None, selector: NodeSelector | None, path: str) -> Reach:
    """Where something can be used; the name of one node is told apart from other terms."""
    if node:
        return Reach(node)
    if selector is None:
        return Reach()
    found = selector.node_selector_terms
    terms = tuple(selector_term(each, f"{path}.nodeSelectorTerms[{index}]") for index, each in enumerate(found))
    if len(terms) == 1 and not terms[0].labels and len(terms[0].fields) == 1:
        (only,) = terms[0].fields
        if only.key == NODE_NAME_FIELD and only.operator is Operator.IN and len(only.values) == 1:
            return Reach(only.values[0])
    return Reach(terms=terms)


def slice_spec(found: objects.ResourceSlice) -> SliceSpec:
    """Translate a ResourceSlice."""
    spec = found.spec
    common = None if spec.per_device_node_selection else _place(spec, "spec.nodeSelector")
    return SliceSpec(
        name=found.metadata.name,
        driver=spec.driver,
        pool=spec.pool.name,
        generation=spec.pool.generation,
        devices=tuple(_device(spec, each, common, f"spec.devices[{index}]") for index, each in enumerate(spec.devices)),
    )


def _device(spec: objects.ResourceSliceSpec, found: objects.Device, common: Reach | None, path: str) -> Device:
    own = common if common is not None else _place(found, f"{path}.nodeSelector")
    return Device(
        driver=spec.driver,
        pool=spec.pool.name,
        name=found.name,
        attributes={_qualified(name, spec.driver): _value(each) for name, each in found.attributes.items()},
        capacity={
            _qualified(name, spec.driver): _amount(each, f"{path}.capacity[{name}]")
            for name, each in found.capacity.items()
        },
        reach=own,
        divisible=bool(found.allow_multiple_allocations),
    )


def _place(found: objects.ResourceSliceSpec | objects.Device, path: str) -> Reach:
    """Where a device can be used; one that says nothing that is understood can be used nowhere."""
    if found.node_name or found.node_selector is not None or found.all_nodes:
        return _reach(found.node_name, found.node_selector, path)
    return Reach(terms=())


def _qualified(name: str, driver: str) -> QualifiedName:
    """The name's domain is the driver where it is not written."""
    domain, slash, rest = name.partition("/")
    return (domain, rest) if slash else (driver, name)


def _value(found: objects.DeviceAttribute) -> AttributeValue:
    if found.version_value is not None:
        return Version(found.version_value)
    if found.bool_value is not None:
        return found.bool_value
    return found.int_value if found.int_value is not None else found.string_value or ""


def _amount(found: objects.DeviceCapacity, path: str) -> Fraction:
    try:
        return parse_quantity(found.value)
    except QuantityError as error:
        raise TranslationError(path, str(error)) from error


def device_class_spec(found: objects.DeviceClass) -> DeviceClassSpec:
    """Translate a DeviceClass."""
    return DeviceClassSpec(found.metadata.name, _expressions(found.spec.selectors))
