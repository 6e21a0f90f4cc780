"""The webhook on a real API server: what it refuses, what it lets pass, and that it holds up nobody."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from muster.kube.client import ApiClient
from muster.kube.config import Connection
from muster.kube.errors import Invalid, NotFound
from muster.kube.resource import NAMESPACES, RAYCLUSTERS, RAYJOBS, Resource
from tests.cluster.ports import free_ports
from tests.integration.ray_manifests import cluster_spec, ray_cluster, ray_job, template, worker_group
from tests.integration.webhooks import configured, serving, until_it_judges

Manifest = dict[str, Any]
NO_MODE: Any = {"submissionMode": "CarrierPigeon"}


@pytest.fixture
def port() -> int:
    return free_ports(1)[0]


@pytest.fixture
async def webhook(api: ApiClient, connection: Connection, namespace: str, port: int) -> AsyncIterator[None]:
    async with configured(api, namespace, port), serving(connection, port):
        await until_it_judges(api, namespace)
        yield


def misspelt() -> Manifest:
    bad = template()
    container = bad["spec"]["containers"][0]
    container["resoruces"] = container.pop("resources")
    return bad


def with_a_claim(amount: str) -> Manifest:
    huge = template()
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": amount}}}
    huge["spec"]["volumes"] = [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}}]
    return huge


WAITS = {"name": "wait-gcs-ready", "image": "mine"}
REFUSED: dict[str, tuple[Resource, Manifest, str]] = {
    "a rule of jobs": (RAYJOBS, ray_job("odd", **NO_MODE), "spec.submissionMode: "),
    "a rule of the cluster in a job": (
        RAYJOBS,
        ray_job("odd", rayClusterSpec=cluster_spec(worker_group("a"), worker_group("a"))),
        "spec.rayClusterSpec.workerGroupSpecs[1].groupName: ",
    ),
    "a rule of clusters": (
        RAYCLUSTERS,
        ray_cluster("odd", worker_group("a"), worker_group("a")),
        "spec.workerGroupSpecs[1].groupName: ",
    ),
    "a name that is too long": (RAYJOBS, ray_job("x" * 48), "metadata.name: "),
    "an amount that takes the API server hours": (
        RAYCLUSTERS,
        ray_cluster("odd", worker_group(template=template(cpu="1e99999999999"))),
        "spec.workerGroupSpecs[0].template.spec.containers[0].resources.requests[cpu]: ",
    ),
    "such an amount in a claim": (
        RAYJOBS,
        ray_job("odd", submitterPodTemplate=with_a_claim("1e-2147483647")),
        "spec.submitterPodTemplate.spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests[storage]: ",
    ),
    "a template that the API server refuses": (
        RAYJOBS,
        ray_job("odd", rayClusterSpec=cluster_spec(worker_group(template=misspelt()))),
        "spec.rayClusterSpec.workerGroupSpecs[0].template.spec.containers[0].resoruces: ",
    ),
    "a template that does not go with what is added to it": (
        RAYJOBS,
        ray_job("odd", rayClusterSpec=cluster_spec(worker_group(template=template(initContainers=[WAITS])))),
        "spec.rayClusterSpec.workerGroupSpecs[0].template.spec.initContainers[0].name: ",
    ),
}


@pytest.mark.usefixtures("webhook")
async def test_what_the_controllers_would_refuse_is_refused_by_field_and_not_stored(
    api: ApiClient, namespace: str
) -> None:
    for case, (resource, manifest, field) in REFUSED.items():
        with pytest.raises(Invalid) as refusal:
            await api.create(resource, namespace, manifest)
        assert f"denied the request: {field}" in refusal.value.message, case
        with pytest.raises(NotFound):
            await api.get(resource, namespace, manifest["metadata"]["name"])


@pytest.mark.usefixtures("webhook")
async def test_what_is_right_is_stored_and_a_change_for_the_worse_is_not(api: ApiClient, namespace: str) -> None:
    await api.create(RAYJOBS, namespace, ray_job("demo"))
    await api.create(RAYCLUSTERS, namespace, ray_cluster("demo"))

    with pytest.raises(Invalid, match=r"spec\.backoffLimit: "):
        await api.patch(RAYJOBS, namespace, "demo", {"spec": {"backoffLimit": -1}})
    await api.patch(RAYJOBS, namespace, "demo", {"spec": {"backoffLimit": 1}})
    assert (await api.get(RAYJOBS, namespace, "demo"))["spec"]["backoffLimit"] == 1


async def test_an_object_with_an_old_fault_can_be_changed_otherwise_mended_and_deleted(
    api: ApiClient, connection: Connection, namespace: str, port: int
) -> None:
    two = [worker_group("a"), worker_group("a")]
    await api.create(RAYCLUSTERS, namespace, ray_cluster("old", *two))
    held = ray_job("held", **NO_MODE)
    held["metadata"]["finalizers"] = ["example.com/held"]
    await api.create(RAYJOBS, namespace, held)
    async with configured(api, namespace, port), serving(connection, port):
        await until_it_judges(api, namespace)
        scaled = [{**group, "replicas": 1} for group in two]
        await api.patch(RAYCLUSTERS, namespace, "old", {"spec": {"workerGroupSpecs": scaled}})
        with pytest.raises(Invalid, match=r"spec\.workerGroupSpecs\[2\]\.groupName: "):
            await api.patch(RAYCLUSTERS, namespace, "old", {"spec": {"workerGroupSpecs": [*two, worker_group("a")]}})
        await api.patch(RAYCLUSTERS, namespace, "old", {"spec": {"workerGroupSpecs": [worker_group("a")]}})

        await api.patch(RAYJOBS, namespace, "held", {"metadata": {"annotations": {"note": "x"}}})
        await api.delete(RAYJOBS, namespace, "held")
        await api.patch(RAYJOBS, namespace, "held", {"metadata": {"finalizers": None}})
        with pytest.raises(NotFound):
            await api.get(RAYJOBS, namespace, "held")


@pytest.mark.usefixtures("webhook")
async def test_objects_as_large_as_can_be_stored_are_judged(api: ApiClient, namespace: str) -> None:
    large = template()
    large["spec"]["containers"][0]["env"] = [{"name": f"V{number}", "value": "x" * 100_000} for number in range(8)]
    spec = cluster_spec()
    spec["headGroupSpec"]["template"] = large
    await api.create(RAYJOBS, namespace, ray_job("large", rayClusterSpec=spec))
    with pytest.raises(Invalid, match=r"spec\.backoffLimit: "):
        await api.patch(RAYJOBS, namespace, "large", {"spec": {"backoffLimit": -1}})


@pytest.mark.usefixtures("webhook")
async def test_a_cluster_of_very_many_groups_is_judged(api: ApiClient, namespace: str) -> None:
    groups = [worker_group(f"g{number}", 1, template=template(cpu=f"{number + 1}m")) for number in range(2000)]
    with pytest.raises(Invalid, match=r"spec\.workerGroupSpecs\[2000\]\.groupName: "):
        await api.create(RAYCLUSTERS, namespace, ray_cluster("many", *groups, worker_group("g7", 1)))


@pytest.mark.usefixtures("webhook")
async def test_what_another_controller_manages_and_a_namespace_that_is_exempt_are_left_alone(
    api: ApiClient, namespace: str
) -> None:
    await api.create(RAYJOBS, namespace, ray_job("kueues", managedBy="kueue.x-k8s.io/multikueue", **NO_MODE))

    await api.patch(NAMESPACES, None, namespace, {"metadata": {"labels": {"muster.dev/admission": "ignore"}}})
    async with asyncio.timeout(20):
        while True:
            try:
                await api.create(RAYJOBS, namespace, ray_job("free", **NO_MODE))
            except Invalid:  # the API server has not heard of the label yet
                await asyncio.sleep(0.1)
            else:
                break


async def test_a_webhook_that_is_away_holds_up_nobody(
    api: ApiClient, connection: Connection, namespace: str, port: int
) -> None:
    async with configured(api, namespace, port):
        async with serving(connection, port):
            await until_it_judges(api, namespace)
        await api.create(RAYJOBS, namespace, ray_job("odd", **NO_MODE))
