"""RayClusters whose state is in a Redis: however they are deleted, it is cleared out, or they are let go in time."""

from __future__ import annotations

from typing import Any

import pytest

from muster.kube.config import Connection
from muster.kube.resource import JOBS, NAMESPACES, PODGROUPS, PODS, RAYCLUSTERS, RAYJOBS, SERVICES
from tests.integration.fault_proxy import Answer, FaultProxy, matching
from tests.integration.observed import Observed
from tests.integration.operators import Operator, eventually
from tests.integration.ray_dashboard import RayDashboards
from tests.integration.ray_manifests import cluster_spec, ray_cluster, ray_job
from tests.integration.stand_ins import StandIns

pytest_plugins = ("tests.integration.controller_fixtures",)

FINALIZER = "ray.io/gcs-ft-redis-cleanup-finalizer"
JOB = "demo-redis-cleanup"
REDIS = {"gcsFaultToleranceOptions": {"redisAddress": "redis:6379", "redisPassword": {"value": "hush"}}}
ALL = (RAYCLUSTERS, PODS, SERVICES, JOBS, PODGROUPS)

Object = dict[str, Any]


@pytest.fixture
async def running(operator: Operator, seen: Observed) -> Operator:
    """Give the operator with a cluster that is ready."""
    await create(seen)
    await seen.cluster_state("demo", "ready")
    return operator


async def create(seen: Observed, annotations: dict[str, str] | None = None, **spec: Any) -> None:
    manifest = ray_cluster("demo", **{**REDIS, **spec})
    manifest["metadata"]["annotations"] = annotations or {}
    await seen.api.create(RAYCLUSTERS, seen.namespace, manifest)


async def delete(seen: Observed, propagation: str = "Background") -> None:
    await seen.api.delete(RAYCLUSTERS, seen.namespace, "demo", propagation=propagation)


async def cleanup_job(seen: Observed) -> Object:
    return await seen.until(JOBS, JOB, lambda job: True, "the cleanup Job")


async def holds(seen: Observed) -> bool:
    cluster = await seen.get(RAYCLUSTERS, "demo")
    assert cluster is not None
    return FINALIZER in cluster["metadata"].get("finalizers", [])


async def test_the_finalizer_is_there_before_any_pod(
    proxy: FaultProxy, seen: Observed, stand_ins: StandIns, dashboards: RayDashboards
) -> None:
    refusals = proxy.inject(Answer(500, "InternalError"), when=matching("POST", "/pods$"), times=10_000)
    async with Operator(proxy.connection(), seen.namespace, dashboards):
        await create(seen)

        async def tried() -> bool:
            return refusals.hits > 0

        await eventually(tried, "a pod was to be made")
        assert await holds(seen)
        await delete(seen)
        await cleanup_job(seen)
        await stand_ins.end_submitter(JOB, succeeded=True)
        await seen.gone(*ALL)


async def test_a_deleted_cluster_goes_when_its_job_has_ended(
    running: Operator, seen: Observed, stand_ins: StandIns
) -> None:
    pods = {pod["metadata"]["labels"]["ray.io/node-type"]: pod for pod in await seen.pods()}
    env = {entry["name"]: entry.get("value") for entry in pods["head"]["spec"]["containers"][0]["env"]}
    assert env["RAY_external_storage_namespace"] == pods["head"]["metadata"]["ownerReferences"][0]["uid"]
    await delete(seen)
    job = await cleanup_job(seen)
    assert await seen.pods() == []
    template = job["spec"]["template"]["spec"]
    assert template.get("schedulerName") == "default-scheduler"
    assert not template.get("schedulingGates")
    assert await holds(seen)
    await running.kill()
    await stand_ins.end_submitter(JOB, succeeded=True)
    assert await holds(seen)
    await running.start()
    await seen.gone(*ALL)
    await seen.event("CreatedRedisCleanupJob")
    assert len(await stand_ins.all_that_ever_were(JOBS)) == 1


@pytest.mark.usefixtures("running")
async def test_a_job_that_fails_is_told_and_holds_nothing(seen: Observed, stand_ins: StandIns) -> None:
    await delete(seen)
    await cleanup_job(seen)
    await stand_ins.end_submitter(JOB, succeeded=False)
    await seen.gone(*ALL)
    note = await seen.event("FailedRedisCleanup", "may be left in the Redis")
    assert "hush" not in note


