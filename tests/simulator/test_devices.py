"""Devices and claims in a simulation."""

from __future__ import annotations

from typing import Any

from tests.simulator.conftest import Simulate, bound
from tests.simulator.manifests import node, pod, pod_group

API = "resource.k8s.io/v1"
GATE = {"schedulingGates": [{"name": "muster.dev/gang"}], "scheduler": "default-scheduler"}


def device_class() -> dict[str, Any]:
    selectors = [{"cel": {"expression": 'device.attributes["gpu.example.com"].model == "a100"'}}]
    return {"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {"selectors": selectors}}


def devices(of: str, *models: str) -> dict[str, Any]:
    found = [{"name": f"g{n}", "attributes": {"model": {"string": model}}} for n, model in enumerate(models)]
    pool = {"name": of, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "pool": pool, "nodeName": of, "devices": found}
    return {"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": of}, "spec": spec}


def claim(name: str, count: int = 1) -> dict[str, Any]:
    requests = [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": count}}]
    spec = {"devices": {"requests": requests}}
    return {"apiVersion": API, "kind": "ResourceClaim", "metadata": {"name": name}, "spec": spec}


def user(name: str, group: str, **options: Any) -> dict[str, Any]:
    claims = [{"name": "gpu", "resourceClaimName": name}]
    return pod(name, group, resourceClaims=claims, **{**GATE, **options})


def test_a_pod_goes_where_a_device_of_its_class_is_and_keeps_it(simulate: Simulate) -> None:
    first, second = simulate(
        node("n1"),
        node("n2"),
        device_class(),
        devices("n1", "t4"),
        devices("n2", "a100"),
        claim("p"),
        claim("q"),
        pod_group("first"),
        user("p", "first"),
        pod_group("second"),
        user("q", "second"),
        cycles=2,
    )
    assert bound(first) == {"p": "n2"}
    assert bound(second) == {}
    assert second["podGroups"]["default/first"]["phase"] == "Running"
    waits = second["podGroups"]["default/second"]["reason"]
    assert (waits["code"], waits["resource"], waits["requested"]) == ("NotEnoughNodes", "deviceclass/gpu", "1")


def test_when_a_pod_ends_its_device_is_free(simulate: Simulate) -> None:
    objects = [
        node("n1"),
        device_class(),
        devices("n1", "a100"),
        claim("p"),
        claim("q"),
        pod_group("a"),
        pod_group("b"),
    ]
    documents = simulate(*objects, user("p", "a", runtime="15s"), user("q", "b"), cycles=4)
    assert [bound(each) for each in documents] == [{"p": "n1"}, {}, {"q": "n1"}, {}]


def test_without_anything_said_of_devices_claims_are_passed_over(simulate: Simulate) -> None:
    (document,) = simulate(node("n1"), pod_group("g"), user("p", "g"))
    assert bound(document) == {"p": "n1"}


def test_a_pod_of_our_own_scheduler_with_claims_is_not_bound(simulate: Simulate) -> None:
    (document,) = simulate(node("n1"), pod_group("g"), user("p", "g", scheduler="muster"))
    assert bound(document) == {}
    assert document["podGroups"]["default/g"]["reason"]["code"] == "NeedsDefaultScheduler"
