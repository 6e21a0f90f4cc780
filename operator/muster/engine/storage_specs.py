"""Claims, volumes, storage classes and CSINodes to the scheduler's values. Raises TranslationError."""

from __future__ import annotations

from muster.engine.amounts import amounts
from muster.engine.pod_company import label_selector
from muster.engine.pod_constraints import selector_term
from muster.engine.times import unix_seconds
from muster.kube import storage_objects as objects
from muster.kube.pod_objects import NodeSelectorTerm
from muster.scheduler.constraints import SelectorTerm
from muster.scheduler.selectors import Operator, Requirement
from muster.scheduler.volumes import ClaimSpec, CsiNodeSpec, StorageClassSpec, VolumeSpec

SELECTED_NODE = "volume.kubernetes.io/selected-node"
_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_CLASS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
ANNOTATIONS = (SELECTED_NODE, _OLD_CLASS, *_DEFAULT_CLASS)
"""All that are read here."""


def claim_spec(claim: objects.PersistentVolumeClaim) -> ClaimSpec:
    """Translate a PersistentVolumeClaim."""
    spec, notes = claim.spec, claim.metadata.annotations
    size = amounts(spec.resources.requests, "spec.resources.requests").get("storage", 0)
    return ClaimSpec(
        namespace=claim.metadata.namespace or "",
        name=claim.metadata.name,
        uid=claim.metadata.uid,
        volume=spec.volume_name or "",
        lost=claim.status.phase == "Lost",
        leaving=claim.metadata.deletion_timestamp is not None,
        storage_class=notes.get(_OLD_CLASS, spec.storage_class_name),
        size=size,
        access_modes=tuple(spec.access_modes),
        mode=spec.volume_mode or "Filesystem",
        selector=label_selector(spec.selector, "spec.selector", ()),
        selected_node=notes.get(SELECTED_NODE, ""),
    )


def volume_spec(volume: objects.PersistentVolume) -> VolumeSpec:
    """Translate a PersistentVolume."""
    spec, kept_for = volume.spec, volume.spec.claim_ref
    affinity = spec.node_affinity.required if spec.node_affinity is not None else None
    return VolumeSpec(
        name=volume.metadata.name,
        claim=f"{kept_for.namespace}/{kept_for.name}" if kept_for is not None else "",
        claim_uid=kept_for.uid if kept_for is not None else "",
        storage_class=volume.metadata.annotations.get(_OLD_CLASS, spec.storage_class_name or ""),
        size=amounts(spec.capacity, "spec.capacity", round_down=True).get("storage", 0),
        access_modes=tuple(spec.access_modes),
        mode=spec.volume_mode or "Filesystem",
        labels=volume.metadata.labels,
        required=_terms(affinity.node_selector_terms) if affinity is not None else None,
        driver=spec.csi.driver if spec.csi is not None else "",
        handle=spec.csi.volume_handle if spec.csi is not None else "",
        available=volume.status.phase not in ("Released", "Failed") and volume.metadata.deletion_timestamp is None,
    )


def _terms(found: list[NodeSelectorTerm]) -> tuple[SelectorTerm, ...]:
    path = "spec.nodeAffinity.required.nodeSelectorTerms"
    return tuple(selector_term(each, f"{path}[{index}]") for index, each in enumerate(found))


def storage_class_spec(found: objects.StorageClass) -> StorageClassSpec:
    """Translate a StorageClass."""
    return StorageClassSpec(
        name=found.metadata.name,
        provisioner=found.provisioner,
        late=found.volume_binding_mode == "WaitForFirstConsumer",
        topologies=tuple(_topology(term) for term in found.allowed_topologies),
        default=any(found.metadata.annotations.get(key) == "true" for key in _DEFAULT_CLASS),
        creation=unix_seconds(found.metadata.creation_timestamp),
    )


def _topology(term: objects.TopologyTerm) -> SelectorTerm:
    found = term.match_label_expressions
    return SelectorTerm(tuple(Requirement(each.key, Operator.IN, tuple(each.values)) for each in found))


def csi_node_spec(found: objects.CSINode) -> CsiNodeSpec:
    """Translate a CSINode; a driver that states no number has no limit."""
    limits = {
        driver.name: driver.allocatable.count
        for driver in found.spec.drivers or ()
        if driver.allocatable is not None and driver.allocatable.count is not None
    }
    return CsiNodeSpec(found.metadata.name, limits)