@pytest.mark.usefixtures("operator")
async def test_a_cluster_is_let_go_when_its_time_is_up(seen: Observed) -> None:
    await create(seen, {"ray.io/gcs-ft-deletion-timeout": "3"})
    await seen.cluster_state("demo", "ready")
    await delete(seen)
    await cleanup_job(seen)
    await seen.gone(*ALL)
    await seen.event("ForceDeletedStuckCluster", "after 3 s")


@pytest.mark.usefixtures("operator")
async def test_a_foreign_job_of_the_name_is_left_alone(seen: Observed) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    labels = {"ray.io/node-type": "redis-cleanup", "app.kubernetes.io/created-by": "kuberay-operator"}
    foreign = {"metadata": {"name": JOB, "labels": labels}, "spec": {"template": template}}
    made = await seen.api.create(JOBS, seen.namespace, foreign)
    await create(seen, {"ray.io/gcs-ft-deletion-timeout": "3"})
    await seen.cluster_state("demo", "ready")
    await delete(seen)
    await seen.gone(RAYCLUSTERS, PODS, PODGROUPS)
    await seen.event("ForceDeletedStuckCluster")
    await seen.event("NameTaken", f"Job {JOB} exists already")
    left = await seen.get(JOBS, JOB)
    assert left is not None
    assert left["metadata"]["uid"] == made["metadata"]["uid"]


@pytest.mark.usefixtures("running")
async def test_a_namespace_that_is_deleted_does_not_get_stuck(seen: Observed) -> None:
    await seen.api.delete(NAMESPACES, None, seen.namespace)
    await delete(seen)  # as the namespace controller would
    await seen.gone(RAYCLUSTERS, within=60.0)
    assert await seen.names(JOBS) == set()


@pytest.mark.usefixtures("running")
async def test_a_deletion_in_the_foreground_does_not_take_the_job_with_it(seen: Observed, stand_ins: StandIns) -> None:
    await delete(seen, "Foreground")
    job = await cleanup_job(seen)
    assert "ownerReferences" not in job["metadata"]
    assert job["spec"]["ttlSecondsAfterFinished"] == 30
    # The garbage collector has done its part before the Job has ended.
    await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", {"metadata": {"finalizers": [FINALIZER]}})
    await stand_ins.end_submitter(JOB, succeeded=True)
    await seen.gone(RAYCLUSTERS, within=60.0)


@pytest.mark.usefixtures("running")
async def test_a_cluster_whose_pods_are_to_go_on_keeps_its_state(seen: Observed) -> None:
    before = {pod["metadata"]["uid"] for pod in await seen.pods()}
    await delete(seen, "Orphan")

    async def ours_is_dropped() -> bool:
        return not await holds(seen)

    await eventually(ours_is_dropped, "the finalizer is dropped")
    assert {pod["metadata"]["uid"] for pod in await seen.pods()} == before
    assert await seen.names(JOBS) == set()


@pytest.mark.usefixtures("running")
async def test_a_suspended_cluster_is_cleared_out_too(seen: Observed, stand_ins: StandIns) -> None:
    await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", {"spec": {"suspend": True}})
    await seen.cluster_state("demo", "suspended")
    assert await holds(seen)
    await delete(seen)
    await cleanup_job(seen)
    await stand_ins.end_submitter(JOB, succeeded=True)
    await seen.gone(*ALL)


async def test_where_it_is_switched_off_nothing_is_held(
    connection: Connection, seen: Observed, dashboards: RayDashboards, stand_ins: StandIns
) -> None:
    async with Operator(connection, seen.namespace, dashboards, redis_cleanup=False):
        await create(seen)
        await seen.cluster_state("demo", "ready")
        assert not await holds(seen)
        # One that was made before it was switched off.
        await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", {"metadata": {"finalizers": [FINALIZER]}})
        await delete(seen)
        await seen.gone(*ALL)
    assert await stand_ins.all_that_ever_were(JOBS) == set()


