"""What a pod asks the scheduler for."""

from __future__ import annotations

from typing import Any

import pytest

from muster.quantities import QuantityError, format_quantity
from muster.ray.scheduling_request import scheduling_request

Json = dict[str, Any]


def c(cpu: object = None, memory: object = None, *, limits: Json | None = None, always: bool = False) -> Json:
    requests = {name: amount for name, amount in {"cpu": cpu, "memory": memory}.items() if amount is not None}
    container: Json = {"resources": {"requests": requests, **({"limits": limits} if limits else {})}}
    return container | ({"restartPolicy": "Always"} if always else {})


@pytest.mark.parametrize(
    ("spec", "request_"),
    [
        ({"containers": [c("1", "1Gi")]}, {"cpu": "1", "memory": "1Gi"}),
        ({"containers": [c("1"), c("500m")]}, {"cpu": "1500m"}),
        ({"containers": [c(limits={"cpu": 2})]}, {"cpu": "2"}),
        ({"containers": [c("1", limits={"cpu": "4", "nvidia.com/gpu": 1})]}, {"cpu": "1", "nvidia.com/gpu": "1"}),
        ({"containers": [c(0.5, 1e9)]}, {"cpu": "500m", "memory": "1000000000"}),
        ({"containers": [c("0")]}, {}),
        ({"containers": [{}]}, {}),
        ({"containers": [{"resources": None}], "initContainers": None, "overhead": None}, {}),
        ({}, {}),
        ({"containers": [c("1")], "initContainers": [c("3")]}, {"cpu": "3"}),
        ({"containers": [c("1")], "initContainers": [c("3"), c("2", "1Gi")]}, {"cpu": "3", "memory": "1Gi"}),
        ({"containers": [c("2")], "initContainers": [c("1")]}, {"cpu": "2"}),
        ({"containers": [c("2")], "initContainers": [c("1", always=True)]}, {"cpu": "3"}),
        ({"containers": [c("1")], "initContainers": [c("1", always=True), c("3")]}, {"cpu": "4"}),
        ({"containers": [c("1")], "initContainers": [c("3"), c("1", always=True)]}, {"cpu": "3"}),
        ({"containers": [c("1")], "overhead": {"cpu": "250m", "memory": "64Mi"}}, {"cpu": "1250m", "memory": "64Mi"}),
        ({"containers": [c("1")], "initContainers": [c("3")], "overhead": {"cpu": "1"}}, {"cpu": "4"}),
        ({"containers": [c("1", "1Gi")], "resources": {"requests": {"cpu": "3"}}}, {"cpu": "3", "memory": "1Gi"}),
        ({"containers": [c("4")], "resources": {"limits": {"cpu": "3"}}, "overhead": {"cpu": "1"}}, {"cpu": "4"}),
        ({"containers": [c("1")], "resources": None}, {"cpu": "1"}),
    ],
)
def test_the_request_is_the_larger_of_start_and_run_plus_overhead(spec: Json, request_: Json) -> None:
    amounts = scheduling_request(spec)
    assert {name: format_quantity(amount, name) for name, amount in amounts.items()} == request_


def test_containers_that_the_operator_adds_count_like_the_users_own() -> None:
    spec = {"containers": [c("1")], "initContainers": [c("2")]}
    assert scheduling_request(spec, more_containers=[c("500m")]) == {"cpu": 2000}
    assert scheduling_request(spec, more_containers=[c("1500m")]) == {"cpu": 2500}
    assert scheduling_request(spec, more_init_containers=[c("3")]) == {"cpu": 3000}


def test_a_quantity_that_can_not_be_read_is_an_error() -> None:
    with pytest.raises(QuantityError, match="lots"):
        scheduling_request({"containers": [c("lots")]})
