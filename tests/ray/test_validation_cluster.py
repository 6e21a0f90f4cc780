"""The rules for a RayCluster, one table for each part."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.errors import MalformedResource
from muster.api.raycluster import RayCluster
from muster.ray.gang import ray_cluster_pod_group
from muster.ray.pod_options import PodOptions
from muster.ray.pods import head_pod, worker_pod
from muster.ray.services import head_service
from muster.ray.validation import validate_ray_cluster
from muster.ray.validation.made import made_of_ray_cluster
from tests.ray.cluster_case import CONTAINER, DELETE, HEAD, VALID, WORKER, Json, Path, with_fields


def problems(obj: Json) -> list[str]:
    return [str(problem) for problem in validate_ray_cluster(RayCluster.parse(obj))]


def test_a_common_cluster_is_fine() -> None:
    assert problems(VALID) == []


@pytest.mark.parametrize(
    "fields",
    [
        [([*WORKER, "replicas"], 99)],
        [([*WORKER, "replicas"], -1)],
        [([*WORKER, "replicas"], 99_999), ([*WORKER, "maxReplicas"], None)],
        [([*WORKER, "replicas"], 2_147_483_647)],
        [([*WORKER, "numOfHosts"], 2_147_483_647), ([*WORKER, "suspend"], True)],
        [([*WORKER, "minReplicas"], None), ([*WORKER, "maxReplicas"], None)],
        [([*WORKER, "minReplicas"], 5)],
        [([*WORKER, "numOfHosts"], None)],
        [(["spec", "workerGroupSpecs"], DELETE)],
        [([*HEAD, "rayStartParams"], None)],
        [([*HEAD, "resources"], {"CPU": "1"}), ([*HEAD, "rayStartParams"], {"num-cpus": ""})],
        [([*WORKER, "labels"], {"ray.io/accelerator-type": "A100", "zone": ""})],
        [(["spec", "authOptions"], {"mode": "disabled"})],
        [(["spec", "tlsOptions"], {"enabled": False})],
        [(["spec", "upgradeStrategy"], {"type": "None"})],
        [(["spec", "upgradeStrategy"], {"type": "Recreate"})],
        [(["spec", "rayVersion"], "nightly")],
        [(["spec", "enableInTreeAutoscaling"], False), (["spec", "autoscalerOptions"], {"version": "v2"})],
        [(["spec", "autoscalerOptions"], {"resources": {"limits": {"cpu": 0.5}, "requests": None}})],
        [([*WORKER, *CONTAINER, "resources"], None)],
        [([*WORKER, *CONTAINER, "resources"], {"limits": {"nvidia.com/gpu": 1}})],
        [(["metadata", "name"], "x" * 53)],
        [(["metadata", "labels"], {"volcano.sh/network-topology-highest-tier-allowed": "2"})],
        [(["metadata", "annotations"], {"ray.io/ft-enabled": "false"})],
        [([*WORKER, "template", "metadata"], {"finalizers": ["example.com/mine", "kubernetes", "orphan"]})],
        [([*HEAD, "headService"], {"metadata": {"name": "mine"}, "spec": {"ports": [{"port": 1}]}})],
        [([*HEAD, "headService"], {"metadata": {"name": "demo-headless"}})],
        [([*HEAD, "headService"], {"metadata": {"name": "demo-serve-svc"}})],
        [([*HEAD, "headService"], {"spec": {"type": "NodePort", "externalName": "", "externalIPs": None}})],
    ],
)
def test_what_users_of_kuberay_write_is_fine(fields: list[tuple[Path, object]]) -> None:
    assert problems(with_fields(*fields)) == []


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (
            ["metadata", "name"],
            "x" * 54,
            "metadata.name: has 54 characters; at most 53 leave room for the names of pods and services",
        ),
        (["metadata", "name"], "1demo", 'metadata.name: "1demo" can\'t name a Service'),
        (["metadata", "name"], "de.mo", 'metadata.name: "de.mo" can\'t name a Service'),
        (
            ["metadata", "labels"],
            {"volcano.sh/queue-name": "Ray_Batch"},
            'metadata.labels[volcano.sh/queue-name]: "Ray_Batch" can\'t be the name of an object',
        ),
        (
            ["metadata", "labels"],
            {"ray.io/priority-class-name": "High"},
            'metadata.labels[ray.io/priority-class-name]: "High" can\'t be the name of an object',
        ),
        (
            ["metadata", "labels"],
            {"volcano.sh/network-topology-mode": "medium"},
            'metadata.labels[volcano.sh/network-topology-mode]: must be hard or soft, not "medium"',
        ),
        (
            ["metadata", "labels"],
            {"volcano.sh/network-topology-highest-tier-allowed": "two"},
            "metadata.labels[volcano.sh/network-topology-highest-tier-allowed]: must be a whole number from 0 up",
        ),
    ],
)
def test_names_labels_and_annotations(path: Path, value: object, problem: str) -> None:
    (told,) = problems(with_fields((path, value)))
    assert told.startswith(problem)


@pytest.mark.parametrize("group", [HEAD, WORKER])
@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (["template"], {}, "template.spec.containers: must have at least one container: the first one runs Ray"),
        (["template", "spec"], None, "template.spec.containers: must have at least one container"),
        (["template", "spec", "containers"], [], "template.spec.containers: must have at least one container"),
        (["template", "spec", "containers"], {}, "template.spec.containers: must be a list, not a mapping"),
        ([*CONTAINER, "name"], 5, "template.spec.containers[0].name: must be a string, not the integer 5"),
        ([*CONTAINER, "command"], "ray start", "template.spec.containers[0].command: must be a list, not the string"),
        (
            [*CONTAINER, "env"],
            [{"name": "A", "value": 1}],
            'template.spec.containers[0].env[0].value: must be a string, not the integer 1; put it in quotes: "1"',
        ),
        (
            [*CONTAINER, "resources"],
            {"requests": {"cpu": "lots"}},
            'template.spec.containers[0].resources.requests[cpu]: "lots" is not a quantity; write a number',
        ),
        (
            [*CONTAINER, "resources"],
            {"limits": {"memory": "-1Gi"}},
            "template.spec.containers[0].resources.limits[memory]: must not be negative, got -1Gi",
        ),
        (
            [*CONTAINER, "resources"],
            {"limits": {"nvidia.com/gpu": -1}},
            "template.spec.containers[0].resources.limits[nvidia.com/gpu]: must not be negative, got -1",
        ),
        (
            [*CONTAINER, "resources"],
            {"limits": {"cpu": True}},
            "template.spec.containers[0].resources.limits[cpu]: must be a quantity such as",
        ),
        (
            [*CONTAINER, "resources"],
            {"limits": {"cpu": "1"}, "requests": {"cpu": "1500m"}},
            "template.spec.containers[0].resources.requests[cpu]: asks for 1500m, more than the limit of 1",
        ),
        (
            ["template", "spec", "initContainers"],
            [{"name": "init", "resources": {"requests": {"cpu": "1 core"}}}],
            'template.spec.initContainers[0].resources.requests[cpu]: "1 core" is not a quantity',
        ),
        (
            ["template", "spec", "overhead"],
            {"cpu": "-250m"},
            "template.spec.overhead[cpu]: must not be negative, got -250m",
        ),
        (
            ["template", "spec", "resources"],
            {"requests": {"cpu": "-1"}},
            "template.spec.resources.requests[cpu]: must not be negative, got -1",
        ),
        (["template", "spec", "resources"], "1", "template.spec.resources: must be a mapping"),
        (["resources"], {"GPU": "two"}, 'resources[GPU]: "two" is not a quantity'),
        (["resources"], {"CPU": "-1"}, "resources[CPU]: must not be negative, got -1"),
        (["labels"], {"a b": "c"}, "labels[a b]: is no valid label key"),
        (["labels"], {"Ray.IO/x": "c"}, "labels[Ray.IO/x]: is no valid label key"),
        (["labels"], {"a": "b c"}, 'labels[a]: "b c" is no valid label value'),
        (
            ["template", "metadata"],
            {"labels": {"team": "red team"}},
            'template.metadata.labels[team]: "red team" is no',
        ),
        (["template", "metadata"], {"finalizers": ["bad"]}, 'template.metadata.finalizers[0]: "bad" can\'t be a'),
        (["template", "metadata"], {"finalizers": ["a/b", "a b/c"]}, 'template.metadata.finalizers[1]: "a b/c" can\'t'),
        (["template", "metadata"], {"finalizers": ["a/"]}, 'template.metadata.finalizers[0]: "a/" can\'t be a'),
        (
            ["template", "metadata"],
            {"finalizers": ["orphan", "foregroundDeletion"]},
            "template.metadata.finalizers: can't have both foregroundDeletion and orphan",
        ),
        (["template", "metadata"], {"labels": {"/team": "red"}}, "template.metadata.labels[/team]: is no valid label"),
        (["rayStartParams"], {"labels": "a=b"}, "rayStartParams[labels]: is not allowed; write the labels into"),
    ],
)
def test_groups_and_their_templates(group: Path, path: Path, value: object, problem: str) -> None:
    where = "spec.headGroupSpec" if group == HEAD else "spec.workerGroupSpecs[0]"
    fields = [([*group, *path], value)]
    if path[:1] == ["resources"]:
        fields.append(([*group, "rayStartParams"], {}))
    (told,) = problems(with_fields(*fields))
    assert told.startswith(f"{where}.{problem}")


@pytest.mark.parametrize("param", ["num-cpus", "num-gpus", "memory", "resources"])
def test_amounts_for_ray_are_given_once(param: str) -> None:
    obj = with_fields(([*WORKER, "rayStartParams"], {param: "1"}), ([*WORKER, "resources"], {"CPU": "1"}))
    assert problems(obj) == [
        f"spec.workerGroupSpecs[0].resources: can't be combined with rayStartParams {param}; keep one of the two"
    ]


@pytest.mark.parametrize(
    ("group", "problem"),
    [
        ({"minReplicas": 6}, "minReplicas: 6 is more than maxReplicas, 5; lower it or raise maxReplicas"),
        ({"minReplicas": -1}, "minReplicas: must not be negative, got -1"),
        ({"maxReplicas": -1}, "maxReplicas: must not be negative, got -1"),
        ({"minReplicas": 1, "maxReplicas": 0}, "minReplicas: 1 is more than maxReplicas, 0"),
        ({"numOfHosts": 0}, "numOfHosts: must be at least 1, got 0"),
        ({"numOfHosts": -2}, "numOfHosts: must be at least 1, got -2"),
        (
            {"replicas": 2_147_483_647, "maxReplicas": None},
            "replicas: asks for 2147483647 pods, at most 100000 can form a cluster; lower it",
        ),
        ({"minReplicas": 100_001, "maxReplicas": 100_001}, "minReplicas: asks for 100001 pods"),
        ({"numOfHosts": 50_001}, "numOfHosts: asks for 100002 pods"),
        ({"groupName": ""}, 'groupName: pods can\'t be named after ""'),
        ({"groupName": "small_group"}, 'groupName: pods can\'t be named after "small_group"'),
        ({"groupName": "small-"}, 'groupName: pods can\'t be named after "small-"'),
        ({"groupName": "s" * 64}, f'groupName: pods can\'t be named after "{"s" * 64}"'),
        ({"groupName": "headgroup"}, 'groupName: "headgroup" is reserved; choose another name'),
        ({"groupName": "submittergroup"}, 'groupName: "submittergroup" is reserved; choose another name'),
        ({"idleTimeoutSeconds": 60}, "idleTimeoutSeconds: needs the second autoscaler"),
    ],
)
def test_worker_groups(group: Json, problem: str) -> None:
    (told,) = problems(with_fields(*(([*WORKER, key], value) for key, value in group.items())))
    assert told.startswith(f"spec.workerGroupSpecs[0].{problem}")


def worker_groups(number: int, **changes: Any) -> Json:
    """A cluster of so many groups that differ by name and by these fields from the one that is fine."""
    one = VALID["spec"]["workerGroupSpecs"][0]
    groups = [{**one, "groupName": f"g{index}", **changes} for index in range(number)]
    return with_fields((["spec", "workerGroupSpecs"], groups))


def test_all_groups_together_are_counted() -> None:
    assert problems(worker_groups(3, replicas=33_333, maxReplicas=None)) == []
    assert problems(worker_groups(4, replicas=25_000, maxReplicas=None)) == [
        "spec.workerGroupSpecs: asks for 100001 pods, at most 100000 can form a cluster, the head and all groups "
        "together; lower replicas"
    ]


def test_more_groups_than_can_be_handled_are_refused() -> None:
    assert problems(worker_groups(1000)) == []
    assert problems(worker_groups(1001)) == [
        "spec.workerGroupSpecs: has 1001 groups, at most 1000 can be handled; merge those of one shape"
    ]


def test_two_groups_of_one_name_are_refused_at_the_second() -> None:
    twin = copy.deepcopy(VALID["spec"]["workerGroupSpecs"][0])
    assert problems(with_fields((["spec", "workerGroupSpecs", 1], twin))) == [
        'spec.workerGroupSpecs[1].groupName: "small-group" is the name of workerGroupSpecs[0] already; '
        "give each group its own"
    ]


V2: tuple[tuple[Path, object], ...] = (
    (["spec", "enableInTreeAutoscaling"], True),
    (["spec", "autoscalerOptions"], {"version": "v2"}),
)
V2_ENV = [{"name": "RAY_enable_autoscaler_v2", "value": "1"}]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (
            [V2[0], ([*WORKER, "suspend"], True)],
            "spec.workerGroupSpecs[0].suspend: can't be true with enableInTreeAutoscaling",
        ),
        ([*V2, ([*WORKER, "idleTimeoutSeconds"], -1)], "spec.workerGroupSpecs[0].idleTimeoutSeconds: must not be"),
        ([*V2, ([*WORKER, "idleTimeoutSeconds"], 60)], None),
        ([V2[0], ([*HEAD, *CONTAINER, "env"], V2_ENV), ([*WORKER, "idleTimeoutSeconds"], 60)], None),
        (
            [*V2, ([*WORKER, "priority"], 1)],
            'spec.workerGroupSpecs[0].priority: needs Ray 2.56.0 or newer, but rayVersion is "2.52.0"',
        ),
        (
            [*V2, ([*WORKER, "priority"], 1), (["spec", "rayVersion"], DELETE)],
            "spec.workerGroupSpecs[0].priority: needs Ray 2.56.0 or newer, but rayVersion is not set",
        ),
        ([*V2, ([*WORKER, "priority"], 1), (["spec", "rayVersion"], "2.56.0")], None),
        (
            [V2[0], ([*WORKER, "priority"], 1), (["spec", "rayVersion"], "2.56.1")],
            "spec.workerGroupSpecs[0].priority: needs the second autoscaler",
        ),
        (
            [([*HEAD, *CONTAINER, "env"], V2_ENV)],
            "spec.headGroupSpec.template.spec.containers[0].env: RAY_enable_autoscaler_v2 needs enable",
        ),
        (
            [*V2, ([*HEAD, *CONTAINER, "env"], V2_ENV)],
            "spec.headGroupSpec.template.spec.containers[0].env: RAY_enable_autoscaler_v2 and autoscaler",
        ),
        (
            [*V2, ([*WORKER, "template", "spec", "restartPolicy"], "Always")],
            "spec.workerGroupSpecs[0].template.spec.restartPolicy: must be Never with autoscalerOptions.version v2",
        ),
        ([*V2, ([*WORKER, "template", "spec", "restartPolicy"], "Never")], None),
        (
            [(["spec", "autoscalerOptions"], {"idleTimeoutSeconds": -1})],
            "spec.autoscalerOptions.idleTimeoutSeconds: must not be negative, got -1",
        ),
        (
            [(["spec", "autoscalerOptions"], {"env": [{"name": "KUBERAY_GEN_AUTOSCALER_START_CMD"}]})],
            "spec.autoscalerOptions.env[0]: KUBERAY_GEN_AUTOSCALER_START_CMD is set by the operator",
        ),
        (
            [(["spec", "autoscalerOptions"], {"resources": {"limits": {"cpu": "much"}}})],
            'spec.autoscalerOptions.resources.limits[cpu]: "much" is not a quantity',
        ),
        (
            [V2[0], ([*HEAD, *CONTAINER, "name"], "autoscaler")],
            'spec.headGroupSpec.template.spec.containers[0].name: "autoscaler" is the name of the container that',
        ),
        ([([*HEAD, *CONTAINER, "name"], "autoscaler")], None),
        (
            [(["spec", "autoscalerOptions"], {"resources": {"limits": [1]}})],
            "spec.autoscalerOptions.resources.limits: must be a mapping",
        ),
    ],
)
def test_the_autoscaler(fields: list[tuple[Path, object]], problem: str | None) -> None:
    told = problems(with_fields(*fields))
    assert len(told) == (0 if problem is None else 1)
    assert problem is None or told[0].startswith(problem)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"host": "ray.example.org", "path": "/"}, None),
        ({"host": "*.example.org"}, None),
        ({"host": "", "path": ""}, None),
        ({"host": "Ray_1"}, 'spec.headGroupSpec.ingressOptions.host: "Ray_1" is no DNS name'),
        ({"path": "x"}, 'spec.headGroupSpec.ingressOptions.path: must begin with "/", got "x"'),
    ],
)
def test_the_ingress(options: Json, problem: str | None) -> None:
    told = problems(with_fields(([*HEAD, "enableIngress"], True), ([*HEAD, "ingressOptions"], options)))
    assert len(told) == (0 if problem is None else 1)
    assert problem is None or told[0].startswith(problem)
    assert problems(with_fields(([*HEAD, "ingressOptions"], options))) == []


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ([(["spec", "historyServerOptions"], {})], "spec.historyServerOptions: "),
        ([(["spec", "networkPolicy"], {"mode": "DenyAll"})], "spec.networkPolicy: "),
        ([(["spec", "tlsOptions"], {"enabled": True})], "spec.tlsOptions.enabled: "),
    ],
)
def test_what_this_version_does_not_have_is_said_so(fields: list[tuple[Path, object]], problem: str) -> None:
    assert problems(with_fields(*fields)) == [
        f"{problem}is not supported yet by this version of Muster; remove it",
    ]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (
            [([*HEAD, *CONTAINER, "env"], [{"name": "RAY_REDIS_ADDRESS", "value": "r:6379"}])],
            "spec.headGroupSpec.template.spec.containers[0].env: RAY_REDIS_ADDRESS is not allowed",
        ),
        (
            [([*HEAD, *CONTAINER, "env"], [{"name": "REDIS_USERNAME", "value": "me"}])],
            "spec.headGroupSpec.template.spec.containers[0].env: REDIS_USERNAME is not allowed",
        ),
        (
            [([*HEAD, "rayStartParams"], {"redis-username": "me"})],
            "spec.headGroupSpec.rayStartParams[redis-username]: is not allowed",
        ),
        (
            [([*HEAD, "serviceType"], "ExternalName")],
            'spec.headGroupSpec.serviceType: must be ClusterIP, NodePort or LoadBalancer, not "ExternalName"',
        ),
        (
            [([*HEAD, "headService"], {"spec": {"ports": "all"}})],
            "spec.headGroupSpec.headService.spec.ports: must be a list",
        ),
        (
            [([*HEAD, "headService"], {"spec": {"type": "ExternalName"}})],
            'spec.headGroupSpec.headService.spec.type: must be ClusterIP, NodePort or LoadBalancer, not "ExternalName"',
        ),
        (
            [([*HEAD, "headService"], {"spec": {"externalName": "other-head-svc.other.svc.cluster.local"}})],
            "spec.headGroupSpec.headService.spec.externalName: is not allowed",
        ),
        (
            [([*HEAD, "headService"], {"spec": {"externalIPs": ["10.96.0.1"]}})],
            "spec.headGroupSpec.headService.spec.externalIPs: is not allowed",
        ),
        (
            [([*HEAD, "headService"], {"metadata": {"name": "My_Service"}})],
            'spec.headGroupSpec.headService.metadata.name: "My_Service" can\'t name a Service',
        ),
        (
            [([*HEAD, "headService"], {"metadata": {"name": "demo-headless"}}), ([*WORKER, "numOfHosts"], 2)],
            'spec.headGroupSpec.headService.metadata.name: "demo-headless" is the name of the service that numOfHosts',
        ),
        (
            [
                ([*HEAD, "headService"], {"metadata": {"name": "demo-serve-svc"}}),
                (["metadata", "annotations"], {"ray.io/enable-serve-service": "true"}),
                ([*HEAD, *CONTAINER, "ports"], DELETE),
            ],
            'spec.headGroupSpec.headService.metadata.name: "demo-serve-svc" is the name of the service that the annot',
        ),
        (
            [
                ([*HEAD, "headService"], {"metadata": {"name": "job-head-svc"}}),
                (
                    ["metadata", "labels"],
                    {"ray.io/originated-from-crd": "RayJob", "ray.io/originated-from-cr-name": "job"},
                ),
            ],
            'spec.headGroupSpec.headService.metadata.name: "job-head-svc" is the name of the service that the RayJob',
        ),
        (
            [
                (["metadata", "labels"], {"ray.io/originated-from-crd": "RayService"}),
                (["spec", "upgradeStrategy"], {"type": "None"}),
            ],
            "spec.upgradeStrategy: is not allowed in a cluster of a RayService",
        ),
    ],
)
def test_head_and_fault_tolerance(fields: list[tuple[Path, object]], problem: str) -> None:
    (told,) = problems(with_fields(*fields))
    assert told.startswith(problem)


def test_all_problems_are_told_at_once_in_the_order_of_the_rules() -> None:
    obj = with_fields(
        (["metadata", "name"], "x" * 60),
        ([*HEAD, "template"], {}),
        ([*WORKER, "minReplicas"], 9),
        ([*WORKER, "resources"], {"CPU": "-1"}),
    )
    assert [told.split(":")[0] for told in problems(obj)] == [
        "metadata.name",
        "spec.headGroupSpec.template.spec.containers",
        "spec.workerGroupSpecs[0].resources[CPU]",
        "spec.workerGroupSpecs[0].minReplicas",
    ]


FIELDS = [
    "containers",
    "name",
    "env",
    "resources",
    "limits",
    "requests",
    "cpu",
    "metadata",
    "spec",
    "overhead",
    "ports",
]
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "1", "-1", "x", "env"]),
    lambda children: st.lists(children, max_size=2) | st.dictionaries(st.sampled_from(FIELDS), children, max_size=3),
    max_leaves=6,
)
PLACES: list[Path] = [
    [*HEAD, "template"],
    [*HEAD, "template", "spec"],
    [*HEAD, *CONTAINER],
    [*HEAD, "headService"],
    [*WORKER, *CONTAINER, "resources"],
    [*WORKER, "template", "spec", "initContainers"],
    ["spec", "autoscalerOptions", "resources"],
    ["spec", "autoscalerOptions", "env"],
    ["metadata"],
]


@given(place=st.sampled_from(PLACES), value=JSON_VALUES)
def test_whatever_could_be_parsed_gets_an_answer_and_what_passes_can_be_built(place: Path, value: object) -> None:
    try:
        cluster = RayCluster.parse(with_fields((place, value)))
    except MalformedResource:
        return
    found = validate_ray_cluster(cluster)
    for problem in found:
        assert problem.path.startswith(("metadata", "spec"))
        assert problem.message
    if not found:
        assert ray_cluster_pod_group(cluster)
        assert head_service(cluster)
        assert all(each.body for each in made_of_ray_cluster(cluster, PodOptions()))
        assert head_pod(cluster, "h")["spec"]["containers"]
        assert worker_pod(cluster, cluster.spec.worker_groups[0], "w")["spec"]["containers"]
