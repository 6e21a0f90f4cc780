"""Devices, classes and claims, from the wire."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import msgspec
import pytest

from muster.engine.amounts import TranslationError
from muster.engine.device_specs import device_class_spec, resource_claim_spec, slice_spec
from muster.kube.device_objects import DeviceClass, ResourceClaim, ResourceSlice
from muster.scheduler.constraints import SelectorTerm
from muster.scheduler.devices import (
    Device,
    DeviceAllocation,
    DeviceAsk,
    DeviceClassSpec,
    DeviceRequest,
    Reach,
    ResourceClaimSpec,
    SliceSpec,
    Version,
)
from muster.scheduler.selectors import Operator, Requirement

META = {"name": "x", "namespace": "ns", "uid": "u"}
ZONE = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}
ON_N1 = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}
IN_ZONE = Reach(terms=(SelectorTerm((Requirement("zone", Operator.IN, ("a",)),)),))
NOWHERE = Reach(terms=())


def read(kind: type[Any], **fields: Any) -> Any:
    return msgspec.convert({"metadata": META, **fields}, kind)


def cel(expression: str) -> dict[str, Any]:
    return {"cel": {"expression": expression}}


def requests(*found: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"devices": {"requests": list(found)}}}


def allocated(*results: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"status": {"allocation": {"devices": {"results": list(results)}, **more}}}


CLAIMS: dict[str, tuple[dict[str, Any], ResourceClaimSpec]] = {
    "exactly two": (
        requests({"name": "r", "exactly": {"deviceClassName": "c", "count": 2, "selectors": [cel("e")]}}),
        ResourceClaimSpec("ns", "x", (DeviceRequest("r", (DeviceAsk("c", ("e",), 2),)),)),
    ),
    "one, all, and looking on": (
        requests(
            {"name": "a", "exactly": {"deviceClassName": "c"}},
            {"name": "b", "exactly": {"deviceClassName": "c", "allocationMode": "All"}},
            {"name": "d", "exactly": {"deviceClassName": "c", "allocationMode": "All", "adminAccess": True}},
        ),
        ResourceClaimSpec(
            "ns",
            "x",
            (
                DeviceRequest("a", (DeviceAsk("c"),)),
                DeviceRequest("b", (DeviceAsk("c", count=None),)),
                DeviceRequest("d", (DeviceAsk("c", count=None, admin=True),)),
            ),
        ),
    ),
    "the first that is available": (
        requests(
            {
                "name": "r",
                "firstAvailable": [
                    {"name": "large", "deviceClassName": "l"},
                    {"name": "small", "deviceClassName": "s", "allocationMode": "ExactCount", "count": 2},
                ],
            }
        ),
        ResourceClaimSpec("ns", "x", (DeviceRequest("r", (DeviceAsk("l"), DeviceAsk("s", count=2))),)),
    ),
    "a selector of another kind": (
        requests({"name": "r", "exactly": {"deviceClassName": "c", "selectors": [{"future": {}}]}}),
        ResourceClaimSpec("ns", "x", (DeviceRequest("r", (DeviceAsk("c"),)),)),
    ),
    "allocated on a node": (
        allocated({"driver": "d", "pool": "p", "device": "g"}, nodeSelector=ON_N1),
        ResourceClaimSpec("ns", "x", allocation=DeviceAllocation((("d", "p", "g"),), Reach("n1"))),
    ),
    "allocated in a zone, but not to itself": (
        allocated(
            {"driver": "d", "pool": "p", "device": "g", "adminAccess": True},
            {"driver": "d", "pool": "p", "device": "h", "shareID": "s"},
            nodeSelector=ZONE,
        ),
        ResourceClaimSpec("ns", "x", allocation=DeviceAllocation((), IN_ZONE)),
    ),
    "allocated for all nodes": (allocated(), ResourceClaimSpec("ns", "x", allocation=DeviceAllocation())),
    "going": (
        {"metadata": {**META, "deletionTimestamp": "2026-01-01T00:00:00Z"}},
        ResourceClaimSpec("ns", "x", leaving=True),
    ),
}


@pytest.mark.parametrize(("fields", "spec"), CLAIMS.values(), ids=CLAIMS.keys())
def test_a_claim_is_translated(fields: dict[str, Any], spec: ResourceClaimSpec) -> None:
    assert resource_claim_spec(read(ResourceClaim, **fields)) == spec


PLACES: dict[str, tuple[dict[str, Any], dict[str, Any], Reach]] = {
    "a node": ({"nodeName": "n1"}, {}, Reach("n1")),
    "all nodes": ({"allNodes": True}, {}, Reach()),
    "a zone": ({"nodeSelector": ZONE}, {}, IN_ZONE),
    "the device's node": ({"perDeviceNodeSelection": True}, {"nodeName": "n1"}, Reach("n1")),
    "the device's nodes": ({"perDeviceNodeSelection": True}, {"nodeSelector": ZONE}, IN_ZONE),
    "all nodes for the device": ({"perDeviceNodeSelection": True}, {"allNodes": True}, Reach()),
    "something new": ({}, {}, NOWHERE),
}


@pytest.mark.parametrize(("of_slice", "of_device", "reach"), PLACES.values(), ids=PLACES.keys())
def test_where_a_device_can_be_used_the_slice_says_or_the_device_itself(
    of_slice: dict[str, Any], of_device: dict[str, Any], reach: Reach
) -> None:
    pool = {"name": "p", "generation": 3, "resourceSliceCount": 1}
    spec = {"driver": "d", "pool": pool, "devices": [{"name": "g", **of_device}], **of_slice}
    found = slice_spec(read(ResourceSlice, spec=spec))
    assert found == SliceSpec("x", "d", "p", 3, (Device("d", "p", "g", reach=reach),))


def test_attributes_and_capacity_belong_to_the_driver_s_domain_unless_they_name_one() -> None:
    device = {
        "name": "g",
        "attributes": {
            "a": {"string": "s"},
            "b.c/i": {"int": 0},
            "t": {"bool": False},
            "v": {"version": "1.0.0"},
        },
        "capacity": {"memory": {"value": "1Gi"}, "b.c/share": {"value": "500m"}},
        "allowMultipleAllocations": True,
    }
    (found,) = slice_spec(read(ResourceSlice, spec={"driver": "d", "allNodes": True, "devices": [device]})).devices
    assert found.attributes == {("d", "a"): "s", ("b.c", "i"): 0, ("d", "t"): False, ("d", "v"): Version("1.0.0")}
    assert found.attributes["d", "t"] is False
    assert found.capacity == {("d", "memory"): Fraction(1024**3), ("b.c", "share"): Fraction(1, 2)}
    assert found.divisible


def test_a_capacity_that_is_no_quantity_is_refused_with_its_path() -> None:
    devices = [{"name": "g"}, {"name": "h", "capacity": {"memory": {"value": "much"}}}]
    with pytest.raises(TranslationError) as error:
        slice_spec(read(ResourceSlice, spec={"driver": "d", "devices": devices}))
    assert error.value.path == "spec.devices[1].capacity[memory]"


def test_a_class_is_translated() -> None:
    found = read(DeviceClass, spec={"selectors": [cel("a"), cel("b")]})
    assert device_class_spec(found) == DeviceClassSpec("x", ("a", "b"))
