"""The cluster's storage, as pods ask for it.

A claim is bound, or late (its volume is chosen or made once its pod has a node), or not ready: then no node helps.
A volume is chosen for one claim only, wherever the pods are (`VolumePromises`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TypeVar

from muster.scheduler.node import NodeInfo
from muster.scheduler.volume_promises import VolumePromises
from muster.scheduler.volumes import ClaimSpec, CsiNodeSpec, StorageClassSpec, VolumeSpec

T = TypeVar("T")


class Storage:
    """Claims (by `namespace/name`), volumes, classes and the limits of nodes, by name.

    `changed` is called whenever one of them is another one than before. Until somebody tells of storage (`known`), what
    pods say of claims is passed over: then nobody looks after them.
    """

    def __init__(self, changed: Callable[[], None] | None = None) -> None:
        self._changed = changed
        self.known = False
        self.claims: dict[str, ClaimSpec] = {}
        self.volumes: dict[str, VolumeSpec] = {}
        self.classes: dict[str, StorageClassSpec] = {}
        self.csi_nodes: dict[str, CsiNodeSpec] = {}
        self.promises = VolumePromises()
        self._owners: dict[str, str] = {}
        """Volume to the claim that says it is bound to it; the volume itself may not show that yet."""

    # --- changes ---

    def set_claim(self, spec: ClaimSpec) -> None:
        """A PersistentVolumeClaim was added or changed."""
        self._disown(spec.key)
        if spec.volume:
            self._owners[spec.volume] = spec.key
            self.promises.drop(spec.key)
        self._put(self.claims, spec.key, spec)

    def remove_claim(self, key: str) -> None:
        """A PersistentVolumeClaim is gone."""
        self._disown(key)
        self.promises.drop(key)
        self._drop(self.claims, key)

    def _disown(self, key: str) -> None:
        before = self.claims.get(key)
        if before is not None and self._owners.get(before.volume) == key:
            del self._owners[before.volume]

    def set_volume(self, spec: VolumeSpec) -> None:
        """A PersistentVolume was added or changed."""
        claim = self.claims.get(self.promises.claimant(spec.name) or "")
        if claim is not None and not spec.is_free_for(claim):
            self.promises.drop(claim.key)
        self._put(self.volumes, spec.name, spec)

    def remove_volume(self, name: str) -> None:
        """A PersistentVolume is gone."""
        self.promises.drop_volume(name)
        self._drop(self.volumes, name)

    def set_class(self, spec: StorageClassSpec) -> None:
        """A StorageClass was added or changed."""
        self._put(self.classes, spec.name, spec)

    def remove_class(self, name: str) -> None:
        """A StorageClass is gone."""
        self._drop(self.classes, name)

    def set_csi_node(self, spec: CsiNodeSpec) -> None:
        """How many volumes a node takes was said for the first time, or anew."""
        self._put(self.csi_nodes, spec.name, spec)

    def remove_csi_node(self, name: str) -> None:
        """Nothing is known any more of how many volumes the node takes."""
        self._drop(self.csi_nodes, name)

    def _put(self, shelf: dict[str, T], key: str, spec: T) -> None:
        self.known = True
        if shelf.get(key) != spec:
            shelf[key] = spec
            self._tell()

    def _drop(self, shelf: dict[str, T], key: str) -> None:
        if shelf.pop(key, None) is not None:
            self._tell()

    def _tell(self) -> None:
        if self._changed is not None:
            self._changed()

    # --- claims ---

    def hurdle(self, key: str) -> str | None:
        """Why a pod with this claim can go nowhere yet, in kube-scheduler's words; None when it can."""
        claim = self.claims.get(key)
        if not self.known:
            return None
        if claim is None:
            return f'persistentvolumeclaim "{key.partition("/")[2]}" not found'
        if claim.leaving:
            return f'persistentvolumeclaim "{claim.name}" is being deleted'
        if claim.lost:
            return f'persistentvolumeclaim "{claim.name}" bound to non-existent persistentvolume "{claim.volume}"'
        if claim.volume:
            known = claim.volume in self.volumes
            return None if known else f'persistentvolume "{claim.volume}" not found'
        found = self.class_of(claim)
        if found is not None and found.late:
            return None
        return f'pod has unbound immediate PersistentVolumeClaims: "{claim.name}"'

    def is_late(self, key: str) -> bool:
        """Whether the claim's volume is still to be chosen by the node of its pod."""
        claim = self.claims.get(key)
        return claim is not None and not claim.volume

    def class_of(self, claim: ClaimSpec) -> StorageClassSpec | None:
        """The claim's class, or the default one (of several the newest) where it names none."""
        if claim.storage_class is not None:
            return self.classes.get(claim.storage_class)
        defaults = [each for each in self.classes.values() if each.default]
        return min(defaults, key=lambda each: (-each.creation, each.name), default=None)

    def bound_volumes(self, keys: tuple[str, ...]) -> list[VolumeSpec]:
        """The volumes of those claims that have one."""
        claims = [claim for key in keys if (claim := self.claims.get(key)) is not None]
        return [volume for each in claims if (volume := self.volumes.get(each.volume)) is not None]

    # --- nodes ---

    def choose_volumes(self, keys: tuple[str, ...], node: NodeInfo) -> dict[str, str] | None:
        """A volume for each late claim on the node: its name, or empty where one will be made; None when one has none.

        Volumes that other claims have been promised are left to them. The smallest that will do is taken.
        """
        volumes: dict[str, str] = {}
        for key in sorted(key for key in keys if self.is_late(key)):
            chosen = self._choose(self.claims[key], node, volumes.values())
            if chosen is None:
                return None
            volumes[key] = chosen
        return volumes

    def promise(self, uid: str, keys: tuple[str, ...], node: NodeInfo) -> None:
        """The pod has a place on the node: its late claims get their volumes there, and nobody else does."""
        for key in sorted(key for key in keys if self.is_late(key)):
            promise = self.promises.of(key)
            if promise is not None and promise.nodes.get(uid) == node.name:
                continue
            self.promises.leave(key, uid)
            volume = self._choose(self.claims[key], node)
            if volume:
                promise = self.promises.of(key)
                if promise is None or promise.volume != volume:
                    promise = self.promises.make(key, volume)
                promise.nodes[uid] = node.name

    def break_promise(self, uid: str, keys: tuple[str, ...]) -> None:
        """The pod has no place any more."""
        for key in keys:
            self.promises.leave(key, uid)

    def ask(self, keys: tuple[str, ...], node: NodeInfo) -> tuple[tuple[str, str], ...]:
        """The late claims of a pod that is about to be bound to the node, with the volumes that they are to get."""
        chosen = self.choose_volumes(keys, node) or {}
        for key in keys:
            self.promises.ask(key)
        return tuple((key, chosen.get(key, "")) for key in keys if self.is_late(key))

    def count_pod(self, keys: tuple[str, ...], sign: int) -> None:
        """A pod with these claims came (1) or went (-1), with or without a place."""
        if keys and self.promises.count(keys, sign):
            self._tell()

    def _choose(self, claim: ClaimSpec, node: NodeInfo, taken: Collection[str] = ()) -> str | None:
        found = self.class_of(claim)
        if found is None or (claim.selected_node and claim.selected_node != node.name):
            return None
        promise = self.promises.of(claim.key)
        if promise is not None and self._reaches(promise.volume, node):
            return promise.volume
        if promise is not None and promise.nodes:
            return None  # another pod uses the claim, and its volume is elsewhere
        possible = [
            (volume.claim != claim.key, volume.size, volume.name)
            for volume in self.volumes.values()
            if volume.name not in taken
            and volume.serves(claim, found.name)
            and volume.reaches(node.name, node.labels)
            and self._is_unclaimed(volume.name, claim.key)
        ]
        if possible:
            return min(possible)[2]
        reached = not found.topologies or any(term.matches(node.name, node.labels) for term in found.topologies)
        return "" if found.makes_volumes and reached and claim.selector is None else None

    def _reaches(self, name: str, node: NodeInfo) -> bool:
        volume = self.volumes.get(name)
        return volume is not None and volume.reaches(node.name, node.labels)

    def _is_unclaimed(self, volume: str, key: str) -> bool:
        return self.promises.claimant(volume) in (None, key) and self._owners.get(volume, key) == key

    def attachments(self, keys: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        """(driver, what is attached) for each claim of a CSI driver."""
        for key in keys:
            claim = self.claims.get(key)
            if claim is None:
                continue
            volume = self.volumes.get(claim.volume)
            found = self.class_of(claim) if volume is None else None
            if volume is not None and volume.driver:
                yield volume.driver, volume.handle or volume.name
            elif found is not None and found.makes_volumes:
                yield found.provisioner, key
