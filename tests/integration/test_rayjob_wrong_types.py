"""Objects with wrong types, stored through an older schema that let them in: refused by field, all others go on."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

import pytest

from muster.kube.client import ApiClient
from muster.kube.config import load_connection
from muster.kube.resource import CRDS, NAMESPACES, PODGROUPS, PODS, RAYCLUSTERS, RAYJOBS, Resource
from tests.cluster.control_plane import ControlPlane
from tests.integration.observed import Object, Observed
from tests.integration.operators import Operator
from tests.integration.permissions import account_of_muster
from tests.integration.ray_dashboard import RayDashboards
from tests.integration.ray_manifests import cluster_spec, ray_cluster, ray_job, worker_group
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
        for name in ("rayjobs.ray.io", "rayclusters.ray.io", "podgroups.scheduling.volcano.sh"):
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
async def dashboards() -> AsyncIterator[RayDashboards]:
    async with RayDashboards().serve() as dashboards:
        yield dashboards


@pytest.fixture
async def operator(
    lax: ControlPlane, seen: Observed, stand_ins: StandIns, dashboards: RayDashboards
) -> AsyncIterator[Operator]:
    async with Operator(load_connection(account_of_muster(lax)), seen.namespace, dashboards) as operator:
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


async def spoil(seen: Observed, resource: Resource, name: str, spec: Any) -> str:
    """Make an object one that can't be read; how that is told of."""
    await seen.api.patch(resource, seen.namespace, name, {"spec": spec})
    return f"{resource.kind} {seen.namespace}/{name} can't be read: spec"


async def tells(seen: Observed, words: str) -> None:
    """Wait until the job says so, and what can be done about it."""
    job = await seen.until(
        RAYJOBS, "demo", lambda job: words in (job["status"].get("message") or ""), "the job tells of it"
    )
    assert job["status"]["reason"] == "UnreadableObject"
    assert job["status"]["message"].endswith("; correct it or delete it")
    await seen.event("UnreadableObject", words)


@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize("resource", [PODGROUPS, RAYCLUSTERS])
async def test_what_can_not_be_read_of_a_running_job_is_told_and_keeps_it_from_nothing(
    seen: Observed, dashboards: RayDashboards, resource: Resource
) -> None:
    await seen.api.create(RAYJOBS, seen.namespace, ray_job("demo", "run"))
    status = await seen.job_state("demo", "Running")
    name = "ray-demo-pg" if resource is PODGROUPS else status["rayClusterName"]
    junk, sound = ({"queue": 5}, {"queue": None}) if resource is PODGROUPS else ("none", cluster_spec())
    await tells(seen, await spoil(seen, resource, name, junk))
    await seen.api.patch(resource, seen.namespace, name, {"spec": sound})
    healed = await seen.until(RAYJOBS, "demo", lambda job: not job["status"].get("reason"), "it can be read again")
    assert "can't be read" not in (healed["status"].get("message") or "")
    await tells(seen, await spoil(seen, resource, name, junk))
    dashboards.run_of(status["jobId"]).end("SUCCEEDED")
    await seen.job_state("demo", "Complete")


@pytest.mark.usefixtures("operator")
async def test_what_can_not_be_read_holds_up_no_suspension(seen: Observed) -> None:
    await seen.api.create(RAYJOBS, seen.namespace, ray_job("demo", "run", shutdownAfterJobFinishes=True))
    await seen.api.create(RAYCLUSTERS, seen.namespace, ray_cluster("alone"))
    status = await seen.job_state("demo", "Running")
    await seen.cluster_state("alone", "ready")
    for name in ("ray-demo-pg", "ray-alone-pg"):
        await spoil(seen, PODGROUPS, name, {"queue": 5, "minMember": "three"})
    await seen.event("UnreadableObject", f"PodGroup {seen.namespace}/ray-alone-pg can't be read: spec.")
    await spoil(seen, RAYCLUSTERS, status["rayClusterName"], "none")
    for name, resource in (("demo", RAYJOBS), ("alone", RAYCLUSTERS)):
        await seen.api.patch(resource, seen.namespace, name, {"spec": {"suspend": True}})
    await seen.job_state("demo", "Suspended")
    await seen.cluster_state("alone", "suspended")
    assert await seen.names(RAYCLUSTERS) == {"alone"}
    assert [one["spec"]["minMember"] for one in await seen.all(PODGROUPS)] == [0, 0]
