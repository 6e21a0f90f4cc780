# ruff: noqa: RUF012 - msgspec copies an empty default for each object; ruff knows its structs only by a base in the file
"""Devices and claims to them (dynamic resource allocation) as they are read (see `muster.kube.objects`)."""

from __future__ import annotations

import msgspec

from muster.kube.object_base import ApiObject, Part
from muster.kube.pod_objects import NodeSelector


class CelSelector(Part, frozen=True):
    """An expression over `device`."""

    expression: str = ""


class DeviceSelector(Part, frozen=True):
    """What a device has to be like; today always an expression."""

    cel: CelSelector | None = None


class DeviceSubRequest(Part, frozen=True):
    """Some devices of a class: `count` of them, or (`allocation_mode: All`) all that match."""

    name: str = ""
    device_class_name: str = ""
    selectors: list[DeviceSelector] = []
    allocation_mode: str | None = None
    count: int | None = None
    admin_access: bool | None = None


class DeviceRequest(Part, frozen=True):
    """A part of a claim: exactly these devices, or those of the first alternative that can be had."""

    name: str = ""
    exactly: DeviceSubRequest | None = None
    first_available: list[DeviceSubRequest] = []


class DeviceClaim(Part, frozen=True):
    """The devices of a claim."""

    requests: list[DeviceRequest] = []


class ResourceClaimSpec(Part, frozen=True):
    """What a claim asks for."""

    devices: DeviceClaim = DeviceClaim()


class AllocatedDevice(Part, frozen=True):
    """A device that a claim has got. With `admin_access` it is nobody's, with a `share_id` others have parts of it."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    share_id: str | None = msgspec.field(name="shareID", default=None)


class AllocatedDevices(Part, frozen=True):
    """All devices that a claim has got."""

    results: list[AllocatedDevice] = []


class Allocation(Part, frozen=True):
    """What a claim has got, and the nodes where that can be used (None: all)."""

    devices: AllocatedDevices = AllocatedDevices()
    node_selector: NodeSelector | None = None


class ResourceClaimStatus(Part, frozen=True):
    """Where a claim stands; without an allocation it has nothing yet."""

    allocation: Allocation | None = None


class ResourceClaim(ApiObject, frozen=True):
    """A ResourceClaim."""

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class DeviceAttribute(Part, frozen=True):
    """A property of a device; exactly one of the four is set."""

    int_value: int | None = msgspec.field(name="int", default=None)
    bool_value: bool | None = msgspec.field(name="bool", default=None)
    string_value: str | None = msgspec.field(name="string", default=None)
    version_value: str | None = msgspec.field(name="version", default=None)


class DeviceCapacity(Part, frozen=True):
    """How much a device has of something."""

    value: str | int | float = 0


class Device(Part, frozen=True):
    """A device of a slice. Where it can be used is said here when the slice leaves it to each device."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    allow_multiple_allocations: bool | None = None


class ResourcePool(Part, frozen=True):
    """The pool of a slice: slices of an older generation count no more, and it takes all of them to know the pool."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 1


class ResourceSliceSpec(Part, frozen=True):
    """Devices that a driver offers, and where they can be used."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: list[Device] = []


class ResourceSlice(ApiObject, frozen=True):
    """A ResourceSlice."""

    spec: ResourceSliceSpec = ResourceSliceSpec()


class DeviceClassSpec(Part, frozen=True):
    """What all devices of a class are like."""

    selectors: list[DeviceSelector] = []


class DeviceClass(ApiObject, frozen=True):
    """A DeviceClass."""

    spec: DeviceClassSpec = DeviceClassSpec()
