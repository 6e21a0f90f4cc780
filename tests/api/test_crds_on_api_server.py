"""The CustomResourceDefinitions on a real API server, installed and used with kubectl as users do."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from muster.api.podgroup import PodGroup
from muster.api.raycluster import RayCluster
from muster.api.rayjob import RayJob
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kubectl import Answer, run_kubectl

pytestmark = pytest.mark.control_plane

Json = dict[str, Any]
Kubectl = Callable[..., Answer]

CRDS = Path(__file__).parents[2] / "crds"
TEMPLATE: Json = {"spec": {"containers": [{"name": "ray", "image": "ray"}]}}
RAY_CLUSTER: Json = {
    "apiVersion": "ray.io/v1",
    "kind": "RayCluster",
    "metadata": {"name": "demo"},
    "spec": {
        "headGroupSpec": {"template": TEMPLATE},
        "workerGroupSpecs": [{"groupName": "small", "template": TEMPLATE}],
    },
}
RAY_JOB: Json = {
    "apiVersion": "ray.io/v1",
    "kind": "RayJob",
    "metadata": {"name": "demo-job"},
    "spec": {"entrypoint": "python job.py", "rayClusterSpec": RAY_CLUSTER["spec"]},
}
POD_GROUP: Json = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "PodGroup",
    "metadata": {"name": "gang"},
    "spec": {"minMember": 3, "minResources": {"cpu": 3, "memory": "3Gi"}},
    "status": {"phase": "Pending"},
}


@pytest.fixture(scope="module")
def installed(control_plane: ControlPlane) -> Answer:
    """What `kubectl apply -f crds/` said."""
    return run_kubectl(control_plane, "apply", "-f", str(CRDS))


@pytest.fixture
def kubectl(control_plane: ControlPlane, installed: Answer, namespace: str) -> Kubectl:
    """Run kubectl in a fresh namespace; `obj` goes to its standard input."""
    assert installed.returncode == 0, installed.stderr
    return lambda *arguments, obj=None: run_kubectl(control_plane, "--namespace", namespace, *arguments, obj=obj)


def changed(obj: Json, **spec: Any) -> Json:
    result = copy.deepcopy(obj)
    result["spec"].update(spec)
    return result


def stored(kubectl: Kubectl, obj: Json) -> Json:
    """What the API server keeps of an object that is applied with kubectl."""
    answer = kubectl("apply", "-f", "-", "-o", "json", obj=obj)
    assert answer.returncode == 0, answer.stderr
    result: Json = json.loads(answer.stdout)
    return result


def refusal(kubectl: Kubectl, obj: Json) -> str:
    answer = kubectl("apply", "-f", "-", obj=obj)
    assert answer.returncode != 0, f"was accepted: {answer.stdout}"
    return answer.stderr


def test_kubectl_apply_installs_them_without_a_warning_about_size(installed: Answer) -> None:
    assert installed.returncode == 0, installed.stderr
    assert "Too long" not in installed.stderr
    assert len(installed.stdout.splitlines()) == len(list(CRDS.iterdir()))


def test_applying_them_again_changes_nothing(control_plane: ControlPlane, installed: Answer) -> None:
    again = run_kubectl(control_plane, "apply", "-f", str(CRDS))
    assert again.returncode == 0, again.stderr
    assert all(line.endswith("unchanged") for line in again.stdout.splitlines()), again.stdout


def test_the_api_server_finds_nothing_wrong_with_the_schemas(control_plane: ControlPlane, installed: Answer) -> None:
    answer = run_kubectl(control_plane, "get", "crds", "-o", "json")
    for crd in json.loads(answer.stdout)["items"]:
        conditions = {condition["type"]: condition["status"] for condition in crd["status"]["conditions"]}
        assert conditions["NamesAccepted"] == conditions["Established"] == "True"
        assert conditions.get("NonStructuralSchema", "False") == "False"


def test_defaults_of_a_ray_cluster_appear_also_in_place_of_null(kubectl: Kubectl) -> None:
    groups = [
        {"groupName": "absent", "template": TEMPLATE},
        {"groupName": "null", "template": TEMPLATE, "replicas": None, "numOfHosts": None, "maxReplicas": None},
        {"groupName": "zero", "template": TEMPLATE, "replicas": 0, "maxReplicas": 0},
    ]
    kept = stored(kubectl, changed(RAY_CLUSTER, workerGroupSpecs=groups, networkPolicy={}))
    counts = [
        (group["replicas"], group["minReplicas"], group["maxReplicas"], group["numOfHosts"])
        for group in kept["spec"]["workerGroupSpecs"]
    ]
    assert counts == [(0, 0, 2147483647, 1), (0, 0, 2147483647, 1), (0, 0, 0, 1)]
    assert kept["spec"]["networkPolicy"] == {"mode": "DenyAll"}
    assert RayCluster.parse(kept).spec.worker_groups[0].maximum == 2147483647


OF_A_GROUP = ("replicas", "minReplicas", "maxReplicas", "numOfHosts", "idleTimeoutSeconds", "priority")
OF_A_JOB = ("backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished")


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1, 99_999_999_999])
def test_a_number_beyond_int32_is_not_stored(kubectl: Kubectl, number: int) -> None:
    told = refusal(kubectl, with_numbers(number))
    assert [field for field in OF_A_JOB if f"spec.{field}: Invalid value" not in told] == []
    group = "spec.rayClusterSpec.workerGroupSpecs[0]"
    assert [field for field in OF_A_GROUP if f"{group}.{field}: Invalid value" not in told] == []


@pytest.mark.parametrize("number", [2**31 - 1, -(2**31)])
def test_whether_one_within_makes_sense_is_not_the_schema_s_question(kubectl: Kubectl, number: int) -> None:
    spec = stored(kubectl, with_numbers(number))["spec"]
    assert {spec[field] for field in OF_A_JOB} == {number}


def with_numbers(number: int) -> Json:
    group = {"groupName": "small", "template": TEMPLATE, **dict.fromkeys(OF_A_GROUP, number)}
    cluster = {**RAY_CLUSTER["spec"], "workerGroupSpecs": [group]}
    return changed(RAY_JOB, rayClusterSpec=cluster, **dict.fromkeys(OF_A_JOB, number))


def test_defaults_of_a_ray_job_appear(kubectl: Kubectl) -> None:
    spec = stored(kubectl, RAY_JOB)["spec"]
    assert (spec["submissionMode"], spec["backoffLimit"], spec["ttlSecondsAfterFinished"]) == ("K8sJobMode", 0, 0)
    assert spec["rayClusterSpec"]["workerGroupSpecs"][0]["numOfHosts"] == 1
    assert "suspend" not in spec


def test_defaults_of_a_pod_group_and_a_queue_appear(kubectl: Kubectl, namespace: str) -> None:
    group = stored(kubectl, changed(POD_GROUP, networkTopology={}, subGroupPolicy=[{"name": "a"}]))
    assert group["spec"]["queue"] == "default"
    assert group["spec"]["networkTopology"] == {"mode": "hard"}
    assert group["spec"]["subGroupPolicy"] == [{"name": "a", "subGroupSize": 1, "minSubGroups": 0}]
    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": namespace},
        "spec": {},
    }
    assert stored(kubectl, queue)["spec"] == {"weight": 1, "dequeueStrategy": "traverse"}


DELETE = {"policy": "DeleteCluster"}
BY_STATUS = {"policy": "DeleteSelf", "condition": {"jobStatus": "FAILED"}}


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        (changed(RAY_CLUSTER, managedBy="me"), "the managedBy field value must be either"),
        (changed(RAY_JOB, managedBy="me"), "the managedBy field value must be either"),
        (
            changed(RAY_JOB, deletionStrategy={"onSuccess": DELETE, "onFailure": DELETE, "deletionRules": [BY_STATUS]}),
            "onSuccess and onFailure can't be combined with deletionRules",
        ),
        (changed(RAY_JOB, deletionStrategy={}), "set deletionRules, or both onSuccess and onFailure"),
        (changed(RAY_JOB, deletionStrategy={"onSuccess": DELETE}), "set deletionRules, or both onSuccess and"),
        (changed(RAY_JOB, deletionStrategy={"deletionRules": []}), "should have at least 1 items"),
        (
            changed(RAY_JOB, deletionStrategy={"deletionRules": [{**DELETE, "condition": {}}]}),
            "one of jobStatus and jobDeploymentStatus must be set",
        ),
        (
            changed(
                RAY_JOB,
                deletionStrategy={
                    "deletionRules": [{**DELETE, "condition": {"jobStatus": "FAILED", "jobDeploymentStatus": "Failed"}}]
                },
            ),
            "jobStatus and jobDeploymentStatus can't both be set",
        ),
        (
            changed(RAY_JOB, deletionStrategy={"deletionRules": [{**DELETE, "condition": {"jobStatus": "STOPPED"}}]}),
            'Unsupported value: "STOPPED"',
        ),
        (
            changed(POD_GROUP, networkTopology={"highestTierAllowed": 1, "highestTierName": "rack"}),
            "highestTierAllowed and highestTierName can't both be set",
        ),
        (
            changed(POD_GROUP, subGroupPolicy=[{"networkTopology": {"highestTierAllowed": 1, "highestTierName": "r"}}]),
            "highestTierAllowed and highestTierName can't both be set",
        ),
        (changed(POD_GROUP, minMember=-1), "spec.minMember: Invalid value: -1: spec.minMember in body should be"),
        (changed(POD_GROUP, minMember="3"), 'spec.minMember: Invalid value: "string"'),
        (changed(POD_GROUP, queue="Not A Queue"), "spec.queue: Invalid value"),
        (changed(POD_GROUP, minResources={"cpu": True}), "spec.minResources.cpu: Invalid value"),
        (
            changed(RAY_CLUSTER, workerGroupSpecs=[{"groupName": "g", "template": TEMPLATE, "replicas": "3"}]),
            'spec.workerGroupSpecs[0].replicas: Invalid value: "string"',
        ),
        (
            changed(RAY_CLUSTER, workerGroupSpecs=[{"template": TEMPLATE}]),
            "workerGroupSpecs[0].groupName: Required value",
        ),
        (
            changed(RAY_CLUSTER, headGroupSpec={"template": TEMPLATE, "rayStartParams": {"num-cpus": 1}}),
            "spec.headGroupSpec.rayStartParams.num-cpus: Invalid value",
        ),
        (changed(RAY_JOB, preRunningDeadlineSeconds=0), "spec.preRunningDeadlineSeconds: Invalid value: 0"),
        (changed(RAY_JOB, rayClusterSpec={}), "spec.rayClusterSpec.headGroupSpec: Required value"),
    ],
)
def test_what_makes_no_sense_is_refused_by_field(kubectl: Kubectl, obj: Json, message: str) -> None:
    assert message in refusal(kubectl, obj)


@pytest.mark.parametrize("obj", [RAY_CLUSTER, RAY_JOB])
def test_managed_by_may_be_added_but_not_changed(kubectl: Kubectl, obj: Json) -> None:
    stored(kubectl, obj)
    stored(kubectl, changed(obj, managedBy="ray.io/kuberay-operator"))
    told = refusal(kubectl, changed(obj, managedBy="kueue.x-k8s.io/multikueue"))
    assert "the managedBy field is immutable" in told


@pytest.mark.parametrize("strategy", [{"onSuccess": DELETE, "onFailure": DELETE}, {"deletionRules": [BY_STATUS]}])
def test_both_forms_of_the_deletion_strategy_are_taken(kubectl: Kubectl, strategy: Json) -> None:
    stored(kubectl, changed(RAY_JOB, deletionStrategy=strategy))


def test_a_submission_mode_and_an_empty_template_are_left_to_the_controllers_judgement(kubectl: Kubectl) -> None:
    stored(kubectl, changed(RAY_JOB, submissionMode="Carrier", rayClusterSpec={"headGroupSpec": {"template": {}}}))


QUEUE: Json = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "spec": {"weight": 2}}
SLIPS = [
    (changed(RAY_JOB, shutdownAfterJobsFinishes=True), "spec.shutdownAfterJobsFinishes"),
    (changed(RAY_JOB, entryPoint="python job.py"), "spec.entryPoint"),
    (changed(RAY_JOB, submitterConfig={"backofLimit": 1}), "spec.submitterConfig.backofLimit"),
    (
        changed(RAY_JOB, deletionStrategy={"deletionRules": [{**BY_STATUS, "when": "now"}]}),
        "spec.deletionStrategy.deletionRules[0].when",
    ),
    (
        changed(RAY_JOB, rayClusterSpec={**RAY_CLUSTER["spec"], "rayVersio": "2.52.0"}),
        "spec.rayClusterSpec.rayVersio",
    ),
    (changed(RAY_CLUSTER, autoscalerOptions={"idleTimeout": 60}), "spec.autoscalerOptions.idleTimeout"),
    (changed(RAY_CLUSTER, gcsFaultToleranceOptions={"redisAdress": "r"}), "spec.gcsFaultToleranceOptions.redisAdress"),
    (changed(RAY_CLUSTER, headGroupSpec={"template": TEMPLATE, "service": {}}), "spec.headGroupSpec.service"),
    (
        changed(RAY_CLUSTER, headGroupSpec={"template": TEMPLATE, "ingressOptions": {"tls": [{"secret": "s"}]}}),
        "spec.headGroupSpec.ingressOptions.tls[0].secret",
    ),
    (
        changed(RAY_CLUSTER, workerGroupSpecs=[{"groupName": "g", "template": TEMPLATE, "minReplica": 1}]),
        "spec.workerGroupSpecs[0].minReplica",
    ),
    (changed(POD_GROUP, minMembers=3), "spec.minMembers"),
    (changed(POD_GROUP, networkTopology={"tier": 1}), "spec.networkTopology.tier"),
    (changed(QUEUE, wieght=3), "spec.wieght"),
    (changed(QUEUE, guarantee={"resources": {"cpu": 1}}), "spec.guarantee.resources"),
    (RAY_JOB | {"specs": {}}, "specs"),
]


@pytest.mark.parametrize(("obj", "path"), SLIPS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_misspelt_field_is_refused_by_its_path(kubectl: Kubectl, namespace: str, obj: Json, path: str) -> None:
    told = refusal(kubectl, named(obj, namespace))
    assert f'strict decoding error: unknown field "{path}"' in told


@pytest.mark.parametrize(("obj", "path"), SLIPS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_client_that_is_not_strict_is_warned_and_the_field_is_not_stored(
    kubectl: Kubectl, namespace: str, obj: Json, path: str
) -> None:
    """As the API server answers who does not say how strict it is to be."""
    obj = named(obj, namespace)
    group_version, plural = obj["apiVersion"], f"{obj['kind'].lower()}s"
    where = plural if obj["kind"] == "Queue" else f"namespaces/{namespace}/{plural}"
    answer = kubectl("create", "--raw", f"/apis/{group_version}/{where}", "-f", "-", obj=obj)
    assert answer.returncode == 0, answer.stderr
    assert f'unknown field "{path}"' in answer.stderr
    field = path.rpartition(".")[2]
    assert f'"{field}"' in json.dumps(obj)
    assert f'"{field}"' not in kubectl("get", obj["kind"], obj["metadata"]["name"], "-o", "json").stdout


def named(obj: Json, name: str) -> Json:
    """The object; a queue, which belongs to no namespace, with a name of its own."""
    return obj if "metadata" in obj else {**obj, "metadata": {"name": name}}


def test_what_kubernetes_defines_keeps_fields_of_any_version(kubectl: Kubectl) -> None:
    newer: Json = {"added": {"later": [1, {"deep": "x"}]}}
    template = {"metadata": newer, "spec": {"containers": [{"name": "ray", **newer}], **newer}, **newer}
    options = {"resources": newer, "env": [{"name": "A", **newer}], "securityContext": newer}
    group = {"template": template, "headService": {"metadata": newer, "spec": newer}}
    obj = changed(RAY_CLUSTER, autoscalerOptions=options, headGroupSpec=group)
    kept = stored(kubectl, obj)["spec"]
    assert kept["autoscalerOptions"] == options
    assert kept["headGroupSpec"] == group


def test_a_status_keeps_what_another_version_wrote(kubectl: Kubectl) -> None:
    stored(kubectl, RAY_JOB)
    newer = {"added": {"later": 1}, "rayClusterStatus": {"added": "x"}}
    patch = ("--subresource=status", "--type=merge", "-p", json.dumps({"status": newer}), "-o", "json")
    status = json.loads(kubectl("patch", "rayjob/demo-job", *patch).stdout)["status"]
    assert {key: status[key] for key in newer} == newer


def test_a_pod_group_takes_its_status_on_create_and_in_a_plain_update(kubectl: Kubectl) -> None:
    kept = stored(kubectl, POD_GROUP)
    assert PodGroup.parse(kept).dump() == kept
    assert kept["status"] == {"phase": "Pending"}
    assert stored(kubectl, POD_GROUP | {"status": {"phase": "Inqueue"}})["status"] == {"phase": "Inqueue"}


@pytest.mark.parametrize(
    ("obj", "status"),
    [
        (RAY_CLUSTER, {"state": "ready", "desiredCPU": 3, "desiredMemory": "3Gi"}),
        (RAY_JOB, {"jobStatus": "RUNNING", "rayClusterStatus": {"head": {"podIP": "10.0.0.1"}}}),
    ],
)
def test_the_status_of_the_others_is_written_through_its_subresource_only(
    kubectl: Kubectl, obj: Json, status: Json
) -> None:
    assert "status" not in stored(kubectl, obj | {"status": status})
    name = f"{obj['kind'].lower()}/{obj['metadata']['name']}"
    patch = json.dumps({"status": status})
    answer = kubectl("patch", name, "--subresource=status", "--type=merge", "-p", patch, "-o", "json")
    assert answer.returncode == 0, answer.stderr
    written = json.loads(answer.stdout)["status"]
    assert {key: written[key] for key in status} == status


def test_the_start_values_of_a_ray_jobs_counters_come_with_its_status(kubectl: Kubectl) -> None:
    stored(kubectl, RAY_JOB)
    patch = ("--subresource=status", "--type=merge", "-p", '{"status":{"jobStatus":""}}', "-o", "json")
    status = RayJob.parse(json.loads(kubectl("patch", "rayjob/demo-job", *patch).stdout)).status
    assert status
    assert (status.succeeded, status.failed) == (0, 0)


@pytest.mark.parametrize(
    ("obj", "arguments", "header"),
    [
        (
            RAY_CLUSTER,
            ["rayclusters"],
            "NAME  DESIRED WORKERS  AVAILABLE WORKERS  CPUS  MEMORY  GPUS  STATUS  AGE",
        ),
        (
            RAY_CLUSTER,
            ["rayclusters", "-o", "wide"],
            "NAME  DESIRED WORKERS  AVAILABLE WORKERS  CPUS  MEMORY  GPUS  TPUS  STATUS  AGE  HEAD POD IP  "
            "HEAD SERVICE IP",
        ),
        (RAY_JOB, ["rayjobs"], "NAME  JOB STATUS  DEPLOYMENT STATUS  RAY CLUSTER NAME  START TIME  END TIME  AGE"),
        (
            RAY_JOB,
            ["rayjobs", "-o", "wide"],
            "NAME  JOB STATUS  DEPLOYMENT STATUS  RAY CLUSTER NAME  START TIME  END TIME  AGE  REASON  MESSAGE",
        ),
        (POD_GROUP, ["pg"], "NAME  STATUS  MINMEMBER  RUNNINGS  AGE"),
        (POD_GROUP, ["podgroups", "-o", "wide"], "NAME  STATUS  MINMEMBER  RUNNINGS  AGE  QUEUE"),
    ],
)
def test_kubectl_get_prints_the_columns_that_users_know(
    kubectl: Kubectl, obj: Json, arguments: list[str], header: str
) -> None:
    stored(kubectl, obj)
    printed, row = kubectl("get", *arguments).stdout.splitlines()
    assert printed.split() == header.split()
    assert row.split()[0] == obj["metadata"]["name"]


def test_a_pod_groups_row_shows_phase_and_size(kubectl: Kubectl) -> None:
    stored(kubectl, POD_GROUP)
    name, phase, min_member, _age, queue = kubectl("get", "pg", "-o", "wide", "--no-headers").stdout.split()
    assert (name, phase, min_member, queue) == ("gang", "Pending", "3", "default")


def test_queues_have_a_short_name_and_show_their_parent_state_and_weight(kubectl: Kubectl, namespace: str) -> None:
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": namespace}}
    stored(kubectl, queue | {"spec": {"parent": "root"}})
    closed = ["--subresource=status", "--type=merge", "--patch", '{"status": {"state": "Closed"}}']
    kubectl("patch", "queue", namespace, *closed)
    header, row = kubectl("get", "q", namespace).stdout.splitlines()
    assert header.split() == ["NAME", "PARENT", "STATE", "WEIGHT", "AGE"]
    assert row.split()[:4] == [namespace, "root", "Closed", "1"]


def test_kubectl_get_all_shows_clusters_and_jobs(kubectl: Kubectl) -> None:
    stored(kubectl, RAY_CLUSTER)
    stored(kubectl, RAY_JOB)
    names = kubectl("get", "all", "-o", "name").stdout.split()
    assert {"raycluster.ray.io/demo", "rayjob.ray.io/demo-job"} <= set(names)
