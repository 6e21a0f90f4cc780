from __future__ import annotations

import json
from typing import Any

import pytest

from muster.api.rayjob import RayJob
from muster.ray.gang_membership import GangMembership
from muster.ray.job_info import Submission
from muster.ray.submitter import submission, submitter_job, submitter_template
from tests.ray.ray_objects import ray_job

LABELS = {
    "ray.io/originated-from-cr-name": "job",
    "ray.io/originated-from-crd": "RayJob",
    "app.kubernetes.io/created-by": "kuberay-operator",
}


def manifest(job: RayJob | None = None, **options: Any) -> dict[str, Any]:
    options = {"image": "muster:1", "dashboard_address": "svc:8265", "submission_id": "job-abcde", **options}
    return submitter_job(job or ray_job(entrypoint="python x.py"), **options)


def pod_of(job: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = job["spec"]["template"]["spec"]
    return spec


def env_of(job: dict[str, Any]) -> dict[str, str]:
    return {variable["name"]: variable["value"] for variable in pod_of(job)["containers"][0]["env"]}


def test_the_job_has_the_name_of_its_ray_job_and_belongs_to_it() -> None:
    job = manifest()
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job")
    assert job["metadata"]["name"] == "job"
    assert job["metadata"]["namespace"] == "default"
    assert job["metadata"]["labels"] == LABELS
    assert job["metadata"]["ownerReferences"][0] == {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "name": "job",
        "uid": "uid-2",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert job["spec"]["template"]["metadata"]["labels"] == LABELS


def test_the_pod_runs_our_command_without_a_shell_and_with_few_rights() -> None:
    pod = pod_of(manifest(image_pull_policy="Never"))
    (container,) = pod["containers"]
    assert container["name"] == "ray-job-submitter"
    assert (container["image"], container["imagePullPolicy"]) == ("muster:1", "Never")
    assert container["command"] == ["muster", "submit"]
    assert "args" not in container
    assert container["resources"]["requests"] == {"cpu": "50m", "memory": "64Mi"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["restartPolicy"] == "Never"
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}


def test_the_environment_says_where_and_what_to_submit() -> None:
    env = env_of(manifest())
    assert env["RAY_DASHBOARD_ADDRESS"] == "svc:8265"
    assert env["RAY_JOB_SUBMISSION_ID"] == "job-abcde"
    assert env["PYTHONUNBUFFERED"] == "1"
    assert json.loads(env["MUSTER_SUBMISSION"]) == {"entrypoint": "python x.py", "submission_id": "job-abcde"}


@pytest.mark.parametrize(
    "entrypoint", ["echo $(RAY_DASHBOARD_ADDRESS) $$ ${HOME} `date`", "a && b; c | d > e", "echo 'é \"quoted\"'\n\tx"]
)
def test_the_users_text_is_not_for_a_shell_nor_for_the_kubelet_to_expand(entrypoint: str) -> None:
    text = env_of(manifest(ray_job(entrypoint=entrypoint)))["MUSTER_SUBMISSION"]
    assert "$" not in text
    assert text.isascii()
    assert Submission.from_json(text).entrypoint == entrypoint


@pytest.mark.parametrize(
    ("config", "limit"),
    [({}, 2), ({"submitterConfig": {}}, 2), ({"submitterConfig": {"backoffLimit": 0}}, 0),
     ({"submitterConfig": {"backoffLimit": 5}}, 5)],
)  # fmt: skip
def test_how_often_the_submitter_is_tried_again(config: dict[str, Any], limit: int) -> None:
    assert manifest(ray_job(**config))["spec"]["backoffLimit"] == limit


def test_a_verdict_ends_the_job_and_a_disruption_does_not_count() -> None:
    ignore, fail = manifest()["spec"]["podFailurePolicy"]["rules"]
    assert ignore["action"] == "Ignore"
    assert ignore["onPodConditions"] == [{"type": "DisruptionTarget", "status": "True"}]
    assert fail == {
        "action": "FailJob",
        "onExitCodes": {"containerName": "ray-job-submitter", "operator": "In", "values": [1]},
    }


def test_the_submitter_is_a_gated_member_of_the_gang() -> None:
    template = manifest(gang=GangMembership("ray-job-pg"))["spec"]["template"]
    assert template["metadata"]["annotations"] == {
        "scheduling.k8s.io/group-name": "ray-job-pg",
        "volcano.sh/task-spec": "submittergroup",
    }
    assert template["spec"]["schedulerName"] == "muster"
    assert template["spec"]["schedulingGates"] == [{"name": "muster.dev/gang"}]


def user_template(*, metadata: dict[str, Any] | None = None, container: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"metadata": metadata or {}, "spec": {"containers": [container], **spec}}


def test_a_users_template_is_the_base() -> None:
    template = user_template(
        metadata={"labels": {"team": "red"}, "annotations": {"a": "b"}},
        container={
            "name": "mine",
            "image": "theirs",
            "env": [{"name": "A", "value": "1"}],
            "resources": {"limits": {"memory": "1Gi"}},
            "securityContext": {"readOnlyRootFilesystem": False},
        },
        nodeSelector={"disk": "ssd"},
        serviceAccountName="sa",
        securityContext={"runAsUser": 7},
    )
    job = manifest(ray_job(entrypoint="x", submitterPodTemplate=template), gang=GangMembership("pg"))
    made, pod = job["spec"]["template"], pod_of(job)
    (container,) = pod["containers"]
    assert made["metadata"]["labels"] == {"team": "red", **LABELS}
    assert made["metadata"]["annotations"]["a"] == "b"
    assert (container["name"], container["image"]) == ("mine", "muster:1")
    assert container["command"] == ["muster", "submit"]
    assert env_of(job)["A"] == "1"
    assert container["resources"] == {"limits": {"memory": "1Gi"}, "requests": {"cpu": "50m"}}
    assert container["securityContext"]["readOnlyRootFilesystem"] is False
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert pod["nodeSelector"] == {"disk": "ssd"}
    assert pod["serviceAccountName"] == "sa"
    assert pod["securityContext"]["runAsUser"] == 7
    assert pod["restartPolicy"] == "Never"
    assert job["spec"]["podFailurePolicy"]["rules"][1]["onExitCodes"]["containerName"] == "mine"
    assert template["spec"]["containers"][0]["image"] == "theirs"


def test_a_users_own_command_is_run_as_it_is_with_the_same_environment() -> None:
    container = {"name": "mine", "image": "theirs", "command": ["sh", "-c", "x"], "args": ["y"]}
    job = manifest(ray_job(submitterPodTemplate=user_template(container=container, restartPolicy="OnFailure")))
    made = pod_of(job)["containers"][0]
    assert {key: made[key] for key in container} == container
    assert "securityContext" not in made
    assert env_of(job)["RAY_DASHBOARD_ADDRESS"] == "svc:8265"
    assert pod_of(job)["restartPolicy"] == "OnFailure"
    assert "podFailurePolicy" not in job["spec"]


def test_the_way_to_the_token_is_added_unless_the_template_has_its_own() -> None:
    token = {"name": "RAY_AUTH_TOKEN", "valueFrom": {"secretKeyRef": {"name": "demo", "key": "auth_token"}}}
    mode = {"name": "RAY_AUTH_MODE", "value": "token"}
    own = {"name": "RAY_AUTH_TOKEN", "value": "mine"}
    plain = pod_of(manifest(token_env=[mode, token]))["containers"][0]["env"]
    assert [entry for entry in plain if "AUTH" in entry["name"]] == [mode, token]
    job = ray_job(submitterPodTemplate=user_template(container={"name": "c", "env": [own]}))
    given = pod_of(manifest(job, token_env=[mode, token]))["containers"][0]["env"]
    assert [entry for entry in given if "AUTH" in entry["name"]] == [own, mode]


@pytest.mark.parametrize("nothing", [None, ""])
def test_a_template_that_leaves_the_restart_policy_empty_gets_ours(nothing: str | None) -> None:
    job = manifest(ray_job(submitterPodTemplate=user_template(container={"name": "mine"}, restartPolicy=nothing)))
    assert pod_of(job)["restartPolicy"] == "Never"
    assert "podFailurePolicy" in job["spec"]


def test_a_template_that_restarts_its_container_has_no_failure_policy() -> None:
    template = user_template(container={"name": "mine"}, restartPolicy="OnFailure")
    assert "podFailurePolicy" not in manifest(ray_job(submitterPodTemplate=template))["spec"]


def test_a_submission_that_no_process_could_be_started_with_is_an_error() -> None:
    longest = 130_000 - len(Submission("job-abcde", "").to_json())
    manifest(ray_job(entrypoint="x" * longest))
    with pytest.raises(ValueError, match="130001 bytes long together"):
        manifest(ray_job(entrypoint="x" * (longest + 1)))


def test_the_scheduler_can_be_told_of_the_submitter_before_its_cluster_exists() -> None:
    gang = GangMembership("pg")
    early = submitter_template(ray_job(entrypoint="x"), image="muster:1", gang=gang)
    late = manifest(gang=gang)["spec"]["template"]
    del late["spec"]["containers"][0]["env"]
    assert early == late


def test_what_is_submitted_is_what_the_user_asked_for() -> None:
    job = ray_job(
        entrypoint="  python x.py \n",
        runtimeEnvYAML="env_vars:\n  A: '1'\npip: [requests]",
        metadata={"k": "v"},
        entrypointNumCpus=0.5,
        entrypointNumGpus=1,
        entrypointResources='{"special": 2}',
    )
    assert submission(job, "id-1").to_document() == {
        "entrypoint": "python x.py",
        "submission_id": "id-1",
        "runtime_env": {"env_vars": {"A": "1"}, "pip": ["requests"]},
        "metadata": {"k": "v"},
        "entrypoint_num_cpus": 0.5,
        "entrypoint_num_gpus": 1,
        "entrypoint_resources": {"special": 2},
    }


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"runtimeEnvYAML": " \n"},
        {"runtimeEnvYAML": "# nothing"},
        {"entrypointResources": ""},
        {"entrypointNumCpus": 0, "entrypointNumGpus": -1},
        {"metadata": {}},
    ],
)
def test_fields_without_a_value_are_not_sent(spec: dict[str, Any]) -> None:
    assert submission(ray_job(**spec), "id-1").to_document() == {"entrypoint": "", "submission_id": "id-1"}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"runtimeEnvYAML": "a: [1"}, "runtimeEnvYAML is not YAML"),
        ({"runtimeEnvYAML": "- a"}, "runtimeEnvYAML must be a YAML mapping"),
        ({"entrypointResources": "{"}, "entrypointResources can't be read"),
        ({"entrypointResources": "[1]"}, "entrypointResources must be a mapping, got list"),
    ],
)
def test_what_can_not_be_read_is_an_error_that_names_the_field(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        submission(ray_job(**spec), "id-1")


def test_a_runtime_environment_is_sent_with_text_as_keys() -> None:
    document = env_of(manifest(ray_job(entrypoint="x", runtimeEnvYAML="1: a\nb: c")))["MUSTER_SUBMISSION"]
    assert json.loads(document)["runtime_env"] == {"1": "a", "b": "c"}
