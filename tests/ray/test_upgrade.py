"""What makes a cluster's pods an older generation, and what doesn't."""

from __future__ import annotations

import copy

import pytest

from muster.api.raycluster import RayCluster
from muster.ray import labels
from muster.ray.upgrade import generation_annotations, generation_hash, is_known, is_outdated, recreates
from tests.ray.cluster_case import CONTAINER, HEAD, VALID, WORKER, Path, with_fields

AUTOSCALING: tuple[Path, object] = (["spec", "enableInTreeAutoscaling"], True)
OPTIONS: Path = ["spec", "autoscalerOptions"]


def generation(*fields: tuple[Path, object]) -> str:
    return generation_hash(RayCluster.parse(with_fields(*fields)))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param([*HEAD, *CONTAINER, "image"], "other", id="the head's image"),
        pytest.param([*WORKER, *CONTAINER, "image"], "other", id="a group's image"),
        pytest.param([*WORKER, "groupName"], "renamed", id="a group's name"),
        pytest.param([*WORKER, "numOfHosts"], 2, id="the hosts of a replica"),
        pytest.param([*WORKER, "resources"], {"CPU": "1"}, id="what a group tells Ray"),
        pytest.param([*WORKER, "template", "metadata"], {"labels": {"a": "b"}}, id="a label"),
        pytest.param([*WORKER, "template", "spec", "nodeSelector"], {"zone": "a"}, id="a node selector"),
        pytest.param([*HEAD, "rayStartParams"], {"num-cpus": "1"}, id="a start parameter"),
        pytest.param([*HEAD, "headService"], {"metadata": {"name": "mine"}}, id="the head's address"),
        pytest.param(["spec", "rayVersion"], "2.53.0", id="the version of Ray"),
        pytest.param(["spec", "authOptions"], {"mode": "token"}, id="authentication"),
        pytest.param(["spec", "workerGroupSpecs"], [], id="a group less"),
        pytest.param(*AUTOSCALING, id="an autoscaler"),
    ],
)
def test_what_pods_are_made_from_tells(path: Path, value: object) -> None:
    assert generation((path, value)) != generation()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param([*WORKER, "replicas"], 4, id="replicas"),
        pytest.param([*WORKER, "minReplicas"], 2, id="minReplicas"),
        pytest.param([*WORKER, "maxReplicas"], 9, id="maxReplicas"),
        pytest.param([*WORKER, "numOfHosts"], 1, id="a default written out"),
        pytest.param([*WORKER, "scaleStrategy"], {"workersToDelete": ["a"]}, id="who goes first"),
        pytest.param([*WORKER, "suspend"], True, id="a group suspended"),
        pytest.param([*WORKER, "template", "spec", "tolerations"], [{"operator": "Exists"}], id="tolerations"),
        pytest.param([*WORKER, "template", "spec", "schedulingGates"], [{"name": "a"}], id="gates"),
        pytest.param([*HEAD, "template", "spec", "tolerations"], [{"operator": "Exists"}], id="the head's tolerations"),
        pytest.param([*HEAD, "enableIngress"], True, id="an Ingress"),
        pytest.param([*HEAD, "serviceType"], "NodePort", id="the service's type"),
        pytest.param([*HEAD, "resources"], None, id="null"),
        pytest.param(["spec", "suspend"], False, id="suspend"),
        pytest.param(["spec", "upgradeStrategy"], {"type": "Recreate"}, id="the strategy"),
        pytest.param(["spec", "headServiceAnnotations"], {"a": "b"}, id="the service's annotations"),
        pytest.param(OPTIONS, {"image": "other"}, id="options of an autoscaler that is not there"),
        pytest.param(["metadata", "labels"], {}, id="the cluster's labels"),
    ],
)
def test_what_pods_are_not_made_from_does_not(path: Path, value: object) -> None:
    assert generation((path, value)) == generation()


def test_options_of_the_autoscaler_count_as_far_as_they_show() -> None:
    assert generation(AUTOSCALING, (OPTIONS, {"image": "other"})) != generation(AUTOSCALING)
    assert generation(AUTOSCALING, (OPTIONS, {"idleTimeoutSeconds": 9})) == generation(AUTOSCALING)


def test_the_order_of_groups_says_nothing() -> None:
    one = VALID["spec"]["workerGroupSpecs"][0]
    two = {**copy.deepcopy(one), "groupName": "two"}
    groups: Path = ["spec", "workerGroupSpecs"]
    assert generation((groups, [one, two])) == generation((groups, [two, one]))


def test_pods_are_compared_only_by_a_hash_that_was_made_here() -> None:
    now = generation()
    old = generation((["spec", "rayVersion"], "2.53.0"))
    for is_head in (True, False):
        assert is_known(generation_annotations(now, is_head=is_head))
        assert not is_outdated(generation_annotations(now, is_head=is_head), now)
        assert is_outdated(generation_annotations(old, is_head=is_head), now)
    of_kuberay = {labels.UPGRADE_STRATEGY_RECREATE_HASH: "SOMETHING", labels.KUBERAY_VERSION: "v1.7.0"}
    for unknown in ({}, of_kuberay, {labels.RECREATE_HASH: "0-abc"}):
        assert not is_known(unknown)
        assert not is_outdated(unknown, now)


@pytest.mark.parametrize(
    ("strategy", "expected"), [(None, False), ({}, False), ({"type": "None"}, False), ({"type": "Recreate"}, True)]
)
def test_recreating_is_asked_for(strategy: object, expected: bool) -> None:
    assert recreates(RayCluster.parse(with_fields((["spec", "upgradeStrategy"], strategy))).spec) is expected
