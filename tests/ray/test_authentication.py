from __future__ import annotations

import base64
from typing import Any

import pytest

from muster.api.raycluster import RayCluster
from muster.ray.authentication import give_token, token_env, token_secret, token_secret_name
from muster.ray.pods import head_pod, worker_pod
from muster.ray.ray_node import RayNode
from muster.ray.template_hash import template_hash
from tests.ray.ray_objects import ray_cluster, template, worker_group

MODE = {"name": "RAY_AUTH_MODE", "value": "token"}
KUBERNETES = {"name": "RAY_ENABLE_K8S_TOKEN_AUTH", "value": "true"}
MOUNT = {"name": "ray-token", "mountPath": "/var/run/secrets/ray.io/serviceaccount", "readOnly": True}
VOLUME = {"name": "ray-token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}


def reference(secret: str) -> dict[str, Any]:
    return {"name": "RAY_AUTH_TOKEN", "valueFrom": {"secretKeyRef": {"name": secret, "key": "auth_token"}}}


def cluster_with(auth: dict[str, Any] | None, **fields: Any) -> RayCluster:
    return ray_cluster(**{**fields, "authOptions": auth})


def auth_variables(container: dict[str, Any]) -> list[dict[str, Any]]:
    return [entry for entry in container["env"] if "AUTH" in entry["name"]]


@pytest.mark.parametrize(
    ("auth", "secret", "env"),
    [
        (None, None, []),
        ({}, None, []),
        ({"mode": "disabled", "secretName": "mine"}, None, []),
        ({"mode": "token"}, "demo", [MODE, reference("demo")]),
        ({"mode": "token", "secretName": ""}, "demo", [MODE, reference("demo")]),
        ({"mode": "token", "secretName": "mine"}, "mine", [MODE, reference("mine")]),
        ({"mode": "token", "enableK8sTokenAuth": False}, "demo", [MODE, reference("demo")]),
        ({"mode": "token", "enableK8sTokenAuth": True}, None, [MODE, KUBERNETES]),
    ],
)
def test_each_way_to_ask_for_a_token(
    auth: dict[str, Any] | None, secret: str | None, env: list[dict[str, Any]]
) -> None:
    cluster = cluster_with(auth)
    assert token_secret_name(cluster) == secret
    assert token_env(cluster) == env


def test_ray_and_wait_gcs_ready_of_head_and_workers_have_the_token() -> None:
    cluster = cluster_with({"mode": "token"}, workers=[worker_group()])
    worker = worker_pod(cluster, cluster.spec.worker_groups[0], "w")["spec"]
    containers = [head_pod(cluster, "h")["spec"]["containers"][0], worker["containers"][0], worker["initContainers"][0]]
    assert [auth_variables(container) for container in containers] == [[MODE, reference("demo")]] * 3


def test_what_the_template_says_of_the_token_is_kept() -> None:
    own = {"name": "RAY_AUTH_TOKEN", "value": "x"}
    cluster = cluster_with({"mode": "token"}, head={"template": template(env=[own])})
    assert auth_variables(head_pod(cluster, "h")["spec"]["containers"][0]) == [own, MODE]


def test_tokens_of_service_accounts_are_mounted_where_they_are_shown() -> None:
    cluster = cluster_with({"mode": "token", "enableK8sTokenAuth": True}, workers=[worker_group()])
    head = head_pod(cluster, "h")["spec"]
    worker = worker_pod(cluster, cluster.spec.worker_groups[0], "w")["spec"]
    for spec in (head, worker):
        assert spec["volumes"].count(VOLUME) == 1
    for container in (head["containers"][0], worker["containers"][0], worker["initContainers"][0]):
        assert container["volumeMounts"].count(MOUNT) == 1
        assert auth_variables(container) == [MODE, KUBERNETES]


def test_a_sidecar_gets_the_token_too() -> None:
    cluster = cluster_with({"mode": "token", "enableK8sTokenAuth": True})
    spec: dict[str, Any] = head_pod(cluster, "h")["spec"]
    sidecar: dict[str, Any] = {"name": "autoscaler", "env": [{"name": "RAY_AUTH_MODE", "value": "disabled"}]}
    give_token(cluster, spec, sidecar)
    assert sidecar["env"] == [{"name": "RAY_AUTH_MODE", "value": "disabled"}, KUBERNETES]
    assert sidecar["volumeMounts"] == [MOUNT]
    assert spec["volumes"].count(VOLUME) == 1
    plain: dict[str, Any] = {"name": "autoscaler"}
    give_token(ray_cluster(), spec, plain)
    assert plain == {"name": "autoscaler"}


def test_the_secret_belongs_to_its_cluster_and_holds_the_token_in_base64() -> None:
    secret = token_secret(cluster_with({"mode": "token"}), bytes(range(32)))
    assert secret["metadata"]["name"] == "demo"
    assert [owner["uid"] for owner in secret["metadata"]["ownerReferences"]] == ["uid-1"]
    token = base64.b64decode(secret["data"]["auth_token"])
    assert base64.b64decode(token) == bytes(range(32))


def test_a_secret_of_a_long_name_has_its_end() -> None:
    name = "a" * 53
    assert token_secret_name(cluster_with({"mode": "token"}, name=name)) == "a" * 50


def test_pods_are_outdated_by_another_way_to_authenticate_and_by_nothing_else() -> None:
    def hash_of(auth: dict[str, Any] | None) -> str:
        return template_hash(RayNode.head(cluster_with(auth), "cluster.local"))

    assert hash_of(None) == hash_of({"mode": "disabled"})
    assert len({hash_of(None), hash_of({"mode": "token"}), hash_of({"mode": "token", "secretName": "mine"})}) == 3
