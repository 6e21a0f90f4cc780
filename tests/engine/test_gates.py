from __future__ import annotations

from typing import Any

import msgspec
import pytest

from muster.engine.gates import gate_removal
from muster.kube.objects import OwnerReference, Pod, PodSpec
from tests.engine.pod_manifests import pod

GATE = "muster.dev/gang"
VOLCANOS = "scheduling.volcano.sh/queue-allocation-gate"
OPTED_IN = {VOLCANOS: "true"}


def take(index: int, name: str) -> list[dict[str, Any]]:
    path = f"/spec/schedulingGates/{index}"
    return [{"op": "test", "path": f"{path}/name", "value": name}, {"op": "remove", "path": path}]


CASES: dict[str, tuple[Pod, list[dict[str, Any]]]] = {
    "none": (pod(), []),
    "ours": (pod(gates=(GATE,)), take(0, GATE)),
    "ours behind another's": (pod(gates=("x/y", GATE)), take(1, GATE)),
    "another's": (pod(gates=("x/y",)), []),
    "Volcano's": (pod(gates=(VOLCANOS,)), []),
    "Volcano's by request": (pod(gates=(VOLCANOS,), annotations=OPTED_IN), take(0, VOLCANOS)),
    "both, the last first": (
        pod(gates=(GATE, VOLCANOS), annotations=OPTED_IN),
        [*take(1, VOLCANOS), *take(0, GATE)],
    ),
}


@pytest.mark.parametrize(("found", "expected"), CASES.values(), ids=CASES.keys())
def test_only_gates_that_are_ours_are_taken_away_and_only_from_this_very_pod(
    found: Pod, expected: list[dict[str, Any]]
) -> None:
    uid = {"op": "test", "path": "/metadata/uid", "value": found.metadata.uid}
    assert gate_removal(found, GATE) == ([uid, *expected] if expected else None)


@pytest.mark.parametrize(("api_version", "cleared"), [("ray.io/v1", True), ("batch/v1", False)])
def test_who_set_which_field_is_forgotten_of_pods_that_we_made(api_version: str, cleared: bool) -> None:
    owner = OwnerReference(api_version=api_version, kind="RayCluster", name="demo", uid="o", controller=True)
    found = pod(gates=(GATE,))
    found = msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.metadata, owner_references=[owner]))
    patch = gate_removal(found, GATE) or []
    clearing = {"op": "add", "path": "/metadata/managedFields", "value": [{}]}
    assert (clearing in patch) is cleared
    assert gate_removal(msgspec.structs.replace(found, spec=PodSpec()), GATE) is None, "no write for that alone"
