"""Devices and the claims to them as the scheduler sees them.

They are watched from the moment on that a pod of ours claims any: most clusters have none, and some API servers do not
even serve them. Until they have been read such pods wait.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, Final

from muster.engine.device_selectors import DeviceSelectors
from muster.engine.device_specs import device_class_spec, resource_claim_spec, slice_spec
from muster.engine.reflection import Listener, Reflection
from muster.kube.device_objects import DeviceClass, ResourceClaim, ResourceSlice
from muster.kube.informer import Informer
from muster.kube.resource import DEVICECLASSES, RESOURCECLAIMS, RESOURCESLICES
from muster.scheduler.cache import SchedulerCache
from muster.scheduler.devices import DeviceClassSpec, ResourceClaimSpec, SliceSpec

_PATIENCE: Final = 3600.0


@dataclass(frozen=True, slots=True)
class DeviceInformers:
    """The watches of what pods with resource claims are placed by, which run once they are wanted."""

    claims: Informer[ResourceClaim]
    slices: Informer[ResourceSlice]
    classes: Informer[DeviceClass]
    wanted: asyncio.Event = field(default_factory=asyncio.Event)

    def all(self) -> tuple[Informer[Any], ...]:
        """All of them."""
        return (self.classes, self.slices, self.claims)

    async def run(self) -> None:
        """Watch until cancelled, from when they are wanted."""
        await self.wanted.wait()
        async with asyncio.TaskGroup() as group:
            for informer in self.all():
                group.create_task(informer.run(), name=f"informer of {informer.resource.plural}")

    async def wait_synced(self) -> None:
        """Return once all has been read, however long it takes until anything is."""
        for informer in self.all():
            while not informer.has_synced:
                try:
                    await informer.wait_synced(_PATIENCE)
                except TimeoutError:
                    continue


class DeviceMirror:
    """Keeps the devices of `cache` equal to what the informers show."""

    def __init__(self, cache: SchedulerCache, listener: Listener) -> None:
        self._listener = listener
        self._devices = devices = cache.devices
        devices.selects = DeviceSelectors()
        self._informers: DeviceInformers | None = None
        self._claims: Reflection[ResourceClaim, ResourceClaimSpec] = Reflection(
            RESOURCECLAIMS, listener, resource_claim_spec, devices.set_claim, devices.remove_claim
        )
        self._slices: Reflection[ResourceSlice, SliceSpec] = Reflection(
            RESOURCESLICES, listener, slice_spec, devices.set_slice, devices.remove_slice
        )
        self._classes: Reflection[DeviceClass, DeviceClassSpec] = Reflection(
            DEVICECLASSES, listener, device_class_spec, devices.set_class, devices.remove_class
        )

    def attach(self, informers: DeviceInformers) -> None:
        """Tell the cache of everything that the informers know, and from now on of every change."""
        self._informers = informers
        self._devices.watched = True
        informers.classes.subscribe(self._classes.on_change)
        informers.slices.subscribe(self._slices.on_change)
        informers.claims.subscribe(self._claims.on_change)

    def want(self) -> None:
        """A pod claims devices."""
        if self._informers is not None:
            self._informers.wanted.set()

    async def run(self) -> None:
        """Let pods with claims be placed once all devices are known."""
        if self._informers is not None:
            await self._informers.wait_synced()
            self._devices.complete()
            self._listener.wake()

    def close(self) -> None:
        """Pass over every change from now on."""
        for each in (self._claims, self._slices, self._classes):
            each.closed = True
