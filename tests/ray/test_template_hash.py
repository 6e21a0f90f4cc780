"""What makes a pod one of an older template, and what doesn't."""

from __future__ import annotations

import pytest

from muster.api.raycluster import RayCluster
from muster.ray import labels
from muster.ray.pods import head_pod, worker_pod
from muster.ray.ray_node import RayNode
from muster.ray.template_hash import content_hash, template_hash
from tests.ray.cluster_case import CONTAINER, DELETE, HEAD, WORKER, Path, with_fields


def worker_hash(*fields: tuple[Path, object]) -> str:
    cluster = RayCluster.parse(with_fields(*fields))
    return template_hash(RayNode.worker(cluster, cluster.spec.worker_groups[0], "cluster.local"))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param([*WORKER, *CONTAINER, "image"], "rayproject/ray:2.53.0", id="the image"),
        pytest.param([*WORKER, *CONTAINER, "resources", "limits", "cpu"], "2", id="a request"),
        pytest.param([*WORKER, "rayStartParams"], {"num-cpus": "1"}, id="a start parameter"),
        pytest.param([*WORKER, "labels"], {"zone": "a"}, id="a label of Ray"),
        pytest.param([*WORKER, "resources"], {"CPU": "4"}, id="a resource of Ray"),
        pytest.param(["spec", "rayVersion"], "2.53.0", id="the version of Ray"),
    ],
)
def test_what_a_pod_is_made_from_tells(path: Path, value: object) -> None:
    assert worker_hash((path, value)) != worker_hash()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param([*WORKER, "replicas"], 4, id="the number of pods"),
        pytest.param([*WORKER, "maxReplicas"], 9, id="its limits"),
        pytest.param([*WORKER, "scaleStrategy"], {"workersToDelete": ["a"]}, id="who goes first"),
        pytest.param([*HEAD, *CONTAINER, "image"], "other", id="another group's template"),
        pytest.param(["metadata", "labels"], DELETE, id="the cluster's labels"),
    ],
)
def test_what_a_pod_is_not_made_from_does_not(path: Path, value: object) -> None:
    assert worker_hash((path, value)) == worker_hash()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param([*WORKER, "template", "metadata"], {"creationTimestamp": None}, id="a template's metadata"),
        pytest.param([*WORKER, *CONTAINER, "lifecycle"], None, id="null"),
        pytest.param([*WORKER, *CONTAINER, "resources", "claims"], None, id="null in a map"),
        pytest.param([*WORKER, "resources"], {}, id="nothing for Ray"),
    ],
)
def test_what_go_adds_when_it_writes_a_spec_back_does_not(path: Path, value: object) -> None:
    assert worker_hash((path, value)) == worker_hash()


def test_an_empty_map_may_say_something() -> None:
    volumes: Path = [*WORKER, "template", "spec", "volumes"]
    assert worker_hash((volumes, [{"name": "a", "emptyDir": {}}])) != worker_hash((volumes, [{"name": "a"}]))


def test_empty_resources_of_a_container_say_nothing() -> None:
    resources: Path = [*WORKER, *CONTAINER, "resources"]
    assert worker_hash((resources, {})) == worker_hash((resources, DELETE))


def head_hash(*fields: tuple[Path, object]) -> str:
    return template_hash(RayNode.head(RayCluster.parse(with_fields(*fields)), "cluster.local"))


AUTOSCALING: tuple[Path, object] = (["spec", "enableInTreeAutoscaling"], True)
OPTIONS: Path = ["spec", "autoscalerOptions"]


def test_a_head_is_made_from_the_autoscaler_too() -> None:
    assert head_hash(AUTOSCALING) != head_hash()
    assert head_hash(AUTOSCALING, (OPTIONS, {"image": "other"})) != head_hash(AUTOSCALING)
    assert head_hash((OPTIONS, {"image": "other"})) == head_hash()
    # These the autoscaler reads from the cluster.
    assert head_hash(AUTOSCALING, (OPTIONS, {"idleTimeoutSeconds": 9, "upscalingMode": "Default"})) == head_hash(
        AUTOSCALING
    )


def test_a_worker_is_made_from_the_autoscaler_only_as_far_as_it_shows() -> None:
    assert worker_hash(AUTOSCALING, (OPTIONS, {"image": "other"})) == worker_hash()
    assert worker_hash(AUTOSCALING, (OPTIONS, {"version": "v2"})) != worker_hash()


def test_the_order_of_keys_says_nothing() -> None:
    assert content_hash({"a": 1, "b": {"c": [1, 2], "d": "é"}}) == content_hash({"b": {"d": "é", "c": [1, 2]}, "a": 1})
    assert content_hash([1, 2]) != content_hash([2, 1])


def test_pods_carry_the_hash_of_their_template() -> None:
    cluster = RayCluster.parse(with_fields())
    head, worker = head_pod(cluster, "h"), worker_pod(cluster, cluster.spec.worker_groups[0], "w")
    assert worker["metadata"]["annotations"][labels.TEMPLATE_HASH] == worker_hash()
    assert head["metadata"]["annotations"][labels.TEMPLATE_HASH] != worker_hash()
