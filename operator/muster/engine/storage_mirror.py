"""Storage and namespaces as the scheduler sees them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from muster.engine.reflection import Listener, Reflection
from muster.engine.storage_specs import claim_spec, csi_node_spec, storage_class_spec, volume_spec
from muster.kube.informer import Informer
from muster.kube.resource import (
    CSINODES,
    NAMESPACES,
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    STORAGECLASSES,
)
from muster.kube.storage_objects import CSINode, Namespace, PersistentVolume, PersistentVolumeClaim, StorageClass
from muster.scheduler.cache import SchedulerCache
from muster.scheduler.volumes import ClaimSpec, CsiNodeSpec, StorageClassSpec, VolumeSpec


@dataclass(frozen=True, slots=True)
class StorageInformers:
    """The watches of what pods with volumes, or with affinity to pods of other namespaces, are placed by."""

    claims: Informer[PersistentVolumeClaim]
    volumes: Informer[PersistentVolume]
    classes: Informer[StorageClass]
    csi_nodes: Informer[CSINode]
    namespaces: Informer[Namespace]

    def all(self) -> tuple[Informer[Any], ...]:
        """All of them."""
        return (self.namespaces, self.csi_nodes, self.classes, self.volumes, self.claims)


class StorageMirror:
    """Keeps the storage of `cache`, and its namespaces, equal to what the informers show."""

    def __init__(self, cache: SchedulerCache, listener: Listener) -> None:
        self._storage = storage = cache.storage
        self._claims: Reflection[PersistentVolumeClaim, ClaimSpec] = Reflection(
            PERSISTENTVOLUMECLAIMS, listener, claim_spec, storage.set_claim, storage.remove_claim
        )
        self._volumes: Reflection[PersistentVolume, VolumeSpec] = Reflection(
            PERSISTENTVOLUMES, listener, volume_spec, storage.set_volume, storage.remove_volume
        )
        self._classes: Reflection[StorageClass, StorageClassSpec] = Reflection(
            STORAGECLASSES, listener, storage_class_spec, storage.set_class, storage.remove_class
        )
        self._csi_nodes: Reflection[CSINode, CsiNodeSpec] = Reflection(
            CSINODES, listener, csi_node_spec, storage.set_csi_node, storage.remove_csi_node
        )
        self._namespaces: Reflection[Namespace, tuple[str, dict[str, str]]] = Reflection(
            NAMESPACES,
            listener,
            lambda each: (each.metadata.name, each.metadata.labels),
            lambda found: cache.set_namespace(*found),
            cache.remove_namespace,
        )

    def attach(self, informers: StorageInformers) -> None:
        """Tell the cache of everything that the informers know, and from now on of every change."""
        self._storage.known = True
        informers.namespaces.subscribe(self._namespaces.on_change)
        informers.csi_nodes.subscribe(self._csi_nodes.on_change)
        informers.classes.subscribe(self._classes.on_change)
        informers.volumes.subscribe(self._volumes.on_change)
        informers.claims.subscribe(self._claims.on_change)

    def close(self) -> None:
        """Pass over every change from now on."""
        for each in (self._claims, self._volumes, self._classes, self._csi_nodes, self._namespaces):
            each.closed = True
