"""RayClusters on a real API server: scale, replacement, suspension, refusal and recovery."""

from __future__ import annotations

from typing import Any

import pytest

from muster.controllers.excerpt import LONGEST
from muster.controllers.raycluster import plan
from muster.kube.client import ApiClient
from muster.kube.resource import PODGROUPS, PODS, QUEUES, RAYCLUSTERS, SERVICES, Resource
from tests.integration.observed import Observed, conditions
from tests.integration.operators import eventually
from tests.integration.ray_manifests import queue, ray_cluster, template, worker_group
from tests.integration.stand_ins import StandIns

LIMIT_RANGES = Resource("", "v1", "limitranges", "LimitRange")

pytest_plugins = ("tests.integration.controller_fixtures",)
pytestmark = pytest.mark.usefixtures("operator")


async def scale(seen: Observed, *groups: dict[str, Any]) -> None:
    patch = {"spec": {"workerGroupSpecs": list(groups)}}
    await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", patch)


async def counts(seen: Observed, group: str, number: int) -> None:
    async def right() -> bool:
        return len(await seen.pods(group)) == number

    await eventually(right, f"{number} pods in group {group}")


async def create(seen: Observed, manifest: dict[str, Any]) -> None:
    await seen.api.create(RAYCLUSTERS, seen.namespace, manifest)


async def test_a_cluster_becomes_ready_as_a_gated_gang(seen: Observed) -> None:
    await create(seen, ray_cluster("demo"))
    status = await seen.cluster_state("demo", "ready")
    assert (status["readyWorkerReplicas"], status["desiredWorkerReplicas"]) == (2, 2)
    assert conditions(status) == {
        "HeadPodReady": "True",
        "RayClusterProvisioned": "True",
        "RayClusterSuspending": "False",
        "RayClusterSuspended": "False",
    }
    assert await seen.names(SERVICES) == {"demo-head-svc"}
    pods = await seen.pods()
    assert len(pods) == 3
    for pod in pods:
        assert pod["spec"]["schedulerName"] == "muster"
        assert pod["spec"]["schedulingGates"] == [{"name": "muster.dev/gang"}]
        assert pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "ray-demo-pg"
    group = await seen.get(PODGROUPS, "ray-demo-pg")
    assert group is not None
    assert group["spec"]["minMember"] == 3
    assert group["status"]["phase"] == "Pending"
    await seen.event("CreatedHeadPod")
    await seen.event("CreatedWorkerPod", "Created 2 worker Pods")
    await seen.event("CreatedService", "demo-head-svc")


async def test_scaling_up_and_down_leaves_ready_workers_alone(seen: Observed, stand_ins: StandIns) -> None:
    await create(seen, ray_cluster("demo", worker_group(replicas=2)))
    await seen.cluster_state("demo", "ready")
    old = {pod["metadata"]["name"] for pod in await seen.pods("workers")}
    stand_ins.holds_back = lambda pod: pod["metadata"]["name"] not in old
    await scale(seen, worker_group(replicas=4))
    await counts(seen, "workers", 4)
    group = await seen.until(PODGROUPS, "ray-demo-pg", lambda pg: pg["spec"]["minMember"] == 5, "the gang has grown")
    assert group["spec"]["minTaskMember"] == {"headgroup": 1, "workers": 4}
    await scale(seen, worker_group(replicas=2))
    await counts(seen, "workers", 2)
    assert {pod["metadata"]["name"] for pod in await seen.pods("workers")} == old
    await seen.event("DeletedWorkerPod", "more workers than it should")


async def test_a_large_group_comes_in_several_passes(seen: Observed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "CREATIONS_A_PASS", 4)
    await create(seen, ray_cluster("demo", worker_group(replicas=10), worker_group("hosts", replicas=3, numOfHosts=3)))
    status = await seen.cluster_state("demo", "ready")
    assert (status["desiredWorkerReplicas"], status["readyWorkerReplicas"]) == (19, 19)
    assert {pod["metadata"]["labels"]["ray.io/worker-group-replica-index"] for pod in await seen.pods("workers")} == {
        str(index) for index in range(10)
    }


async def test_a_failed_worker_is_replaced_and_other_groups_are_served_meanwhile(
    seen: Observed, stand_ins: StandIns
) -> None:
    await create(seen, ray_cluster("demo", worker_group("one", 1), worker_group("two", 1)))
    await seen.cluster_state("demo", "ready")
    (dead,) = await seen.pods("one")
    await stand_ins.set_pod(dead["metadata"]["name"], phase="Failed", ready=False)
    await scale(seen, worker_group("one", 1), worker_group("two", 2))
    await counts(seen, "two", 2)

    async def replaced() -> bool:
        return [pod["metadata"]["uid"] for pod in await seen.pods("one")] not in ([], [dead["metadata"]["uid"]])

    await eventually(replaced, "another worker in the place of the failed one")
    await seen.event("DeletedWorkerPod", dead["metadata"]["name"])


