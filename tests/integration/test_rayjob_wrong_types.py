"""Objects with wrong types, stored through an older schema that let them in: refused by field, all others go on."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from muster.kube.client import ApiClient
from muster.kube.config import load_connection
from muster.kube.resource import CRDS, NAMESPACES, PODGROUPS, PODS, RAYCLUSTERS, RAYJOBS
from tests.cluster.control_plane import ControlPlane
from tests.integration.observed import Object, Observed
from tests.integration.operators import Operator
from tests.integration.permissions import account_of_muster
from tests.integration.ray_dashboard import RayDashboards
from tests.integration.ray_manifests import ray_cluster, ray_job, worker_group
from tests.integration.stand_ins import StandIns

pytestmark = pytest.mark.control_plane


@pytest.fixture(scope="module")
def lax() -> Iterator[ControlPlane]:
    """Give a control plane of its own, because its schemas are changed."""
    with ControlPlane.start() as plane:
        yield plane


@pytest.fixture
async def seen(lax: ControlPlane) -> AsyncIterator[Observed]:
    namespace = f"test-{uuid.uuid4().hex[:8]}"
    async with ApiClient(load_connection(lax.kubeconfig)) as api:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        await api.create(NAMESPACES, None, body)
        for name in ("rayjobs.ray.io", "rayclusters.ray.io"):
            await accept_anything(api, name)
        yield Observed(api, namespace)


async def accept_anything(api: ApiClient, crd: str) -> None:
    """As the CRD of a first version, with no schema to speak of, would."""
    definition: Object = await api.get(CRDS, None, crd)
    for version in definition["spec"]["versions"]:
        version["schema"] = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    await api.replace(CRDS, None, crd, definition)


@pytest.fixture
async def operator(lax: ControlPlane, seen: Observed) -> AsyncIterator[Operator]:
    async with (
        RayDashboards().serve() as dashboards,
        StandIns(seen.api, seen.namespace).at_work(),
        Operator(load_connection(account_of_muster(lax)), seen.namespace, dashboards) as operator,
    ):
        yield operator


def with_replicas(manifest: Object, replicas: Any) -> Object:
    spec = manifest["spec"].get("rayClusterSpec") or manifest["spec"]
    spec["workerGroupSpecs"] = [worker_group(replicas=replicas)]
    return manifest


@pytest.mark.usefixtures("operator")
async def test_wrong_types_are_refused_by_field_and_all_others_go_on(seen: Observed) -> None:
    await seen.api.create(RAYJOBS, seen.namespace, with_replicas(ray_job("odd-job"), "two"))
    await seen.api.create(RAYCLUSTERS, seen.namespace, with_replicas(ray_cluster("odd-cluster"), "two"))
    await seen.api.create(RAYCLUSTERS, seen.namespace, {**ray_cluster("no-spec"), "spec": "a cluster, please"})
    await seen.api.create(RAYCLUSTERS, seen.namespace, ray_cluster("fine-cluster"))
    await seen.api.create(RAYJOBS, seen.namespace, ray_job("fine-job"))
    await seen.event("InvalidRayJobSpec", "spec.rayClusterSpec.workerGroupSpecs[0].replicas")
    await seen.event("InvalidRayClusterSpec", "spec.workerGroupSpecs[0].replicas")
    await seen.event("InvalidRayClusterSpec", "must be a mapping")
    await seen.job_state("fine-job", "Complete")
    await seen.cluster_state("fine-cluster", "ready")
    assert await seen.names(PODGROUPS) == {"ray-fine-job-pg", "ray-fine-cluster-pg"}
    for resource, name in ((RAYJOBS, "odd-job"), (RAYCLUSTERS, "odd-cluster"), (RAYCLUSTERS, "no-spec")):
        odd = await seen.get(resource, name)
        assert odd is not None
        assert not odd.get("status")


@pytest.mark.usefixtures("operator")
async def test_a_corrected_type_is_all_that_it_needs(seen: Observed) -> None:
    await seen.api.create(RAYJOBS, seen.namespace, with_replicas(ray_job("odd"), "two"))
    await seen.event("InvalidRayJobSpec", "must be an integer")
    groups = {"spec": {"rayClusterSpec": {"workerGroupSpecs": [worker_group(replicas=2)]}}}
    await seen.api.patch(RAYJOBS, seen.namespace, "odd", groups)
    await seen.job_state("odd", "Complete")


@pytest.mark.usefixtures("operator")
async def test_a_malformed_job_can_be_deleted(seen: Observed) -> None:
    broken = with_replicas(ray_job("odd"), "two")
    broken["metadata"]["finalizers"] = ["ray.io/rayjob-finalizer"]
    await seen.api.create(RAYJOBS, seen.namespace, broken)
    await seen.api.delete(RAYJOBS, seen.namespace, "odd")
    await seen.gone(RAYJOBS, PODS)
