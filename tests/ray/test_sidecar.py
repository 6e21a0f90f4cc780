"""The submitter in the head pod."""

from __future__ import annotations

import json
from typing import Any

import pytest

from muster.ray.sidecar import with_submitter
from tests.ray.ray_objects import ray_job

SPEC: dict[str, Any] = {"headGroupSpec": {"template": {"spec": {"containers": [{"name": "ray", "image": "ray:1"}]}}}}
TRICKY = "python -c \"print('$HOME $(NAME) `id`')\"\nexit 3"


def with_sidecar(**options: Any) -> dict[str, Any]:
    job = ray_job(entrypoint=options.pop("entrypoint", "python x.py"), submissionMode="SidecarMode")
    ours: dict[str, Any] = {"image": "muster:1", "image_pull_policy": None, "dashboard_port": 8265, "token_env": []}
    return with_submitter(SPEC, job, "job-abcde", **{**ours, **options})


def sidecar(**options: Any) -> dict[str, Any]:
    containers = with_sidecar(**options)["headGroupSpec"]["template"]["spec"]["containers"]
    assert [container["name"] for container in containers] == ["ray", "ray-job-submitter"]
    found: dict[str, Any] = containers[1]
    return found


def env(container: dict[str, Any]) -> dict[str, Any]:
    return {variable["name"]: variable.get("value") for variable in container["env"]}


def test_it_runs_our_command_beside_ray_and_nothing_is_started_twice() -> None:
    container = sidecar(image_pull_policy="Never", dashboard_port=9000)
    assert (container["image"], container["imagePullPolicy"]) == ("muster:1", "Never")
    assert container["command"] == ["muster", "submit"]
    assert env(container)["RAY_DASHBOARD_ADDRESS"] == "127.0.0.1:9000"
    assert env(container)["RAY_JOB_SUBMISSION_ID"] == "job-abcde"
    assert with_sidecar()["headGroupSpec"]["template"]["spec"]["restartPolicy"] == "Never"


def test_what_the_user_wrote_is_data() -> None:
    container = sidecar(entrypoint=TRICKY)
    assert json.loads(env(container)["MUSTER_SUBMISSION"])["entrypoint"] == TRICKY
    assert TRICKY not in json.dumps([container["command"], container["args"]])
    assert "$(" not in env(container)["MUSTER_SUBMISSION"], "the kubelet would expand it"


def test_it_has_few_rights_of_its_own_whatever_the_pod_has() -> None:
    context = sidecar()["securityContext"]
    assert context["runAsNonRoot"] is True
    assert context["allowPrivilegeEscalation"] is False
    assert context["capabilities"] == {"drop": ["ALL"]}


def test_it_has_the_clusters_token() -> None:
    token = {"name": "RAY_AUTH_TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "auth_token"}}}
    assert token in sidecar(token_env=[token])["env"]


def test_the_spec_that_the_user_wrote_stays_as_it_is() -> None:
    with_sidecar()
    assert len(SPEC["headGroupSpec"]["template"]["spec"]["containers"]) == 1


def test_a_submission_that_no_variable_could_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="use submissionMode HTTPMode"):
        with_sidecar(entrypoint="x" * 131_000)