async def test_a_replica_in_the_place_of_a_broken_one_has_a_name_of_its_own(
    seen: Observed, stand_ins: StandIns
) -> None:
    await create(seen, ray_cluster("demo", worker_group("hosts", 1, numOfHosts=2)))
    await seen.cluster_state("demo", "ready")
    pods = await seen.pods("hosts")
    (broken,) = replica_names(pods)
    await stand_ins.set_pod(pods[0]["metadata"]["name"], phase="Failed", ready=False)

    async def another() -> set[str]:
        found = await seen.pods("hosts")
        return replica_names(found) - {broken} if len(found) == 2 else set()

    assert len(await eventually(another, "another replica")) == 1


def replica_names(pods: list[dict[str, Any]]) -> set[str]:
    return {pod["metadata"]["labels"]["ray.io/worker-group-replica-name"] for pod in pods}


async def test_a_failed_head_is_replaced(seen: Observed, stand_ins: StandIns) -> None:
    await create(seen, ray_cluster("demo"))
    await seen.cluster_state("demo", "ready")
    (head,) = await seen.pods("headgroup")
    await stand_ins.set_pod(head["metadata"]["name"], phase="Failed", ready=False)

    async def another() -> bool:
        uids = [pod["metadata"]["uid"] for pod in await seen.pods("headgroup")]
        return len(uids) == 1 and uids != [head["metadata"]["uid"]]

    await eventually(another, "one other head")
    await seen.event("DeletedHeadPod")


async def test_the_pods_of_a_removed_group_go(seen: Observed) -> None:
    await create(seen, ray_cluster("demo", worker_group("keep", 1), worker_group("drop", 2)))
    await seen.cluster_state("demo", "ready")
    await scale(seen, worker_group("keep", 1))
    await counts(seen, "drop", 0)
    await counts(seen, "keep", 1)
    await seen.event("DeletedWorkerPod", "not in the spec any more")


async def test_a_pod_that_the_cluster_does_not_own_is_never_deleted(seen: Observed) -> None:
    foreign = {
        "metadata": {
            "name": "foreign",
            "labels": {"ray.io/cluster": "demo", "ray.io/group": "workers", "ray.io/node-type": "worker"},
        },
        "spec": template()["spec"],
    }
    await seen.api.create(PODS, seen.namespace, foreign)
    named = worker_group(replicas=1, scaleStrategy={"workersToDelete": ["foreign"]})
    await create(seen, ray_cluster("demo", named))
    await seen.cluster_state("demo", "ready")
    await scale(seen, worker_group(replicas=0, scaleStrategy={"workersToDelete": ["foreign"]}))

    async def only_the_foreign_one() -> bool:
        return {pod["metadata"]["name"] for pod in await seen.pods("workers")} == {"foreign"}

    await eventually(only_the_foreign_one, "only the foreign pod is left of the workers")


FROM_JOB = {"ray.io/originated-from-crd": "RayJob", "ray.io/originated-from-cr-name": "nobody"}


async def test_a_copy_of_a_jobs_cluster_is_a_gang_of_its_own(seen: Observed) -> None:
    copy = ray_cluster("demo")
    await create(seen, {**copy, "metadata": {**copy["metadata"], "labels": FROM_JOB}})
    await seen.cluster_state("demo", "ready")
    assert await seen.names(PODGROUPS) == {"ray-demo-pg"}
    groups = {pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] for pod in await seen.pods()}
    assert groups == {"ray-demo-pg"}


async def test_a_cluster_that_its_job_left_behind_stays_in_the_jobs_gang_with_its_pods(seen: Observed) -> None:
    group = {"metadata": {"annotations": {"scheduling.k8s.io/group-name": "ray-nobody-pg"}}}
    await create(seen, ray_cluster("demo"))
    await seen.cluster_state("demo", "ready")
    for pod in await seen.pods():
        await seen.api.patch(PODS, seen.namespace, pod["metadata"]["name"], group)
    await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", {"metadata": {"labels": FROM_JOB}})
    await scale(seen, worker_group(replicas=3))
    await counts(seen, "workers", 3)
    groups = {pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] for pod in await seen.pods()}
    assert groups == {"ray-nobody-pg"}


