"""Reading objects: strict about types, lenient about fields."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.errors import MalformedResource
from muster.api.podgroup import PodGroup
from muster.api.queue import Queue
from muster.api.raycluster import RayCluster
from muster.api.rayjob import JobDeploymentStatus, JobStatus, RayJob

Json = dict[str, Any]

CLUSTER: Json = {
    "apiVersion": "ray.io/v1",
    "kind": "RayCluster",
    "metadata": {"name": "demo", "namespace": "default", "uid": "u1", "generation": 3},
    "spec": {
        "rayVersion": "2.52.0",
        "headGroupSpec": {"rayStartParams": {}, "template": {"spec": {"containers": [{"name": "ray"}]}}},
        "workerGroupSpecs": [{"groupName": "small", "replicas": 2, "template": {"spec": {}}}],
    },
}


def changed(path: list[str | int], value: object, base: Json = CLUSTER) -> Json:
    """`base` with one field set; a field that is not there yet is added."""
    result = copy.deepcopy(base)
    target: Any = result
    for step in path[:-1]:
        target = target[step] if isinstance(step, int) else target.setdefault(step, {})
    target[path[-1]] = value
    return result


def problems(model: Any, obj: object) -> list[str]:
    with pytest.raises(MalformedResource) as caught:
        model.parse(obj)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (
            ["spec", "workerGroupSpecs", 0, "replicas"],
            "1" * 5000,
            f'spec.workerGroupSpecs[0].replicas: must be an integer, not the string "{"1" * 37}..."',
        ),
        (
            ["spec", "workerGroupSpecs", 0, "replicas"],
            "3",
            'spec.workerGroupSpecs[0].replicas: must be an integer, not the string "3"; write 3 without quotes',
        ),
        (
            ["spec", "workerGroupSpecs", 0, "minReplicas"],
            1.5,
            "spec.workerGroupSpecs[0].minReplicas: must be an integer, not the number 1.5",
        ),
        (
            ["spec", "workerGroupSpecs", 0, "numOfHosts"],
            True,
            "spec.workerGroupSpecs[0].numOfHosts: must be an integer, not the boolean true",
        ),
        (
            ["spec", "workerGroupSpecs", 0, "maxReplicas"],
            2**31,
            "spec.workerGroupSpecs[0].maxReplicas: must be at most 2147483647, not 2147483648",
        ),
        (
            ["spec", "headGroupSpec", "rayStartParams", "num-cpus"],
            1,
            'spec.headGroupSpec.rayStartParams[num-cpus]: must be a string, not the integer 1; put it in quotes: "1"',
        ),
        (
            ["spec", "headGroupSpec", "rayStartParams", "block"],
            True,
            "spec.headGroupSpec.rayStartParams[block]: must be a string, not the boolean true; "
            'put it in quotes: "true"',
        ),
        (
            ["spec", "suspend"],
            "true",
            'spec.suspend: must be true or false, not the string "true"; write it without quotes',
        ),
        (["spec", "suspend"], 1, "spec.suspend: must be true or false, not the integer 1"),
        (["spec", "rayVersion"], 2.5, 'spec.rayVersion: must be a string, not the number 2.5; put it in quotes: "2.5"'),
        (["spec", "workerGroupSpecs"], {}, "spec.workerGroupSpecs: must be a list, not a mapping"),
        (["spec", "headGroupSpec"], None, "spec.headGroupSpec: must be a mapping, not null"),
        (["spec", "headGroupSpec", "template"], [], "spec.headGroupSpec.template: must be a mapping, not a list"),
        (
            ["spec", "headGroupSpec", "template"],
            "x" * 50,
            f'spec.headGroupSpec.template: must be a mapping, not the string "{"x" * 37}..."',
        ),
        (
            ["metadata", "labels"],
            {"a.b/c": 1},
            'metadata.labels[a.b/c]: must be a string, not the integer 1; put it in quotes: "1"',
        ),
        (["status", "desiredCPU"], [], 'status.desiredCPU: must be a quantity such as 1, 500m or "2Gi", not a list'),
        (["status", "conditions"], [{"type": "A"}], "status.conditions[0].status: is required; add it"),
    ],
)
def test_a_wrong_type_is_named_with_its_path_and_what_to_write(
    path: list[str | int], value: object, problem: str
) -> None:
    assert problems(RayCluster, changed(path, value)) == [problem]


def test_all_fields_at_fault_are_named_at_once() -> None:
    broken = changed(["spec", "workerGroupSpecs", 0], {"replicas": "many"})
    assert problems(RayCluster, broken) == [
        "spec.workerGroupSpecs[0].groupName: is required; add it",
        "spec.workerGroupSpecs[0].template: is required; add it",
        'spec.workerGroupSpecs[0].replicas: must be an integer, not the string "many"',
    ]


@pytest.mark.parametrize("obj", [[], "text", None, 3])
def test_what_is_no_object_at_all_is_refused_too(obj: object) -> None:
    (problem,) = problems(RayCluster, obj)
    assert problem.startswith("(the object itself): must be a mapping, not ")


def test_the_text_of_the_error_names_the_kind_and_the_field() -> None:
    with pytest.raises(MalformedResource, match=r"^RayCluster can't be read: spec.headGroupSpec: is required; add it$"):
        RayCluster.parse({"metadata": {"name": "demo"}, "spec": {}})


def test_python_spelling_is_not_accepted_on_the_wire() -> None:
    spelled = {"metadata": {"name": "demo"}, "spec": {"head_group_spec": {"template": {}}}}
    assert problems(RayCluster, spelled) == ["spec.headGroupSpec: is required; add it"]


@pytest.mark.parametrize("quantity", [1, 0, 0.5, "500m", "1Gi", "1e3", "not judged here"])
def test_quantities_may_be_numbers_or_strings(quantity: object) -> None:
    group = PodGroup.parse({"metadata": {"name": "g"}, "spec": {"minResources": {"cpu": quantity}}})
    assert group.dump()["spec"]["minResources"] == {"cpu": quantity}


@pytest.mark.parametrize("value", [True, None, [], {}])
def test_anything_else_is_no_quantity(value: object) -> None:
    (problem,) = problems(Queue, {"metadata": {"name": "q"}, "spec": {"capability": {"nvidia.com/gpu": value}}})
    assert problem.startswith("spec.capability[nvidia.com/gpu]: must be a quantity")


@pytest.mark.parametrize(
    ("group", "written"),
    [({}, False), ({"replicas": None}, True), ({"replicas": 0}, True), ({"replicas": 5}, True)],
)
def test_absent_null_zero_and_a_number_stay_four_things(group: Json, written: bool) -> None:
    wire = changed(["spec", "workerGroupSpecs", 0], {"groupName": "g", "template": {}, **group})
    worker_group = RayCluster.parse(wire).spec.worker_groups[0]
    assert ("replicas" in worker_group.model_fields_set) is written
    assert worker_group.replicas == group.get("replicas")
    assert RayCluster.parse(wire).dump() == wire


@pytest.mark.parametrize("params", [{}, {"rayStartParams": None}, {"rayStartParams": {}}])
def test_absent_null_and_empty_maps_come_back_as_they_were(params: Json) -> None:
    wire = changed(["spec", "headGroupSpec"], {"template": {}, **params})
    assert RayCluster.parse(wire).dump() == wire


def test_unknown_fields_are_kept_at_every_level() -> None:
    wire = changed(["spec", "headGroupSpec", "newer"], {"a": [1, {"b": None}]})
    wire = changed(["status", "head", "newer"], "x", changed(["newer"], 1, wire))
    assert RayCluster.parse(wire).dump() == wire


@pytest.mark.parametrize(
    ("group", "pods"),
    [
        ({"replicas": 3}, 3),
        ({}, 0),
        ({"replicas": None}, 0),
        ({"replicas": 0, "minReplicas": 2}, 2),
        ({"replicas": 9, "maxReplicas": 4}, 4),
        ({"replicas": 9, "maxReplicas": 0}, 0),
        ({"replicas": 2, "numOfHosts": 4}, 8),
        ({"replicas": 2, "numOfHosts": None}, 2),
        ({"replicas": 2, "suspend": True}, 0),
        ({"replicas": 2, "suspend": False}, 2),
    ],
)
def test_the_desired_pods_of_a_worker_group(group: Json, pods: int) -> None:
    wire = changed(["spec", "workerGroupSpecs", 0], {"groupName": "g", "template": {}, **group})
    assert RayCluster.parse(wire).spec.worker_groups[0].desired_pods == pods


def test_a_ray_job_without_a_spec_is_read_so_that_validation_can_say_what_is_missing() -> None:
    assert RayJob.parse({"metadata": {"name": "job"}}).spec.ray_cluster_spec is None


@pytest.mark.parametrize(
    ("spec", "mode"),
    [
        ({}, "K8sJobMode"),
        ({"submissionMode": ""}, "K8sJobMode"),
        ({"submissionMode": "HTTPMode"}, "HTTPMode"),
        ({"submissionMode": "Carrier"}, "Carrier"),
    ],
)
def test_the_submission_mode_of_a_ray_job(spec: Json, mode: str) -> None:
    assert RayJob.parse({"metadata": {"name": "job"}, "spec": spec}).spec.mode == mode


def test_only_the_final_states_are_terminal() -> None:
    assert {status for status in JobStatus if status.terminal} == {"STOPPED", "SUCCEEDED", "FAILED"}
    assert {status for status in JobDeploymentStatus if status.terminal} == {"Complete", "Failed"}


WIRE_NAMES: Json = {
    "status": {
        "jobId": "j",
        "dashboardURL": "head:8265",
        "rayClusterStatus": {
            "head": {"podIP": "10.0.0.1", "serviceIP": "10.0.0.2"},
            "desiredCPU": "3",
            "desiredGPU": "0",
            "desiredTPU": 0,
        },
    },
    "spec": {
        "runtimeEnvYAML": "pip: []",
        "rayClusterSpec": {"headGroupSpec": {"template": {}}, "authOptions": {"enableK8sTokenAuth": True}},
    },
    "metadata": {"name": "job"},
}


def test_the_abbreviations_of_the_wire_reach_their_attributes() -> None:
    job = RayJob.parse(WIRE_NAMES)
    assert job.dump() == WIRE_NAMES
    assert job.status
    assert job.status.ray_cluster_status
    assert job.status.ray_cluster_status.head
    assert job.spec.ray_cluster_spec
    assert job.spec.ray_cluster_spec.auth_options
    assert (
        job.status.job_id,
        job.status.dashboard_url,
        job.status.ray_cluster_status.head.pod_ip,
        job.status.ray_cluster_status.head.service_ip,
        job.status.ray_cluster_status.desired_cpu,
        job.status.ray_cluster_status.desired_gpu,
        job.status.ray_cluster_status.desired_tpu,
        job.spec.runtime_env_yaml,
        job.spec.ray_cluster_spec.auth_options.enable_k8s_token_auth,
    ) == ("j", "head:8265", "10.0.0.1", "10.0.0.2", "3", "0", 0, "pip: []", True)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    ["metadata", "spec", "status", "workerGroupSpecs", "headGroupSpec", "minResources", "conditions"]
)


@given(
    model=st.sampled_from([RayCluster, RayJob, PodGroup, Queue]),
    obj=st.dictionaries(FIELDS, JSON_VALUES | st.dictionaries(FIELDS, JSON_VALUES)),
)
def test_any_json_is_either_read_and_written_back_unchanged_or_refused_by_field(model: Any, obj: Json) -> None:
    outcome: list[Any] = []
    try:
        outcome = [model.parse(copy.deepcopy(obj)).dump()]
    except MalformedResource as refusal:
        fields = [problem.path and problem.message for problem in refusal.problems]
    else:
        fields = ["none"]
    assert fields
    assert all(fields)
    assert outcome in ([], [obj])
