from __future__ import annotations

from typing import Any

import pytest

from muster.api.raycluster import RayCluster
from muster.api.rayjob import RayJob
from muster.ray.validation import validate_ray_cluster, validate_ray_job
from tests.ray.cluster_case import with_fields

AUTH = "spec.authOptions"


def problems(auth: dict[str, Any], version: object = "2.60.0") -> list[str]:
    obj = with_fields((["spec", "authOptions"], auth), (["spec", "rayVersion"], version))
    return [str(problem) for problem in validate_ray_cluster(RayCluster.parse(obj))]


@pytest.mark.parametrize(
    ("auth", "version"),
    [
        ({"mode": "token"}, "2.52.0"),
        ({"mode": "token"}, "v3.0.0rc1"),
        ({"mode": "token", "secretName": "my.secret-1"}, "2.60.0"),
        ({"mode": "token", "secretName": ""}, "2.60.0"),
        ({"mode": "token", "secretName": "s" * 253}, "2.60.0"),
        ({"mode": "token", "enableK8sTokenAuth": True}, "2.55.0"),
        ({"mode": "token", "enableK8sTokenAuth": True, "secretName": ""}, "2.55.0"),
        ({"mode": "disabled", "secretName": "mine"}, None),
        ({"enableK8sTokenAuth": False}, None),
    ],
)
def test_what_goes_together(auth: dict[str, Any], version: str | None) -> None:
    assert problems(auth, version) == []


@pytest.mark.parametrize(
    ("auth", "version", "told"),
    [
        ({"mode": "token"}, None, [f"{AUTH}.mode: token needs Ray 2.52.0 or newer, but rayVersion is not set"]),
        ({"mode": "token"}, "2.51.9", [f'{AUTH}.mode: token needs Ray 2.52.0 or newer, but rayVersion is "2.51.9"']),
        ({"mode": "token"}, "nightly", [f'{AUTH}.mode: token needs Ray 2.52.0 or newer, but rayVersion is "nightly"']),
        (
            {"mode": "token", "enableK8sTokenAuth": True},
            "2.54.0",
            [f'{AUTH}.enableK8sTokenAuth: enableK8sTokenAuth needs Ray 2.55.0 or newer, but rayVersion is "2.54.0"'],
        ),
        ({"enableK8sTokenAuth": True}, "2.60.0", [f"{AUTH}.enableK8sTokenAuth: needs mode token; set it too"]),
        (
            {"mode": "token", "enableK8sTokenAuth": True, "secretName": "mine"},
            "2.60.0",
            [f"{AUTH}.secretName: is of no use with enableK8sTokenAuth; leave one of the two out"],
        ),
        (
            {"mode": "token", "secretName": "My_Secret"},
            "2.60.0",
            [f'{AUTH}.secretName: "My_Secret" can\'t be the name of a Secret'],
        ),
        (
            {"mode": "token", "secretName": "s" * 254},
            "2.60.0",
            [f'{AUTH}.secretName: "{"s" * 254}" can\'t be the name of a Secret'],
        ),
    ],
)
def test_what_does_not(auth: dict[str, Any], version: str | None, told: list[str]) -> None:
    assert problems(auth, version) == told


def test_the_cluster_of_a_job_has_no_service_account_tokens() -> None:
    spec = {**with_fields()["spec"], "rayVersion": "2.60.0"}
    spec["authOptions"] = {"mode": "token", "enableK8sTokenAuth": True}
    written = {"rayClusterSpec": spec, "entrypoint": "python job.py"}
    job = RayJob.parse({"metadata": {"name": "job", "namespace": "default"}, "spec": written})
    assert [str(problem) for problem in validate_ray_job(job)] == [
        "spec.rayClusterSpec.authOptions.enableK8sTokenAuth: is not possible in a RayJob; "
        "leave it out, a Secret with a token is made"
    ]