async def test_pods_that_lose_their_owner_reference_are_made_up_for_at_once(seen: Observed) -> None:
    await create(seen, ray_cluster("demo"))
    await seen.cluster_state("demo", "ready")
    lost = {pod["metadata"]["name"] for pod in await seen.pods()}
    for name in lost:
        await seen.api.patch(PODS, seen.namespace, name, {"metadata": {"ownerReferences": None}})

    async def three_others() -> bool:
        return len({pod["metadata"]["name"] for pod in await seen.pods()} - lost) == 3

    await eventually(three_others, "the cluster has pods of its own")
    await seen.until(
        RAYCLUSTERS, "demo", lambda one: one["status"]["head"].get("podName") not in lost, "its own head is shown"
    )


async def test_suspension_gives_everything_back_and_resuming_brings_it_again(
    seen: Observed, stand_ins: StandIns
) -> None:
    await create(seen, ray_cluster("demo"))
    await seen.cluster_state("demo", "ready")
    await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", {"spec": {"suspend": True}})
    status = await seen.cluster_state("demo", "suspended")
    assert await seen.pods() == []
    assert conditions(status) == {
        "HeadPodReady": "False",
        "RayClusterProvisioned": "False",
        "RayClusterSuspending": "False",
        "RayClusterSuspended": "True",
    }
    group = await seen.get(PODGROUPS, "ray-demo-pg")
    assert group is not None
    assert group["spec"]["minMember"] == 0
    assert not group["spec"].get("minResources")

    stand_ins.holds_back = lambda _: True
    await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", {"spec": {"suspend": None}})
    status = await seen.cluster_state("demo", "")
    assert conditions(status)["RayClusterSuspended"] == "False"
    stand_ins.holds_back = lambda _: False
    await seen.cluster_state("demo", "ready")
    await seen.until(PODGROUPS, "ray-demo-pg", lambda pg: pg["spec"]["minMember"] == 3, "the gang is back")


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("spec.headGroupSpec.template.spec.containers", {"headGroupSpec": {"template": {"spec": {"containers": []}}}}),
        ("minReplicas", {"workerGroupSpecs": [worker_group(minReplicas=5, maxReplicas=2)]}),
        ("cpu", {"headGroupSpec": {"template": template(cpu="-1")}}),
        ("cpu", {"headGroupSpec": {"template": template(cpu="a lot")}}),
    ],
)
async def test_a_spec_that_can_not_work_is_refused_by_its_field_and_recovers(
    seen: Observed, field: str, change: dict[str, Any]
) -> None:
    good = ray_cluster("demo")
    await create(seen, {**good, "spec": {**good["spec"], **change}})
    await seen.event("InvalidRayClusterSpec", field)
    refused = await seen.until(RAYCLUSTERS, "demo", lambda one: (one.get("status") or {}).get("reason"), "it says why")
    assert field in refused["status"]["reason"]
    assert conditions(refused["status"])["ReplicaFailure"] == "True"
    assert await seen.nothing_made()

    await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", {"spec": good["spec"]})
    status = await seen.cluster_state("demo", "ready")
    assert "ReplicaFailure" not in conditions(status)
    assert not status.get("reason")


async def test_of_a_thousand_problems_no_more_is_stored_than_can_be(seen: Observed) -> None:
    group = worker_group(idleTimeoutSeconds=-1, priority=1)
    groups = [{**group, "groupName": f"{'g' * 40}-{index}"} for index in range(1000)]
    await create(seen, ray_cluster("demo", *groups))
    refused = await seen.until(RAYCLUSTERS, "demo", lambda one: "status" in one, "it is told")
    reason = refused["status"]["reason"]
    assert reason.startswith("spec.workerGroupSpecs[0].")
    assert "spec.workerGroupSpecs[999]." in reason
    assert len(reason) == LONGEST


async def test_a_name_that_is_too_long_is_refused_with_nothing_made(seen: Observed) -> None:
    name = "n" * 54
    await create(seen, ray_cluster(name))
    assert "metadata.name" in await seen.event("InvalidRayClusterMetadata")
    assert await seen.nothing_made()


async def test_a_template_that_the_api_server_refuses_is_told_and_recovers(seen: Observed) -> None:
    bad = template()
    bad["spec"]["containers"][0]["imagePullPolicy"] = "Sometimes"
    good = ray_cluster("demo")
    await create(seen, {**good, "spec": {**good["spec"], "headGroupSpec": {"rayStartParams": {}, "template": bad}}})
    assert "imagePullPolicy" in await seen.event("InvalidRayClusterSpec")
    failing = await seen.until(
        RAYCLUSTERS, "demo", lambda one: "ReplicaFailure" in conditions(one.get("status") or {}), "it shows the failure"
    )
    assert "spec.headGroupSpec.template.spec.containers[0].imagePullPolicy" in failing["status"]["reason"]
    assert await seen.nothing_made()
    await seen.api.patch(
        RAYCLUSTERS, seen.namespace, "demo", {"spec": {"headGroupSpec": good["spec"]["headGroupSpec"]}}
    )
    status = await seen.cluster_state("demo", "ready")
    assert "ReplicaFailure" not in conditions(status)


