# ruff: noqa: RUF012 - msgspec copies an empty default for each object; ruff knows its structs only by a base in the file
"""Storage as it is read (see `muster.kube.objects`), and namespaces."""

from __future__ import annotations

from muster.kube.object_base import ApiObject, Part, Quantities
from muster.kube.pod_objects import LabelSelector, NodeSelector


class ResourcesOfClaim(Part, frozen=True):
    """How much a claim asks for."""

    requests: Quantities | None = None


class PersistentVolumeClaimSpec(Part, frozen=True):
    """What a claim asks for. An absent class is the default one, an empty one is none."""

    volume_name: str | None = None
    storage_class_name: str | None = None
    access_modes: list[str] = []
    volume_mode: str | None = None
    selector: LabelSelector | None = None
    resources: ResourcesOfClaim = ResourcesOfClaim()


class PersistentVolumeClaimStatus(Part, frozen=True):
    """Where a claim stands: Pending, Bound, Lost."""

    phase: str | None = None


class PersistentVolumeClaim(ApiObject, frozen=True):
    """A PersistentVolumeClaim."""

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class ClaimReference(Part, frozen=True):
    """The claim that a volume is kept for."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class CsiSource(Part, frozen=True):
    """The driver of a volume, and its name for it."""

    driver: str = ""
    volume_handle: str = ""


class VolumeNodeAffinity(Part, frozen=True):
    """The nodes on which a volume can be used."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(Part, frozen=True):
    """What a volume is."""

    capacity: Quantities | None = None
    access_modes: list[str] = []
    volume_mode: str | None = None
    storage_class_name: str | None = None
    claim_ref: ClaimReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CsiSource | None = None


class PersistentVolumeStatus(Part, frozen=True):
    """Where a volume stands: Available, Bound, Released, Failed."""

    phase: str | None = None


class PersistentVolume(ApiObject, frozen=True):
    """A PersistentVolume."""

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class TopologyRequirement(Part, frozen=True):
    """A label of nodes and the values that will do."""

    key: str
    values: list[str] = []


class TopologyTerm(Part, frozen=True):
    """Requirements that must all hold."""

    match_label_expressions: list[TopologyRequirement] = []


class StorageClass(ApiObject, frozen=True):
    """A StorageClass."""

    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologyTerm] = []


class DriverLimit(Part, frozen=True):
    """How many volumes of a driver a node takes."""

    count: int | None = None


class CsiNodeDriver(Part, frozen=True):
    """A CSI driver on a node."""

    name: str
    allocatable: DriverLimit | None = None


class CsiNodeSpec(Part, frozen=True):
    """The drivers on a node."""

    drivers: list[CsiNodeDriver] | None = None


class CSINode(ApiObject, frozen=True):
    """A CSINode: what the drivers on the node of its name say."""

    spec: CsiNodeSpec = CsiNodeSpec()


class Namespace(ApiObject, frozen=True):
    """A Namespace, of which the labels are read."""
