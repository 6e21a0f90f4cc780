"""KubeRay's definitions beside Muster's: no field that KubeRay knows is pruned, or refused as unknown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from muster.api.crds import custom_resource_definition
from muster.api.model import Resource
from muster.api.raycluster import RayCluster
from muster.api.rayjob import RayJob
from tests.cluster import kuberay
from tests.cluster.prerequisites import PrerequisiteError
from tests.conftest import refuse

Schema = dict[str, Any]


@pytest.fixture(scope="module")
def of_kuberay() -> dict[str, Schema]:
    """Give the schema of each of KubeRay's kinds."""
    try:
        return {crd["spec"]["names"]["kind"]: schema_of(crd) for crd in kuberay.crds()}
    except PrerequisiteError as error:
        refuse(f"the comparison with KubeRay needs {error}")
        raise


def schema_of(definition: dict[str, Any]) -> Schema:
    (version,) = definition["spec"]["versions"]
    schema: Schema = version["schema"]["openAPIV3Schema"]
    return schema


def pruned(theirs: Schema, ours: Schema, path: str) -> Iterator[str]:
    """The paths that their schema has and ours neither has nor keeps as something that Kubernetes defines."""
    known = ours.get("properties", {})
    for name, schema in theirs.get("properties", {}).items():
        if name in known:
            yield from pruned(schema, known[name], f"{path}.{name}")
        elif not ours.get("x-kubernetes-preserve-unknown-fields"):
            yield f"{path}.{name}"
    if "items" in theirs:
        yield from pruned(theirs["items"], ours["items"], f"{path}[]")
    if isinstance(theirs.get("additionalProperties"), dict) and "additionalProperties" not in ours:
        yield f"{path}.*"


@pytest.mark.parametrize("model", [RayCluster, RayJob])
def test_every_field_of_kuberay_s_is_known_or_kept(of_kuberay: dict[str, Schema], model: type[Resource]) -> None:
    theirs = of_kuberay[model.definition.kind]
    spec = schema_of(custom_resource_definition(model))["properties"]["spec"]
    assert list(pruned(theirs["properties"]["spec"], spec, "spec")) == []


def test_one_that_is_missing_would_be_found(of_kuberay: dict[str, Schema]) -> None:
    spec = schema_of(custom_resource_definition(RayJob))["properties"]["spec"]
    cluster = spec["properties"]["rayClusterSpec"]["properties"]
    del cluster["autoscalerOptions"]["properties"]["version"]
    del cluster["workerGroupSpecs"]["items"]["properties"]["scaleStrategy"]
    assert list(pruned(of_kuberay["RayJob"]["properties"]["spec"], spec, "spec")) == [
        "spec.rayClusterSpec.autoscalerOptions.version",
        "spec.rayClusterSpec.workerGroupSpecs[].scaleStrategy",
    ]
