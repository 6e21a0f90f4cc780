"""Objects with wrong types, stored through an older schema that let them in: refused by field, all others go on."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

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
async def stand_ins(seen: Observed) -> AsyncIterator[StandIns]:
    async with StandIns(seen.api, seen.namespace).at_work() as stand_ins:
        yield stand_ins


@pytest.fixture
async def operator(lax: ControlPlane, seen: Observed, stand_ins: StandIns) -> AsyncIterator[Operator]:
    async with (
        RayDashboards().serve() as dashboards,
        Operator(load_connection(account_of_muster(lax)), seen.namespace, dashboards) as operator,
    ):
        yield operator


def with_replicas(manifest: Object, replicas: Any) -> Object:
    spec = manifest["spec"].get("rayClusterSpec") or manifest["spec"]
    spec["workerGroupSpecs"] = [worker_group(replicas=replicas)]
    return manifest


MISTYPED = {"spec": {"rayClusterSpec": {"workerGroupSpecs": [worker_group(replicas=cast("int", "two"))]}}}


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
    status = await seen.job_state("odd-job", "ValidationFailed")
    assert status["reason"] == "ValidationFailed"
    assert status["message"].startswith("spec.rayClusterSpec.workerGroupSpecs[0].replicas: must be an integer")
    for name, field in (("odd-cluster", "spec.workerGroupSpecs[0].replicas"), ("no-spec", "spec")):
        odd = await seen.get(RAYCLUSTERS, name)
        assert odd is not None
        (condition,) = odd["status"]["conditions"]
        assert (condition["type"], condition["reason"]) == ("ReplicaFailure", "InvalidRayClusterSpec")
        assert condition["message"] == odd["status"]["reason"]
        assert condition["message"].startswith(f"{field}: must be ")


@pytest.mark.usefixtures("operator")
async def test_what_was_told_of_a_wrong_type_is_not_written_again(seen: Observed) -> None:
    await seen.api.create(RAYJOBS, seen.namespace, with_replicas(ray_job("odd"), 3_000_000_000))
    await seen.api.create(RAYCLUSTERS, seen.namespace, with_replicas(ray_cluster("odd"), 3_000_000_000))
    await seen.job_state("odd", "ValidationFailed")
    await seen.until(RAYCLUSTERS, "odd", lambda cluster: bool(cluster.get("status")), "it has a status")
    # The note is a reason to look again, and the job that comes after it is one for which time has passed.
    noted = {"metadata": {"annotations": {"note": "look"}}}
    left = {each: await seen.api.patch(each, seen.namespace, "odd", noted) for each in (RAYJOBS, RAYCLUSTERS)}
    await seen.api.create(RAYJOBS, seen.namespace, ray_job("after"))
    await seen.job_state("after", "Complete")
    for resource, before in left.items():
        assert await seen.get(resource, "odd") == before


@pytest.mark.usefixtures("operator")
async def test_a_running_job_is_not_changed_by_an_edit_of_the_wrong_type(seen: Observed) -> None:
    await seen.api.create(RAYJOBS, seen.namespace, ray_job("busy", "run"))
    before = await seen.job_state("busy", "Running")
    await seen.api.patch(RAYJOBS, seen.namespace, "busy", MISTYPED)
    await seen.event("InvalidRayJobSpec", "spec.rayClusterSpec.workerGroupSpecs[0].replicas")
    await seen.api.create(RAYJOBS, seen.namespace, ray_job("after"))
    await seen.job_state("after", "Complete")
    assert await seen.job_state("busy", "Running") == before
    await seen.cluster_state(before["rayClusterName"], "ready")


async def test_a_job_that_has_not_run_gives_everything_back_and_begins_anew_when_the_type_is_right(
    seen: Observed, stand_ins: StandIns, operator: Operator
) -> None:
    stand_ins.holds_back = lambda pod: True
    await seen.api.create(RAYJOBS, seen.namespace, ray_job("early"))
    first = await seen.job_state("early", "Initializing")
    await seen.until(RAYCLUSTERS, first["rayClusterName"], lambda _: True, "it is there")
    await seen.api.patch(RAYJOBS, seen.namespace, "early", MISTYPED)
    await seen.job_state("early", "ValidationFailed")
    await seen.gone(RAYCLUSTERS, PODS)
    stand_ins.holds_back = lambda pod: False
    await seen.api.patch(RAYJOBS, seen.namespace, "early", {"spec": ray_job("early")["spec"]})
    assert (await seen.job_state("early", "Complete"))["rayClusterName"] != first["rayClusterName"]


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
