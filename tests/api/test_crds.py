"""The generated CustomResourceDefinitions, without a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from muster.api.crds import RESOURCES, custom_resource_definition, generate
from muster.api.podgroup import PodGroup, PodGroupSpec
from muster.api.queue import Queue, QueueSpec
from muster.api.raycluster import HeadGroupSpec, RayCluster, RayClusterSpec, WorkerGroupSpec
from muster.api.rayjob import RayJob, RayJobSpec
from muster.api.schema import Definition

CRDS = Path(__file__).parents[2] / "crds"
CLIENT_SIDE_APPLY_LIMIT = 262_144
OURS = 65_536

Json = dict[str, Any]


def schema_of(model: Any) -> Json:
    version: Json = custom_resource_definition(model)["spec"]["versions"][0]
    schema: Json = version["schema"]["openAPIV3Schema"]
    return schema


def at(schema: Json, path: str) -> Json:
    """The schema of a field: `spec.workerGroupSpecs[].replicas`."""
    for step in path.replace("[]", ".[]").split("."):
        schema = schema["items"] if step == "[]" else schema["properties"][step]
    return schema


def walk(schema: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from walk(child, f"{path}.{name}")
    if "items" in schema:
        yield from walk(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from walk(schema["additionalProperties"], f"{path}.*")


def test_the_files_in_crds_are_what_the_models_give() -> None:
    on_disk = {path.name: path.read_text(encoding="utf-8") for path in CRDS.iterdir()}
    assert on_disk == generate(), "run `muster crds --output crds`"


@pytest.mark.parametrize(("name", "text"), generate().items())
def test_each_file_fits_a_client_side_apply_with_room_to_spare(name: str, text: str) -> None:
    assert len(text.encode()) < OURS < CLIENT_SIDE_APPLY_LIMIT
    assert yaml.safe_load(text)["kind"] == "CustomResourceDefinition"


def keeping(model: Any) -> set[str]:
    """Where fields that the schema does not know are kept: maps of anything, and objects that say so."""
    return {
        path
        for path, schema in walk(schema_of(model))
        if schema.get("type") == "object"
        and (
            schema.get("x-kubernetes-preserve-unknown-fields") or not {"properties", "additionalProperties"} & {*schema}
        )
    }


def opened(model: Any) -> set[str]:
    """Of these the uppermost in the spec."""
    paths = {path for path in keeping(model) if path.startswith(".spec")}
    return {path for path in paths if not any(path.startswith((f"{other}.", f"{other}[")) for other in paths)}


OF_KUBERNETES = (
    "autoscalerOptions.env[]",
    "autoscalerOptions.envFrom[]",
    "autoscalerOptions.resources",
    "autoscalerOptions.securityContext",
    "autoscalerOptions.volumeMounts[]",
    "gcsFaultToleranceOptions.redisPassword.valueFrom",
    "gcsFaultToleranceOptions.redisUsername.valueFrom",
    "headGroupSpec.headService",
    "headGroupSpec.template",
    "historyServerOptions.collectorOptions.env[]",
    "historyServerOptions.collectorOptions.resources",
    *(
        f"networkPolicy.{whose}.{rules}[]"
        for whose in ("head", "worker", "workerGroups[]")
        for rules in ("ingressRules", "egressRules")
    ),
    "workerGroupSpecs[].template",
)


@pytest.mark.parametrize(
    ("model", "paths"),
    [
        (RayCluster, [f".spec.{path}" for path in OF_KUBERNETES]),
        (RayJob, [".spec.submitterPodTemplate", *(f".spec.rayClusterSpec.{path}" for path in OF_KUBERNETES)]),
        (PodGroup, [".spec.subGroupPolicy[].labelSelector"]),
        (Queue, []),
    ],
)
def test_a_spec_keeps_unknown_fields_only_in_what_kubernetes_defines(model: Any, paths: list[str]) -> None:
    assert opened(model) == set(paths)


@pytest.mark.parametrize("model", RESOURCES)
def test_a_status_keeps_at_every_level_what_another_version_wrote(model: Any) -> None:
    objects = {
        path
        for path, schema in walk(schema_of(model))
        if path.startswith(".status") and schema.get("type") == "object" and "additionalProperties" not in schema
    }
    assert objects
    assert objects <= keeping(model)


@pytest.mark.parametrize("model", RESOURCES)
def test_beside_spec_and_status_there_is_nothing(model: Any) -> None:
    schema = schema_of(model)
    assert set(schema["properties"]) == {"apiVersion", "kind", "metadata", "spec", "status"}
    assert "x-kubernetes-preserve-unknown-fields" not in schema


@pytest.mark.parametrize(
    ("model", "path"),
    [
        (RayJob, "spec"),
        (RayJob, "spec.rayClusterSpec"),
        (RayCluster, "spec"),
        (RayCluster, "spec.headGroupSpec"),
        (RayCluster, "spec.workerGroupSpecs[]"),
        (PodGroup, "spec"),
        (Queue, "spec"),
    ],
)
def test_kubectl_explain_says_what_each_field_of_a_spec_means(model: Any, path: str) -> None:
    silent = [
        name for name, schema in at(schema_of(model), path)["properties"].items() if not schema.get("description")
    ]
    assert silent == []


@pytest.mark.parametrize("model", [RayJobSpec, HeadGroupSpec, WorkerGroupSpec, RayClusterSpec, PodGroupSpec, QueueSpec])
def test_no_meaning_is_given_for_a_field_that_is_not_there(model: Any) -> None:
    assert set(model.meanings) <= set(model.model_fields)


@pytest.mark.parametrize("model", RESOURCES)
def test_every_default_is_a_value_that_its_own_schema_takes(model: Any) -> None:
    kinds: dict[str, tuple[type, ...]] = {"integer": (int,), "string": (str,), "boolean": (bool,), "array": (list,)}
    for path, schema in walk(schema_of(model)):
        if "default" not in schema:
            continue
        default = schema["default"]
        expected = (int, str) if schema.get("x-kubernetes-int-or-string") else kinds[schema["type"]]
        assert isinstance(default, expected), path
        assert default in schema.get("enum", [default]), path
        if isinstance(default, int) and not isinstance(default, bool):
            assert schema.get("minimum", default) <= default <= schema.get("maximum", default), path


@pytest.mark.parametrize(
    ("model", "path", "default"),
    [
        (RayCluster, "spec.workerGroupSpecs[].replicas", 0),
        (RayCluster, "spec.workerGroupSpecs[].minReplicas", 0),
        (RayCluster, "spec.workerGroupSpecs[].maxReplicas", 2147483647),
        (RayCluster, "spec.workerGroupSpecs[].numOfHosts", 1),
        (RayCluster, "spec.workerGroupSpecs[].priority", 0),
        (RayCluster, "spec.networkPolicy.mode", "DenyAll"),
        (RayCluster, "spec.tlsOptions.enabled", False),
        (RayCluster, "spec.gcsFaultToleranceOptions.storage.size", "1Gi"),
        (RayCluster, "spec.gcsFaultToleranceOptions.storage.accessModes", ["ReadWriteOnce"]),
        (RayCluster, "spec.gcsFaultToleranceOptions.storage.deletionPolicy", "DeleteWithCluster"),
        (RayJob, "spec.submissionMode", "K8sJobMode"),
        (RayJob, "spec.backoffLimit", 0),
        (RayJob, "spec.ttlSecondsAfterFinished", 0),
        (RayJob, "spec.deletionStrategy.deletionRules[].condition.ttlSeconds", 0),
        (RayJob, "spec.rayClusterSpec.workerGroupSpecs[].numOfHosts", 1),
        (RayJob, "status.succeeded", 0),
        (RayJob, "status.failed", 0),
        (PodGroup, "spec.queue", "default"),
        (PodGroup, "spec.networkTopology.mode", "hard"),
        (PodGroup, "spec.subGroupPolicy[].subGroupSize", 1),
        (PodGroup, "spec.subGroupPolicy[].minSubGroups", 0),
        (Queue, "spec.weight", 1),
        (Queue, "spec.dequeueStrategy", "traverse"),
    ],
)
def test_the_defaults_are_those_of_kuberay_and_volcano(model: Any, path: str, default: object) -> None:
    assert at(schema_of(model), path)["default"] == default


@pytest.mark.parametrize(
    ("model", "path"),
    [
        (RayCluster, "spec.authOptions.mode"),  # KubeRay documents a default but has none: auth stays off
        (RayCluster, "spec.enableInTreeAutoscaling"),
        (RayJob, "spec.suspend"),
        (RayJob, "spec.activeDeadlineSeconds"),
        (RayJob, "spec.submitterConfig.backoffLimit"),
        (Queue, "spec.reclaimable"),
    ],
)
def test_what_has_no_default_upstream_has_none_here(model: Any, path: str) -> None:
    assert "default" not in at(schema_of(model), path)


@pytest.mark.parametrize("model", RESOURCES)
def test_every_int32_has_the_bounds_of_one_since_the_api_server_does_not_look_at_the_format(model: Any) -> None:
    bounds = {
        path: (schema.get("minimum"), schema.get("maximum"))
        for path, schema in walk(schema_of(model))
        if schema.get("format") == "int32"
    }
    assert bounds
    for path, (least, most) in bounds.items():
        assert least in (-(2**31), 0, 1), path
        assert most in (2**31 - 1, 65535), path


@pytest.mark.parametrize(
    ("model", "path", "required"),
    [
        (RayCluster, "spec", ["headGroupSpec"]),
        (RayCluster, "spec.headGroupSpec", ["template"]),
        (RayCluster, "spec.workerGroupSpecs[]", ["groupName", "template"]),
        (RayJob, "spec", None),
        (RayJob, "spec.rayClusterSpec", ["headGroupSpec"]),
        (RayJob, "spec.deletionStrategy.deletionRules[]", ["condition", "policy"]),
        (PodGroup, "spec", None),
        (Queue, "spec", None),
    ],
)
def test_only_what_can_not_be_guessed_is_required(model: Any, path: str, required: list[str] | None) -> None:
    assert at(schema_of(model), path).get("required") == required


@pytest.mark.parametrize(
    ("model", "path", "values"),
    [
        (RayCluster, "spec.upgradeStrategy.type", ["Recreate", "None"]),
        (RayCluster, "spec.autoscalerOptions.version", ["v1", "v2"]),
        (RayCluster, "spec.autoscalerOptions.upscalingMode", ["Default", "Aggressive", "Conservative"]),
        (RayJob, "spec.deletionStrategy.deletionRules[].condition.jobStatus", ["SUCCEEDED", "FAILED"]),
        (PodGroup, "spec.networkTopology.mode", ["hard", "soft"]),
        (Queue, "spec.dequeueStrategy", ["fifo", "traverse"]),
    ],
)
def test_closed_sets_are_enumerations(model: Any, path: str, values: list[str]) -> None:
    assert at(schema_of(model), path)["enum"] == values


def test_the_submission_mode_is_no_enumeration_so_that_the_controller_can_say_what_is_allowed() -> None:
    assert "enum" not in at(schema_of(RayJob), "spec.submissionMode")


def test_a_pod_template_is_an_open_object_with_a_list_of_containers() -> None:
    template = at(schema_of(RayCluster), "spec.headGroupSpec.template")
    assert template["x-kubernetes-preserve-unknown-fields"] is True
    assert at(template, "spec.containers[].name") == {"type": "string"}


def test_quantities_take_integers_and_strings() -> None:
    assert at(schema_of(PodGroup), "spec.minResources")["additionalProperties"] == {"x-kubernetes-int-or-string": True}


@pytest.mark.parametrize(
    ("definition", "names", "scope", "status"),
    [
        (RayCluster.definition, {"categories": ["all"]}, "Namespaced", True),
        (RayJob.definition, {"categories": ["all"]}, "Namespaced", True),
        (PodGroup.definition, {"shortNames": ["pg", "podgroup-v1beta1"]}, "Namespaced", False),
        (Queue.definition, {"shortNames": ["q", "queue-v1beta1"]}, "Cluster", True),
    ],
)
def test_names_scope_and_status_subresource(definition: Definition, names: Json, scope: str, status: bool) -> None:
    (model,) = (model for model in RESOURCES if model.definition is definition)
    spec = custom_resource_definition(model)["spec"]
    assert {key: spec["names"][key] for key in ("categories", "shortNames") if key in spec["names"]} == names
    assert spec["scope"] == scope
    assert ("status" in spec["versions"][0].get("subresources", {})) is status


@pytest.mark.parametrize(
    ("model", "columns"),
    [
        (
            RayCluster,
            "desired workers, available workers, cpus, memory, gpus, tpus*, status, age, head pod IP*, "
            "head service IP*",
        ),
        (RayJob, "job status, deployment status, ray cluster name, start time, end time, age, reason*, message*"),
        (PodGroup, "STATUS, minMember, RUNNINGS, AGE, QUEUE*"),
        (Queue, "PARENT, STATE, WEIGHT, AGE"),
    ],
)
def test_kubectl_prints_the_columns_that_users_know(model: Any, columns: str) -> None:
    rendered = custom_resource_definition(model)["spec"]["versions"][0]["additionalPrinterColumns"]
    assert ", ".join(column["name"] + "*" * column.get("priority", 0) for column in rendered) == columns