@pytest.mark.usefixtures("operator")
async def test_the_older_style_is_cleared_out_too(seen: Observed, stand_ins: StandIns) -> None:
    annotations = {"ray.io/ft-enabled": "true", "ray.io/external-storage-namespace": "mine"}
    await create(seen, annotations, gcsFaultToleranceOptions=None)
    await seen.cluster_state("demo", "ready")
    await delete(seen)
    job = await cleanup_job(seen)
    env = {entry["name"]: entry.get("value") for entry in job["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert env["RAY_external_storage_namespace"] == "mine"
    await stand_ins.end_submitter(JOB, succeeded=True)
    await seen.gone(*ALL)


@pytest.mark.usefixtures("operator")
async def test_a_deleted_job_leaves_nothing_either(seen: Observed, stand_ins: StandIns) -> None:
    spec = cluster_spec(**REDIS)
    await seen.api.create(
        RAYJOBS, seen.namespace, ray_job("job", "wait", rayClusterSpec=spec, submissionMode="HTTPMode")
    )
    await seen.job_state("job", "Running")
    await seen.api.delete(RAYJOBS, seen.namespace, "job")

    async def job() -> str | None:
        return next(iter(await seen.names(JOBS)), None)

    await stand_ins.end_submitter(await eventually(job, "the cleanup Job"), succeeded=True)
    await seen.gone(RAYJOBS, *ALL)


LABELS = {"metadata": {"labels": {"volcano.sh/network-topology-highest-tier-allowed": "high"}}}


def head_of(*containers: Object) -> Object:
    return {"spec": {"headGroupSpec": {"template": {"spec": {"containers": list(containers)}}}}}


@pytest.mark.usefixtures("running")
async def test_a_label_that_no_gang_can_have_does_not_hold_it(seen: Observed, stand_ins: StandIns) -> None:
    await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", LABELS)
    await delete(seen)
    await cleanup_job(seen)
    await stand_ins.end_submitter(JOB, succeeded=True)
    await seen.gone(*ALL)


@pytest.mark.parametrize(
    ("head", "told"),
    [
        pytest.param(head_of(), "spec.headGroupSpec.template.spec.containers", id="no container"),
        pytest.param(head_of({"name": "ray", "image": "i", "env": [{"value": "x"}]}), ".env[0].name", id="wrong types"),
        pytest.param(
            head_of({"name": "ray", "image": "i", "resources": {"limits": {"cpu": "many"}}}), "many", id="no quantity"
        ),
    ],
)
@pytest.mark.usefixtures("operator")
async def test_a_spec_that_was_spoilt_afterwards_is_told_and_does_not_hold_it(
    seen: Observed, head: Object, told: str
) -> None:
    await create(seen, {"ray.io/gcs-ft-deletion-timeout": "3"})
    await seen.cluster_state("demo", "ready")
    await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", head)
    await delete(seen)
    await seen.gone(*ALL)
    await seen.event("FailedToCreateRedisCleanupJob", told)
    await seen.event("ForceDeletedStuckCluster", "after 3 s")


@pytest.mark.usefixtures("stand_ins")
async def test_a_gang_that_nobody_may_release_does_not_hold_it(
    proxy: FaultProxy, seen: Observed, dashboards: RayDashboards
) -> None:
    async with Operator(proxy.connection(), seen.namespace, dashboards):
        await create(seen, {"ray.io/gcs-ft-deletion-timeout": "3"})
        await seen.cluster_state("demo", "ready")
        proxy.inject(Answer(403, "Forbidden"), when=matching("PATCH", "/podgroups/"), times=10_000)
        await delete(seen)
        await seen.gone(RAYCLUSTERS)
        await seen.event("ForceDeletedStuckCluster", "after 3 s")


@pytest.mark.usefixtures("running")
async def test_a_cluster_that_was_given_to_another_controller_is_still_let_go(
    seen: Observed, stand_ins: StandIns
) -> None:
    managed = {"spec": {"managedBy": "kueue.x-k8s.io/multikueue"}}
    await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", managed)
    await delete(seen)
    await cleanup_job(seen)
    await stand_ins.end_submitter(JOB, succeeded=True)
    await seen.gone(*ALL)
