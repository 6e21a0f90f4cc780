"""A copy of an owner's annotations has room for what is added to it, and loses what is missed least."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from muster.api.raycluster import RayCluster
from muster.api.rayjob import RayJob
from muster.ray.copied_annotations import LARGEST, copied_annotations
from muster.ray.gang import ray_cluster_pod_group, ray_job_pod_group
from muster.ray.ingress import head_ingress

CONTAINER = {"name": "ray", "image": "i", "resources": {"requests": {"cpu": "1"}}}
CLUSTER: dict[str, Any] = {"headGroupSpec": {"template": {"spec": {"containers": [CONTAINER]}}}}
SUBMITTER = {"schedulerName": "muster", "containers": [{"name": "s", "resources": {"requests": {"cpu": "50m"}}}]}
FULL = {"example.com/big": "x" * (LARGEST - 60), "example.com/small": "kept"}


def size(annotations: Mapping[str, str]) -> int:
    return sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())


def job(annotations: Mapping[str, str]) -> RayJob:
    metadata = {"name": "j", "namespace": "ns", "uid": "u", "annotations": dict(annotations)}
    return RayJob.parse({"metadata": metadata, "spec": {"entrypoint": "e", "rayClusterSpec": CLUSTER}})


def cluster(annotations: Mapping[str, str]) -> RayCluster:
    metadata = {"name": "c", "namespace": "ns", "uid": "u", "annotations": dict(annotations)}
    head = {**CLUSTER["headGroupSpec"], "enableIngress": True}
    return RayCluster.parse({"metadata": metadata, "spec": {"headGroupSpec": head}})


def pod_group_of_cluster(annotations: Mapping[str, str]) -> Mapping[str, str]:
    manifest = ray_cluster_pod_group(cluster(annotations))
    assert manifest is not None
    found: Mapping[str, str] = manifest["metadata"]["annotations"]
    return found


def pod_group_of_job(annotations: Mapping[str, str]) -> Mapping[str, str]:
    found: Mapping[str, str] = ray_job_pod_group(job(annotations), SUBMITTER)["metadata"]["annotations"]
    return found


def ingress(annotations: Mapping[str, str]) -> Mapping[str, str]:
    found: Mapping[str, str] = head_ingress(cluster(annotations))["metadata"]["annotations"]
    return found


@pytest.mark.parametrize("of", [pod_group_of_cluster, pod_group_of_job])
def test_a_pod_group_has_room_for_what_the_scheduler_says_there(of: Any) -> None:
    found = of(FULL)
    assert size(found) <= LARGEST - 64 * 1024
    assert found["example.com/small"] == "kept"
    assert "example.com/big" not in found


def test_a_companion_is_described_whatever_the_job_s_annotations_are() -> None:
    (described,) = json.loads(pod_group_of_job(FULL)["muster.dev/companions"])
    assert described["role"] == "submittergroup"


def test_an_ingress_has_room_for_what_it_was_made_from() -> None:
    found = ingress(FULL)
    assert size(found) <= LARGEST
    assert {"example.com/small", "muster.dev/spec-hash"} == set(found)


@pytest.mark.parametrize("of", [pod_group_of_cluster, pod_group_of_job, ingress])
def test_annotations_of_ordinary_size_are_all_copied(of: Any) -> None:
    given = {"a": "x" * 60_000, "b.example/c": "y" * 60_000, "volcano.sh/sla-waiting-time": "1h"}
    assert given.items() <= of(given).items()


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        pytest.param({"a": 60, "b": 40}, {"a", "b"}, id="all that fit exactly"),
        pytest.param({"a": 60, "b": 41}, {"b"}, id="the largest is left out"),
        pytest.param({"a": 90, "b": 85, "c": 20}, {"c"}, id="as many as it takes"),
        pytest.param({"volcano.sh/x": 90, "b": 20}, {"volcano.sh/x"}, id="what Volcano reads is kept"),
        pytest.param({"scheduling.volcano.sh/x": 90, "b": 20}, {"scheduling.volcano.sh/x"}, id="and below its domain"),
        pytest.param({"ray.io/x": 90, "b": 20}, {"ray.io/x"}, id="what Ray reads is kept"),
        pytest.param({"sla-waiting-time": 90, "b": 20}, {"sla-waiting-time"}, id="Volcano's key without a domain"),
        pytest.param({"notvolcano.sh/x": 90, "b": 20}, {"b"}, id="another domain"),
        pytest.param({"volcano.sh/x": 200, "b": 20}, set(), id="room is left in any case"),
        pytest.param({"left": 999, "a": 60}, {"a"}, id="what is not copied takes no room"),
    ],
)
def test_what_does_not_fit_is_left_out(given: dict[str, int], kept: set[str]) -> None:
    owner = {key: "x" * (length - len(key)) for key, length in given.items()}
    found = copied_annotations(owner, without=("left",), beside={"k": "v" * 9}, room=LARGEST - 110)
    assert found.keys() == kept


def test_bytes_are_counted_not_characters() -> None:
    assert copied_annotations({"a": "ä" * 60}, without=(), room=LARGEST - 100) == {}
