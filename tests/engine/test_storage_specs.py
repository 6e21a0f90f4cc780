"""Storage, from the wire."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from muster.engine.amounts import TranslationError
from muster.engine.pod_specs import task_spec
from muster.engine.storage_specs import claim_spec, csi_node_spec, storage_class_spec, volume_spec
from muster.kube.storage_objects import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from muster.scheduler.constraints import SelectorTerm
from muster.scheduler.selectors import LabelSelector, Operator, Requirement
from muster.scheduler.volumes import ClaimSpec, CsiNodeSpec, StorageClassSpec, VolumeSpec
from tests.engine.pod_manifests import pod

META = {"name": "x", "namespace": "ns", "uid": "u"}


def read(kind: type[Any], **fields: Any) -> Any:
    return msgspec.convert({"metadata": META, **fields}, kind)


CLAIMS: dict[str, tuple[dict[str, Any], ClaimSpec]] = {
    "unbound": (
        {
            "spec": {
                "storageClassName": "fast",
                "accessModes": ["ReadWriteOnce"],
                "volumeMode": "Block",
                "resources": {"requests": {"storage": "1Ki"}},
                "selector": {"matchLabels": {"a": "b"}},
            }
        },
        ClaimSpec(
            "ns",
            "x",
            "u",
            storage_class="fast",
            size=1024 * 1000,
            access_modes=("ReadWriteOnce",),
            mode="Block",
            selector=LabelSelector((Requirement("a", Operator.IN, ("b",)),)),
        ),
    ),
    "bound": ({"spec": {"volumeName": "v"}, "status": {"phase": "Bound"}}, ClaimSpec("ns", "x", "u", volume="v")),
    "lost": ({"spec": {"volumeName": "v"}, "status": {"phase": "Lost"}}, ClaimSpec("ns", "x", "u", "v", lost=True)),
    "going, its node chosen": (
        {
            "metadata": {
                **META,
                "deletionTimestamp": "2026-01-01T00:00:00Z",
                "annotations": {"volume.kubernetes.io/selected-node": "n1"},
            },
            "spec": {"storageClassName": ""},
        },
        ClaimSpec("ns", "x", "u", leaving=True, selected_node="n1", storage_class=""),
    ),
}


@pytest.mark.parametrize("case", CLAIMS)
def test_claims(case: str) -> None:
    fields, expected = CLAIMS[case]
    assert claim_spec(read(PersistentVolumeClaim, **fields)) == expected


def test_volumes() -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    found = read(
        PersistentVolume,
        spec={
            "capacity": {"storage": "1Ki"},
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "fast",
            "claimRef": {"namespace": "ns", "name": "data", "uid": "c"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
            "csi": {"driver": "d", "volumeHandle": "h"},
        },
        status={"phase": "Bound"},
    )
    assert volume_spec(found) == VolumeSpec(
        "x",
        claim="ns/data",
        claim_uid="c",
        storage_class="fast",
        size=1024 * 1000,
        access_modes=("ReadWriteMany",),
        required=(SelectorTerm((Requirement("zone", Operator.IN, ("a",)),)),),
        driver="d",
        handle="h",
    )
    assert not volume_spec(read(PersistentVolume, status={"phase": "Released"})).available


def test_storage_classes() -> None:
    found = read(
        StorageClass,
        metadata={**META, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        provisioner="p",
        volumeBindingMode="WaitForFirstConsumer",
        allowedTopologies=[{"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}]}],
    )
    term = SelectorTerm((Requirement("zone", Operator.IN, ("a", "b")),))
    assert storage_class_spec(found) == StorageClassSpec("x", "p", late=True, topologies=(term,), default=True)


def test_csi_nodes_without_a_number_have_no_limit() -> None:
    drivers = [{"name": "a", "allocatable": {"count": 3}}, {"name": "b"}, {"name": "c", "allocatable": {}}]
    assert csi_node_spec(read(CSINode, spec={"drivers": drivers})) == CsiNodeSpec("x", {"a": 3})


def test_the_claims_of_a_pod_are_the_named_ones_and_its_own() -> None:
    volumes = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "shared"}},
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        {"name": "token", "projected": {}},
    ]
    found = task_spec(pod("p", volumes=volumes), scheduler_names=("muster",), gate="g")
    assert found is not None
    assert found.scheduling.claims == ("default/p-scratch", "default/shared")


def test_a_bad_selector_of_a_claim_is_named() -> None:
    bad = {"matchExpressions": [{"key": "a", "operator": "Near"}]}
    with pytest.raises(TranslationError) as caught:
        claim_spec(read(PersistentVolumeClaim, spec={"selector": bad}))
    assert caught.value.path == "spec.selector.matchExpressions[0].operator"
