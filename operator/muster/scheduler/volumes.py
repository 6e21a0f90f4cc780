"""What the scheduler is told of storage: claims, volumes, storage classes, and how many volumes a node takes.

All are frozen values; sizes are bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from muster.scheduler.constraints import SelectorTerm
from muster.scheduler.selectors import LabelSelector

NO_PROVISIONER = "kubernetes.io/no-provisioner"


@dataclass(frozen=True, slots=True)
class ClaimSpec:
    """A PersistentVolumeClaim. `volume` is the volume that it is bound to, `selected_node` where one is being made.

    `storage_class` None means absent: the default class; empty means a volume without class.
    """

    namespace: str
    name: str
    uid: str = ""
    volume: str = ""
    lost: bool = False
    leaving: bool = False
    storage_class: str | None = None
    size: int = 0
    access_modes: tuple[str, ...] = ()
    mode: str = "Filesystem"
    selector: LabelSelector | None = None
    selected_node: str = ""

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class VolumeSpec:
    """A PersistentVolume. `claim` is the claim that it is kept for, `required` its node affinity (None: everywhere).

    `claim_uid` is that claim's uid, empty where any claim of the name will do. `driver` and `handle` are those of CSI,
    empty for other volumes. `available` is false once it is released or failed.
    """

    name: str
    claim: str = ""
    claim_uid: str = ""
    storage_class: str = ""
    size: int = 0
    access_modes: tuple[str, ...] = ()
    mode: str = "Filesystem"
    labels: Mapping[str, str] = field(default_factory=dict)
    required: tuple[SelectorTerm, ...] | None = None
    driver: str = ""
    handle: str = ""
    available: bool = True

    def reaches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether it can be used on the node of that name and labels."""
        return self.required is None or any(term.matches(name, labels) for term in self.required)

    def is_free_for(self, claim: ClaimSpec) -> bool:
        """Whether it is kept for nobody else. A claim made again under its old name is somebody else."""
        return self.available and (not self.claim or (self.claim == claim.key and self.claim_uid in ("", claim.uid)))

    def serves(self, claim: ClaimSpec, storage_class: str) -> bool:
        """Whether it could be bound to a claim of this class that has no volume yet."""
        if not self.is_free_for(claim):
            return False
        return bool(self.claim) or (
            self.storage_class == storage_class
            and self.mode == claim.mode
            and self.size >= claim.size
            and set(claim.access_modes) <= set(self.access_modes)
            and (claim.selector is None or claim.selector.matches(self.labels))
        )


@dataclass(frozen=True, slots=True)
class StorageClassSpec:
    """A StorageClass. `late` classes bind a claim once a pod that uses it has a node (WaitForFirstConsumer).

    `topologies` are where volumes can be made, empty for everywhere.
    """

    name: str
    provisioner: str = ""
    late: bool = False
    topologies: tuple[SelectorTerm, ...] = ()
    default: bool = False
    creation: float = 0.0

    @property
    def makes_volumes(self) -> bool:
        """Whether volumes are made on demand."""
        return bool(self.provisioner) and self.provisioner != NO_PROVISIONER


@dataclass(frozen=True, slots=True)
class CsiNodeSpec:
    """How many volumes of each CSI driver a node takes; a driver that is not named has no limit."""

    name: str
    limits: Mapping[str, int] = field(default_factory=dict)
