"""Amounts that the API server must not be asked to read, at every place where it would."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from muster.api.raycluster import RayCluster
from muster.api.rayjob import RayJob
from muster.operator_configuration import OperatorConfigurationError, read_operator_configuration
from muster.quantities import is_costly
from muster.ray.validation import costly_amounts, head_pod_problems, validate_ray_cluster, validate_ray_job
from tests.cluster.control_plane import ControlPlane
from tests.ray.cluster_case import VALID, Json, with_fields

HUGE = "1e99999999999"
BY_DIVISOR = {"resourceFieldRef": {"resource": "limits.cpu", "divisor": HUGE}}
ASKING = {"requests": {"cpu": HUGE}}
TOO_MUCH = f'"{HUGE}" is too much for the API server to read'


def container(**fields: Any) -> Json:
    return {"name": "c", "image": "i", **fields}


def claim(**resources: Any) -> Json:
    return {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "resources": resources}}}


PLACES: dict[str, Json] = {
    "containers[0].resources.requests[cpu]": {"containers": [container(resources=ASKING)]},
    "containers[1].resources.limits[memory]": {
        "containers": [container(), container(resources={"limits": {"memory": HUGE}})]
    },
    "containers[0].env[0].valueFrom.resourceFieldRef.divisor": {
        "containers": [container(env=[{"name": "A", "valueFrom": BY_DIVISOR}])]
    },
    "initContainers[0].resources.requests[cpu]": {"initContainers": [container(resources=ASKING)]},
    "initContainers[0].env[0].valueFrom.resourceFieldRef.divisor": {
        "initContainers": [container(env=[{"name": "A", "valueFrom": BY_DIVISOR}])]
    },
    "ephemeralContainers[0].resources.requests[cpu]": {"ephemeralContainers": [container(resources=ASKING)]},
    "resources.requests[cpu]": {"resources": ASKING},
    "overhead[cpu]": {"overhead": {"cpu": HUGE}},
    "volumes[0].emptyDir.sizeLimit": {"volumes": [{"name": "v", "emptyDir": {"sizeLimit": HUGE}}]},
    "volumes[0].downwardAPI.items[0].resourceFieldRef.divisor": {
        "volumes": [{"name": "v", "downwardAPI": {"items": [{"path": "p", **BY_DIVISOR}]}}]
    },
    "volumes[0].projected.sources[1].downwardAPI.items[0].resourceFieldRef.divisor": {
        "volumes": [
            {"name": "v", "projected": {"sources": [{}, {"downwardAPI": {"items": [{"path": "p", **BY_DIVISOR}]}}]}}
        ]
    },
    "volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests[storage]": {
        "volumes": [{"name": "v", "ephemeral": claim(requests={"storage": HUGE})}]
    },
    "volumes[0].ephemeral.volumeClaimTemplate.spec.resources.limits[storage]": {
        "volumes": [{"name": "v", "ephemeral": claim(limits={"storage": HUGE})}]
    },
}
GROUPS: dict[str, list[str | int]] = {
    "headGroupSpec": ["spec", "headGroupSpec"],
    "workerGroupSpecs[0]": ["spec", "workerGroupSpecs", 0],
}


def cluster_with(group: str, pod: Json) -> Json:
    return with_fields(*(([*GROUPS[group], "template", "spec", field], value) for field, value in pod.items()))


def told(obj: Json) -> list[str]:
    return [str(problem) for problem in validate_ray_cluster(RayCluster.parse(obj))]


def job(**spec: Any) -> Json:
    written = {"entrypoint": "e", "rayClusterSpec": copy.deepcopy(VALID["spec"]), **spec}
    return {"metadata": {"name": "demo", "namespace": "default"}, "spec": written}


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("place", PLACES)
def test_every_quantity_of_a_group_s_template_is_looked_at(group: str, place: str) -> None:
    (problem,) = told(cluster_with(group, PLACES[place]))
    assert problem.startswith(f"spec.{group}.template.spec.{place}: {TOO_MUCH}")


@pytest.mark.parametrize("place", PLACES)
def test_so_is_every_quantity_of_the_submitter_s(place: str) -> None:
    pod = {"containers": [container()], **PLACES[place]}
    (problem,) = validate_ray_job(RayJob.parse(job(submitterPodTemplate={"spec": pod})))
    assert str(problem).startswith(f"spec.submitterPodTemplate.spec.{place}: {TOO_MUCH}")


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ([(["autoscalerOptions"], {"resources": ASKING})], "spec.autoscalerOptions.resources.requests[cpu]"),
        (
            [(["autoscalerOptions"], {"env": [{"name": "A", "valueFrom": BY_DIVISOR}]})],
            "spec.autoscalerOptions.env[0].valueFrom.resourceFieldRef.divisor",
        ),
        (
            [(["gcsFaultToleranceOptions"], {"redisAddress": "r:1", "redisPassword": {"valueFrom": BY_DIVISOR}})],
            "spec.gcsFaultToleranceOptions.redisPassword.valueFrom.resourceFieldRef.divisor",
        ),
        (
            [(["gcsFaultToleranceOptions"], {"redisAddress": "r:1", "redisUsername": {"valueFrom": BY_DIVISOR}})],
            "spec.gcsFaultToleranceOptions.redisUsername.valueFrom.resourceFieldRef.divisor",
        ),
        (
            [(["headGroupSpec", "rayStartParams"], {}), (["headGroupSpec", "resources"], {"CPU": HUGE})],
            "spec.headGroupSpec.resources[CPU]",
        ),
    ],
)
def test_and_what_becomes_a_part_of_a_pod_from_elsewhere(fields: list[tuple[list[str | int], Any]], place: str) -> None:
    (problem,) = told(with_fields(*((["spec", *path], value) for path, value in fields)))
    assert problem.startswith(f"{place}: {TOO_MUCH}")


@pytest.mark.parametrize(
    "obj",
    [
        cluster_with("headGroupSpec", PLACES["volumes[0].emptyDir.sizeLimit"]),
        with_fields(
            (
                ["spec", "gcsFaultToleranceOptions"],
                {"redisAddress": "r:1", "redisPassword": {"valueFrom": BY_DIVISOR}},
            )
        ),
    ],
    ids=["the template", "the credentials"],
)
def test_the_redis_cleanup_job_is_not_made_of_one_either(obj: Json) -> None:
    assert head_pod_problems(RayCluster.parse(obj))


@pytest.mark.parametrize(
    "amount", [{"requests": {"cpu": HUGE}, "limits": {"cpu": "1"}}, {"requests": {"cpu": "9" * 10_000}}]
)
def test_an_amount_is_told_once_and_not_at_length(amount: Json) -> None:
    (problem,) = told(cluster_with("headGroupSpec", {"containers": [container(resources=amount)]}))
    assert len(problem) < 400


@pytest.mark.parametrize(
    "pod",
    [
        {"volumes": "many"},
        {
            "volumes": [
                None,
                "v",
                {"emptyDir": 5},
                {"projected": {"sources": {"a": 1}}},
                {"downwardAPI": {"items": [1]}},
            ]
        },
        {"ephemeralContainers": [{"resources": {"requests": [HUGE]}, "env": {"valueFrom": HUGE}}]},
    ],
)
def test_what_the_api_server_finds_no_quantity_in_is_its_own_business(pod: Json) -> None:
    assert all(TOO_MUCH not in problem for problem in told(cluster_with("headGroupSpec", pod)))


@pytest.mark.parametrize(
    ("written", "place"),
    [
        ({"headSidecarContainers": [container(resources=ASKING)]}, "headSidecarContainers[0].resources.requests[cpu]"),
        (
            {"workerSidecarContainers": [container(env=[{"name": "A", "valueFrom": BY_DIVISOR}])]},
            "workerSidecarContainers[0].env[0].valueFrom.resourceFieldRef.divisor",
        ),
        (
            {"defaultContainerEnvs": [{"name": "A", "valueFrom": BY_DIVISOR}]},
            "defaultContainerEnvs[0].valueFrom.resourceFieldRef.divisor",
        ),
    ],
)
def test_what_the_operator_s_configuration_adds_to_every_pod_is_looked_at_too(
    tmp_path: Path, written: Json, place: str
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(json.dumps({"apiVersion": "config.ray.io/v1alpha1", "kind": "Configuration", **written}))
    with pytest.raises(OperatorConfigurationError) as refusal:
        read_operator_configuration(path)
    assert f"{place}: {TOO_MUCH}" in str(refusal.value)


@pytest.mark.control_plane
def test_every_quantity_that_the_api_server_knows_in_a_pod_template_is_looked_at(control_plane: ControlPlane) -> None:
    schemas = control_plane.api.get("/openapi/v3/api/v1")["components"]["schemas"]
    places = set(quantities_in(schemas, "io.k8s.api.core.v1.PodTemplateSpec"))
    assert "spec.containers[].resources.requests{}" in places
    assert [place for place in sorted(places) if not list(costly_amounts.in_template(template_with(place), ""))] == []


@pytest.mark.control_plane
@pytest.mark.parametrize("amount", ["1e400", "1e-400", "9" * 300, f"{'9' * 296}e400"])
def test_what_is_not_costly_the_api_server_reads_at_once(control_plane: ControlPlane, amount: str) -> None:
    assert not is_costly(amount)
    spec = {"containers": [container(resources={"requests": {"cpu": amount}})]}
    body = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "t"}, "template": {"spec": spec}}
    taken = control_plane.api.create("/api/v1/namespaces/default/podtemplates?dryRun=All", body)
    assert taken["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"]


def template_with(place: str) -> Json:
    """A template with a costly amount at this place (`spec.volumes[].emptyDir.sizeLimit`) and nothing else."""
    value: Any = HUGE
    for step in reversed(place.replace("[]", ".[]").replace("{}", ".{}").split(".")):
        value = [value] if step == "[]" else {"cpu": value} if step == "{}" else {step: value}
    template: Json = value
    return template


def quantities_in(schemas: Json, name: str, path: str = "") -> Iterator[str]:
    for field, schema in schemas[name].get("properties", {}).items():
        at = f"{path}.{field}" if path else field
        yield from quantities_at(schemas, schema, at)


def quantities_at(schemas: Json, schema: Json, path: str) -> Iterator[str]:
    if schema.get("type") == "array":
        yield from quantities_at(schemas, schema["items"], f"{path}[]")
    elif "additionalProperties" in schema:
        yield from quantities_at(schemas, schema["additionalProperties"], f"{path}{{}}")
    for reference in [schema, *schema.get("allOf", ())]:
        name = reference.get("$ref", "").rpartition("/")[2]
        if name.endswith(".resource.Quantity"):
            yield path
        elif name:
            yield from quantities_in(schemas, name, path)
