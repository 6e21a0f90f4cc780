from __future__ import annotations

from typing import Any

import pytest

from muster.api.raycluster import RayCluster
from muster.ray.validation import validate_ray_cluster
from tests.ray.cluster_case import CONTAINER, HEAD, Path, with_fields

OPTIONS: Path = ["spec", "gcsFaultToleranceOptions"]
PARAMS: Path = [*HEAD, "rayStartParams"]
ENV: Path = [*HEAD, *CONTAINER, "env"]
ANNOTATIONS: Path = ["metadata", "annotations"]
REDIS = {"redisAddress": "redis:6379"}
ENV_PATH = "spec.headGroupSpec.template.spec.containers[0].env"
PARAMS_PATH = "spec.headGroupSpec.rayStartParams"
PATH = "spec.gcsFaultToleranceOptions"

Fields = list[tuple[Path, object]]


def env(*names: str) -> tuple[Path, object]:
    return ENV, [{"name": name, "value": "x"} for name in names]


def problems(fields: Fields) -> list[str]:
    return [str(problem) for problem in validate_ray_cluster(RayCluster.parse(with_fields(*fields)))]


@pytest.mark.parametrize(
    "fields",
    [
        [(OPTIONS, REDIS)],
        [(OPTIONS, {"backend": "redis", "redisAddress": "rediss://a:1,b:2", "externalStorageNamespace": "x"})],
        [(OPTIONS, {**REDIS, "redisUsername": {"value": "u"}, "redisPassword": {"valueFrom": {"secretKeyRef": {}}}})],
        [(OPTIONS, {**REDIS, "redisPassword": {"value": ""}})],
        [(OPTIONS, REDIS), (ANNOTATIONS, {"ray.io/ft-enabled": "", "ray.io/external-storage-namespace": ""})],
        [(ANNOTATIONS, {"ray.io/ft-enabled": "true"}), env("RAY_REDIS_ADDRESS", "REDIS_PASSWORD")],
        [(ANNOTATIONS, {"ray.io/ft-enabled": "true"}), (PARAMS, {"redis-password": "x"})],
        [(ANNOTATIONS, {"ray.io/ft-enabled": "true", "ray.io/external-storage-namespace": "x"})],
        [(PARAMS, {"redis-password": "x"})],
    ],
)
def test_what_goes_together(fields: Fields) -> None:
    assert problems(fields) == []


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (
            [(OPTIONS, REDIS), (ANNOTATIONS, {"ray.io/ft-enabled": "false"})],
            "metadata.annotations[ray.io/ft-enabled]: says the same thing as gcsFaultToleranceOptions; "
            "remove the annotation",
        ),
        (
            [(OPTIONS, REDIS), (ANNOTATIONS, {"ray.io/external-storage-namespace": "x"})],
            "metadata.annotations[ray.io/external-storage-namespace]: says the same thing as "
            "gcsFaultToleranceOptions; remove the annotation",
        ),
        (
            [env("RAY_REDIS_ADDRESS")],
            f"{ENV_PATH}: RAY_REDIS_ADDRESS is not allowed without gcsFaultToleranceOptions; remove it",
        ),
        (
            [env("RAY_REDIS_ADDRESS"), (ANNOTATIONS, {"ray.io/ft-enabled": "false"})],
            f"{ENV_PATH}: RAY_REDIS_ADDRESS is not allowed without gcsFaultToleranceOptions; remove it",
        ),
        (
            [(OPTIONS, REDIS), env("RAY_REDIS_ADDRESS")],
            f"{ENV_PATH}: RAY_REDIS_ADDRESS is said by gcsFaultToleranceOptions.redisAddress; remove the variable",
        ),
        (
            [(OPTIONS, REDIS), env("REDIS_PASSWORD")],
            f"{ENV_PATH}: REDIS_PASSWORD is said by gcsFaultToleranceOptions.redisPassword; remove the variable",
        ),
        (
            [(OPTIONS, REDIS), (PARAMS, {"redis-password": "x"})],
            f"{PARAMS_PATH}[redis-password]: is said by gcsFaultToleranceOptions.redisPassword; remove it",
        ),
        ([env("REDIS_USERNAME")], f"{ENV_PATH}: REDIS_USERNAME is not allowed; remove it"),
        ([(PARAMS, {"redis-username": "x"})], f"{PARAMS_PATH}[redis-username]: is not allowed; remove it"),
        ([(OPTIONS, {})], f"{PATH}.redisAddress: is required; write the address of the Redis, such as redis:6379"),
        (
            [(OPTIONS, {"redisAddress": " "})],
            f"{PATH}.redisAddress: is required; write the address of the Redis, such as redis:6379",
        ),
        (
            [(OPTIONS, {"backend": "rocksdb"})],
            f"{PATH}.backend: rocksdb is not supported yet by this version of Muster; remove it, and name a Redis",
        ),
        ([(OPTIONS, {**REDIS, "storage": {}})], f"{PATH}.storage: is for backend rocksdb only; remove it"),
        (
            [(OPTIONS, {**REDIS, "redisPassword": {"value": "x", "valueFrom": {}}})],
            f"{PATH}.redisPassword: has value and valueFrom; leave one of the two out",
        ),
    ],
)
def test_what_does_not(fields: Fields, told: str) -> None:
    assert problems(fields) == [told]


def test_a_password_is_in_no_message() -> None:
    secret: dict[str, Any] = {**REDIS, "redisPassword": {"value": "hush", "valueFrom": {"secretKeyRef": {}}}}
    assert "hush" not in " ".join(problems([(OPTIONS, secret), env("REDIS_PASSWORD", "REDIS_USERNAME")]))
