from __future__ import annotations

from typing import Any

import pytest

from muster.api.raycluster import RayCluster
from muster.ray.fault_tolerance import outlives_its_head, storage_namespace
from muster.ray.pods import head_pod, worker_pod
from muster.ray.ray_node import RayNode
from muster.ray.template_hash import template_hash
from tests.ray.ray_objects import ray_cluster, template, worker_group

ADDRESS = {"redisAddress": "redis:6379"}
FROM_SECRET = {"secretKeyRef": {"name": "redis", "key": "password"}}
OLD = {"annotations": {"ray.io/ft-enabled": "true"}}


def cluster_with(
    options: dict[str, Any] | None = None, head: dict[str, Any] | None = None, **metadata: Any
) -> RayCluster:
    return ray_cluster(metadata=metadata, head=head, workers=[worker_group()], gcsFaultToleranceOptions=options)


def head_of(cluster: RayCluster) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Variables, annotations and command of the head."""
    pod = head_pod(cluster, "h")
    container = pod["spec"]["containers"][0]
    env = {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container["env"]}
    return env, pod["metadata"]["annotations"], container["args"][0]


@pytest.mark.parametrize(
    ("options", "annotations", "does", "namespace"),
    [
        (None, {}, False, "uid-1"),
        (None, {"ray.io/ft-enabled": "false"}, False, "uid-1"),
        (None, {"ray.io/ft-enabled": "True"}, True, "uid-1"),
        (None, {"ray.io/ft-enabled": "true", "ray.io/external-storage-namespace": "mine"}, True, "mine"),
        (ADDRESS, {}, True, "uid-1"),
        ({**ADDRESS, "externalStorageNamespace": ""}, {}, True, "uid-1"),
        ({**ADDRESS, "externalStorageNamespace": "mine"}, {}, True, "mine"),
    ],
)
def test_each_way_to_ask_for_it(
    options: dict[str, Any] | None, annotations: dict[str, str], does: bool, namespace: str
) -> None:
    cluster = cluster_with(options, annotations=annotations)
    assert outlives_its_head(cluster) is does
    assert storage_namespace(cluster) == namespace
    env, said, _ = head_of(cluster)
    assert said["ray.io/ft-enabled"] == str(does).lower()
    assert said.get("ray.io/external-storage-namespace") == (namespace if does else None)
    assert env.get("RAY_external_storage_namespace") == (namespace if does else None)


def test_the_head_finds_its_redis_by_variables_and_its_command_only_names_them() -> None:
    options = {**ADDRESS, "redisUsername": {"value": "ray"}, "redisPassword": {"valueFrom": FROM_SECRET}}
    env, _, command = head_of(cluster_with(options))
    assert env["RAY_REDIS_ADDRESS"] == "redis:6379"
    assert env["REDIS_USERNAME"] == "ray"
    assert env["REDIS_PASSWORD"] == FROM_SECRET
    assert ' --redis-password="$REDIS_PASSWORD" ' in command
    assert ' --redis-username="$REDIS_USERNAME" ' in command


def test_a_redis_without_a_password_is_asked_without_one() -> None:
    env, _, command = head_of(cluster_with(ADDRESS))
    assert "REDIS_PASSWORD" not in env
    assert "redis-" not in command


def test_in_the_older_style_address_and_namespace_are_the_users_own_variables() -> None:
    own = [
        {"name": "RAY_REDIS_ADDRESS", "value": "mine:1"},
        {"name": "RAY_external_storage_namespace", "value": "my-own"},
    ]
    head = {"template": template(env=own), "rayStartParams": {"redis-password": "hush"}}
    env, _, command = head_of(cluster_with(None, head, **OLD))
    assert (env["RAY_REDIS_ADDRESS"], env["RAY_external_storage_namespace"]) == ("mine:1", "my-own")
    assert env["REDIS_PASSWORD"] == "hush"
    assert " --redis-password=hush " in command


def test_in_the_older_style_a_variable_of_the_password_is_kept() -> None:
    own = [{"name": "REDIS_PASSWORD", "valueFrom": FROM_SECRET}]
    head = {"template": template(env=own), "rayStartParams": {"redis-password": "$REDIS_PASSWORD"}}
    env, _, command = head_of(cluster_with(None, head, **OLD))
    assert env["REDIS_PASSWORD"] == FROM_SECRET
    assert " --redis-password=$REDIS_PASSWORD " in command


@pytest.mark.parametrize(
    ("options", "own", "seconds"), [(None, [], None), (ADDRESS, [], "600"), (ADDRESS, ["60"], "60")]
)
def test_workers_bear_that_the_head_is_away(
    options: dict[str, Any] | None, own: list[str], seconds: str | None
) -> None:
    name = "RAY_gcs_rpc_server_reconnect_timeout_s"
    group = worker_group(template=template(env=[{"name": name, "value": value} for value in own]))
    cluster = ray_cluster(workers=[group], **{"gcsFaultToleranceOptions": options})  # type: ignore[arg-type]
    env = worker_pod(cluster, cluster.spec.worker_groups[0], "w")["spec"]["containers"][0]["env"]
    assert {entry["name"]: entry.get("value") for entry in env}.get(name) == seconds
    assert name not in head_of(cluster)[0]


def test_pods_are_outdated_by_another_redis() -> None:
    def hash_of(options: dict[str, Any] | None) -> str:
        return template_hash(RayNode.head(cluster_with(options), "cluster.local"))

    other = {"redisAddress": "other:6379"}
    password = {**ADDRESS, "redisPassword": {"value": ""}}
    assert len({hash_of(options) for options in (None, ADDRESS, other, password)}) == 4
