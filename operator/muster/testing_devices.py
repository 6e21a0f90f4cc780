"""Builders for cases with devices: `gpus("n-0", 2)` are two of the node, `claim("c", 1)` asks for one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from muster.scheduler.constraints import DeviceUse, PodConstraints
from muster.scheduler.devices import (
    Device,
    DeviceAllocation,
    DeviceAsk,
    DeviceClassSpec,
    DeviceRequest,
    Reach,
    ResourceClaimSpec,
    SliceSpec,
)
from muster.scheduler.specs import Delegation, TaskSpec
from muster.testing import NAMESPACE, Cluster, pod

CLASS = "gpu.example.com"
DRIVER = "gpu.example.com"

Told = SliceSpec | DeviceClassSpec | ResourceClaimSpec


def gpus(node: str, count: int, *, model: str = "a100", reach: Reach | None = None) -> SliceSpec:
    """The slice of a node; its devices are `gpu-0`, … of the pool named after the node."""
    attributes = {(DRIVER, "model"): model}
    devices = (Device(DRIVER, node, f"gpu-{index}", attributes, reach=reach or Reach(node)) for index in range(count))
    return SliceSpec(node, DRIVER, node, devices=tuple(devices))


def ask(count: int | None = 1, *selectors: str, device_class: str = CLASS, admin: bool = False) -> DeviceAsk:
    """So many devices of the class."""
    return DeviceAsk(device_class, selectors, count, admin)


def claim(name: str, *asks: DeviceAsk | int, got: Iterable[str] = (), reach: Reach | None = None) -> ResourceClaimSpec:
    """A claim with a request for each of `asks`; with `got` (`node/gpu-0`) it has these devices already."""
    found = [each if isinstance(each, DeviceAsk) else ask(each) for each in asks or (1,)]
    requests = tuple(DeviceRequest(f"r{index}", (each,)) for index, each in enumerate(found))
    ids = tuple((DRIVER, *each.split("/")) for each in got)
    devices = tuple((driver, pool, name) for driver, pool, name in ids)
    allocation = DeviceAllocation(devices, reach or Reach(devices[0][1])) if devices else None
    return ResourceClaimSpec(NAMESPACE, name, requests, allocation)


def alternatives(name: str, *asks: DeviceAsk) -> ResourceClaimSpec:
    """A claim with one request that any of these would fulfil."""
    return ResourceClaimSpec(NAMESPACE, name, (DeviceRequest("r", asks),))


def user(name: str, group: str = "", *claims: str, delegated: bool = True, **options: object) -> TaskSpec:
    """A pod with these claims, held by our gate for the default scheduler; with a node it runs there."""
    use = DeviceUse(tuple(f"{NAMESPACE}/{each}" for each in claims), delegated=delegated)
    made = pod(name, group, scheduling=PodConstraints(devices=use), **options)  # type: ignore[arg-type]
    return replace(made, delegation=Delegation() if delegated else None)


def tell(cluster: Cluster, *told: Told) -> None:
    """Have the cluster know these, and that there are no others yet."""
    devices = cluster.cache.devices
    for each in (DeviceClassSpec(CLASS), *told):
        match each:
            case SliceSpec():
                devices.set_slice(each)
            case DeviceClassSpec():
                devices.set_class(each)
            case ResourceClaimSpec():
                devices.set_claim(each)
    devices.complete()
