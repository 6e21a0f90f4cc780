from __future__ import annotations

from typing import Any

import pytest

from muster.quantities import QuantityError
from muster.ray.resources import desired_resources
from tests.ray.ray_objects import limits, ray_cluster, template, worker_group

HEAD = {"template": template(resources={"requests": {"cpu": "500m", "memory": "1Gi"}})}


def worker(resources: dict[str, Any], **group: Any) -> dict[str, Any]:
    return worker_group(template=template(resources=resources), **group)


@pytest.mark.parametrize(
    ("workers", "expected"),
    [
        ([], ("500m", "1Gi", "0", "0")),
        ([worker({"requests": {"cpu": "1", "memory": "2Gi"}}, replicas=3)], ("3500m", "7Gi", "0", "0")),
        ([worker({"requests": {"cpu": "1"}, "limits": {"cpu": "4", "memory": "2Gi"}})], ("1500m", "3Gi", "0", "0")),
        ([worker(limits(**{"nvidia.com/gpu": 2}), replicas=2)], ("500m", "1Gi", "4", "0")),
        ([worker(limits(**{"nvidia.com/mig-1g.5gb": 1, "amd.com/gpu": 1}))], ("500m", "1Gi", "2", "0")),
        ([worker(limits(**{"google.com/tpu": 4}), numOfHosts=2)], ("500m", "1Gi", "0", "8")),
        ([worker({"requests": {"cpu": "1"}}, replicas=3, suspend=True)], ("500m", "1Gi", "0", "0")),
        ([worker({"requests": {"cpu": "1"}}, replicas=20, maxReplicas=3)], ("3500m", "1Gi", "0", "0")),
        ([worker({"requests": {"cpu": "1"}}, replicas=0, minReplicas=2)], ("2500m", "1Gi", "0", "0")),
        ([worker({"requests": {"cpu": "1"}}, replicas=-1, minReplicas=1, numOfHosts=2)], ("2500m", "1Gi", "0", "0")),
        ([worker({"requests": {"cpu": "1"}}, replicas=-1)], ("500m", "1Gi", "0", "0")),
        ([worker({"requests": {"cpu": 1, "memory": 1000}}, replicas=None)], ("500m", "1Gi", "0", "0")),
        ([worker({}), worker({"requests": {"cpu": 0.5}})], ("1", "1Gi", "0", "0")),
    ],
)
def test_the_sums_over_head_and_workers(workers: list[dict[str, Any]], expected: tuple[str, ...]) -> None:
    assert tuple(desired_resources(ray_cluster(head=HEAD, workers=workers)).values()) == expected


@pytest.mark.parametrize(
    ("amounts", "memory"),
    [
        (["4G", "8G"], "12G"),
        (["4G", "1Gi"], "5073741824"),
        (["1Gi", "4G"], "4954826Ki"),
        ([None, "1500M"], "1500M"),
        (["2000000000", "0"], "2G"),
        (["0", "1Gi"], "1Gi"),
    ],
)
def test_memory_is_shown_in_the_notation_of_the_first_amount(amounts: list[str | None], memory: str) -> None:
    head, group = (template(resources={"limits": {"memory": amount}} if amount else {}) for amount in amounts)
    cluster = ray_cluster(head={"template": head}, workers=[worker_group(template=group)])
    assert desired_resources(cluster)["desiredMemory"] == memory


def test_init_containers_are_not_counted_and_all_others_are() -> None:
    one = {"name": "x", "resources": {"requests": {"cpu": "1"}}}
    head = {"template": {"spec": {"containers": [one, {**one, "name": "y"}], "initContainers": [one]}}}
    assert desired_resources(ray_cluster(head=head))["desiredCPU"] == "2"


def test_an_amount_that_is_no_quantity_is_an_error() -> None:
    with pytest.raises(QuantityError, match="plenty"):
        desired_resources(ray_cluster(workers=[worker({"requests": {"cpu": "plenty"}})]))
