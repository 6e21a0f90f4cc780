"""The cluster's storage, as pods ask for it.

A claim is bound, or late (its volume is chosen or made once its pod has a node), or not ready: then no node helps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from muster.scheduler.node import NodeInfo
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

    # --- changes ---

    def set_claim(self, spec: ClaimSpec) -> None:
        """A PersistentVolumeClaim was added or changed."""
        self._put(self.claims, spec.key, spec)

    def remove_claim(self, key: str) -> None:
        """A PersistentVolumeClaim is gone."""
        self._drop(self.claims, key)

    def set_volume(self, spec: VolumeSpec) -> None:
        """A PersistentVolume was added or changed."""
        self._put(self.volumes, spec.name, spec)

    def remove_volume(self, name: str) -> None:
        """A PersistentVolume is gone."""
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
        return "pod has unbound immediate PersistentVolumeClaims"

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

        Volumes that pods on the node are about to get are left to them. The smallest that will do is taken.
        """
        late = sorted(key for key in keys if self.is_late(key))
        before = sorted({key for task in node.tasks.values() for key in task.shape.scheduling.claims} - set(late))
        taken: set[str] = set()
        for key in before:
            if self.is_late(key):
                chosen = self._choose(self.claims[key], node, taken)
                taken.update([chosen] if chosen else [])
        volumes: dict[str, str] = {}
        for key in late:
            chosen = self._choose(self.claims[key], node, taken)
            if chosen is None:
                return None
            volumes[key] = chosen
            taken.add(chosen)
        return volumes

    def _choose(self, claim: ClaimSpec, node: NodeInfo, taken: set[str]) -> str | None:
        found = self.class_of(claim)
        if found is None or (claim.selected_node and claim.selected_node != node.name):
            return None
        possible = [
            (volume.claim != claim.key, volume.size, volume.name)
            for volume in self.volumes.values()
            if volume.name not in taken and volume.serves(claim, found.name) and volume.reaches(node.name, node.labels)
        ]
        if possible:
            return min(possible)[2]
        reached = not found.topologies or any(term.matches(node.name, node.labels) for term in found.topologies)
        return "" if found.makes_volumes and reached and claim.selector is None else None

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