async def test_a_pod_that_the_api_server_refuses_is_told_and_recovers(seen: Observed) -> None:
    """What a template can't show: a limit of the namespace."""
    spec = {"limits": [{"type": "Container", "max": {"cpu": "100m"}}]}
    limit = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small"}, "spec": spec}
    await seen.api.create(LIMIT_RANGES, seen.namespace, limit)
    await create(seen, ray_cluster("demo"))
    assert "cpu limit of 100m" in await seen.event("FailedToCreateHeadPod")
    failing = await seen.until(
        RAYCLUSTERS, "demo", lambda one: "ReplicaFailure" in conditions(one.get("status") or {}), "it shows the failure"
    )
    assert "cpu limit of 100m" in failing["status"]["reason"]
    assert await seen.pods() == []
    await seen.api.delete(LIMIT_RANGES, seen.namespace, "small")
    status = await seen.cluster_state("demo", "ready")
    assert "ReplicaFailure" not in conditions(status)


async def test_a_cluster_in_a_closed_queue_makes_no_pods_until_it_opens(seen: Observed) -> None:
    name = f"{seen.namespace}-closed"
    await seen.api.create(QUEUES, None, queue(name))
    await seen.api.patch(QUEUES, None, name, {"status": {"state": "Closed"}}, subresource="status")
    manifest = ray_cluster("demo")
    manifest["metadata"]["labels"] = {"volcano.sh/queue-name": name}
    await create(seen, manifest)
    assert "volcano.sh/queue-name" in await seen.event("QueueClosed", name)
    waiting = await seen.until(RAYCLUSTERS, "demo", lambda one: (one.get("status") or {}).get("reason"), "it says why")
    assert name in waiting["status"]["reason"]
    assert await seen.all(PODS) == []
    await seen.api.patch(QUEUES, None, name, {"status": {"state": "Open"}}, subresource="status")
    status = await seen.cluster_state("demo", "ready")
    assert not status.get("reason")


async def test_pods_that_another_scheduler_places_are_not_gated_and_that_is_said(seen: Observed) -> None:
    foreign = worker_group(template=template(schedulerName="default-scheduler"), replicas=1)
    await create(seen, ray_cluster("demo", foreign))
    await seen.cluster_state("demo", "ready")
    (worker,), (head,) = await seen.pods("workers"), await seen.pods("headgroup")
    assert worker["spec"]["schedulerName"] == "default-scheduler"
    assert not worker["spec"].get("schedulingGates")
    assert head["spec"]["schedulingGates"]
    group = await seen.get(PODGROUPS, "ray-demo-pg")
    assert group is not None
    assert group["spec"]["minMember"] == 1
    await seen.event("NotGangScheduled", "default-scheduler")


async def test_a_cluster_of_another_controller_is_left_alone(api: ApiClient, seen: Observed) -> None:
    await create(seen, ray_cluster("foreign", managedBy="kueue.x-k8s.io/multikueue"))
    await create(seen, ray_cluster("ours"))
    await seen.cluster_state("ours", "ready")
    foreign = await seen.get(RAYCLUSTERS, "foreign")
    assert foreign is not None
    assert not foreign.get("status")
    assert {pod["metadata"]["labels"]["ray.io/cluster"] for pod in await seen.pods()} == {"ours"}


async def test_nothing_changes_and_nothing_is_written(seen: Observed) -> None:
    await create(seen, ray_cluster("demo"))
    await seen.cluster_state("demo", "ready")

    async def versions() -> dict[str, str]:
        objects = [*await seen.all(RAYCLUSTERS), *await seen.all(PODS), *await seen.all(PODGROUPS)]
        return {one["metadata"]["uid"]: one["metadata"]["resourceVersion"] for one in objects}

    async def settled() -> dict[str, str] | None:
        before = await versions()
        await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", {"metadata": {"labels": {"touched": "yes"}}})
        return before if await versions() == before else None

    before = await eventually(settled, "the cluster has come to rest")
    # A look that finds nothing to do: a foreign annotation on a pod brings the cluster back onto the queue.
    (head,) = await seen.pods("headgroup")
    touched = await seen.api.patch(
        PODS, seen.namespace, head["metadata"]["name"], {"metadata": {"annotations": {"looked": "at"}}}
    )
    before[head["metadata"]["uid"]] = touched["metadata"]["resourceVersion"]
    await create(seen, ray_cluster("later"))
    await seen.cluster_state("later", "ready")
    now = await versions()
    assert {uid: now[uid] for uid in before} == before
