from __future__ import annotations

from typing import Any

import msgspec
import pytest

from muster.engine.amounts import TranslationError
from muster.engine.pod_requests import assumed_requests, pod_requests
from muster.kube.objects import PodSpec

GI = 1024**3


def container(requests: dict[str, Any] | None = None, *, sidecar: bool = False, **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"name": "c", "resources": {"requests": requests or {}, **more}}
    return {**made, "restartPolicy": "Always"} if sidecar else made


def spec(containers: list[dict[str, Any]], init: list[dict[str, Any]] | None = None, **more: Any) -> PodSpec:
    manifest = {"containers": containers, "initContainers": init or [], **more}
    return msgspec.convert(manifest, type=PodSpec)


CASES: dict[str, tuple[PodSpec, dict[str, int]]] = {
    "a pod that asks for nothing takes a pod's place": (spec([container()]), {"pods": 1}),
    "containers add up": (
        spec([container({"cpu": "500m", "memory": "1Gi"}), container({"cpu": 1, "memory": "1Gi"})]),
        {"cpu": 1500, "memory": 2 * GI, "pods": 1},
    ),
    "zero is nothing": (spec([container({"cpu": "0", "nvidia.com/gpu": 0})]), {"pods": 1}),
    "limits stand in for requests, resource by resource": (
        spec([container({"cpu": "1"}, limits={"cpu": "2", "nvidia.com/gpu": 1})]),
        {"cpu": 1000, "nvidia.com/gpu": 1000, "pods": 1},
    ),
    "a large init container decides": (
        spec([container({"cpu": "1"})], [container({"cpu": "3"}), container({"cpu": "2", "memory": "1Gi"})]),
        {"cpu": 3000, "memory": GI, "pods": 1},
    ),
    "a small init container does not": (
        spec([container({"cpu": "2"})], [container({"cpu": "1"})]),
        {"cpu": 2000, "pods": 1},
    ),
    "a sidecar runs beside the containers": (
        spec([container({"cpu": "2"})], [container({"cpu": "1"}, sidecar=True)]),
        {"cpu": 3000, "pods": 1},
    ),
    "an init container runs beside the sidecars started before it": (
        spec([container({"cpu": "1"})], [container({"cpu": "1"}, sidecar=True), container({"cpu": "4"})]),
        {"cpu": 5000, "pods": 1},
    ),
    "an init container does not meet the sidecars started after it": (
        spec([container({"cpu": "1"})], [container({"cpu": "4"}), container({"cpu": "1"}, sidecar=True)]),
        {"cpu": 4000, "pods": 1},
    ),
    "overhead comes on top": (
        spec([container({"cpu": "1"})], [container({"cpu": "2"})], overhead={"cpu": "250m"}),
        {"cpu": 2250, "pods": 1},
    ),
    "requests of the whole pod replace the sum": (
        spec([container({"cpu": "1", "nvidia.com/gpu": 1})], resources={"requests": {"cpu": "4"}}),
        {"cpu": 4000, "nvidia.com/gpu": 1000, "pods": 1},
    ),
    "fractions round up": (spec([container({"cpu": "0.0001", "memory": "100m"})]), {"cpu": 1, "memory": 1, "pods": 1}),
}


@pytest.mark.parametrize(("given", "expected"), CASES.values(), ids=CASES.keys())
def test_a_pod_takes_what_the_kubelet_counts(given: PodSpec, expected: dict[str, int]) -> None:
    assert pod_requests(given) == expected


BROKEN: dict[str, tuple[PodSpec, str]] = {
    "container": (spec([container(), container({"cpu": "two"})]), "spec.containers[1].resources.requests[cpu]"),
    "limit": (spec([container(limits={"memory": "1GiB"})]), "spec.containers[0].resources.limits[memory]"),
    "init container": (
        spec([container()], [container({"cpu": "-1"})]),
        "spec.initContainers[0].resources.requests[cpu]",
    ),
    "overhead": (spec([container()], overhead={"cpu": ""}), "spec.overhead[cpu]"),
    "whole pod": (spec([container()], resources={"limits": {"cpu": "x"}}), "spec.resources.limits[cpu]"),
}


@pytest.mark.parametrize(("given", "path"), BROKEN.values(), ids=BROKEN.keys())
def test_what_is_no_amount_is_refused_by_its_field(given: PodSpec, path: str) -> None:
    with pytest.raises(TranslationError) as caught:
        pod_requests(given)
    assert caught.value.path == path


MI = 1024**2


@pytest.mark.parametrize(
    ("pod", "assumed"),
    [
        pytest.param(spec([container()]), (100, 200 * MI), id="nothing is asked for"),
        pytest.param(spec([container(), container()]), (200, 400 * MI), id="two containers"),
        pytest.param(spec([container({"cpu": "2"})]), (0, 200 * MI), id="no memory"),
        pytest.param(spec([container({"cpu": "0", "memory": "0"})]), (0, 0), id="zero is said"),
        pytest.param(spec([container(limits={"cpu": "1", "memory": "1Gi"})]), (0, 0), id="limits"),
        pytest.param(
            spec([container({"cpu": "1", "memory": "1Gi"})], [container()]), (0, 0), id="a small init container"
        ),
        pytest.param(
            spec([container({"cpu": "1", "memory": "1Gi"})], [container(sidecar=True)]), (100, 200 * MI), id="a sidecar"
        ),
    ],
)
def test_scores_take_containers_that_ask_for_nothing_to_use_a_little(pod: PodSpec, assumed: tuple[int, int]) -> None:
    """kube-scheduler: 100m of CPU and 200Mi of memory."""
    assert assumed_requests(pod) == assumed
