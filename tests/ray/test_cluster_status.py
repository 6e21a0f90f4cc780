from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from muster.api.raycluster import RayCluster
from muster.kube import objects
from muster.ray.cluster_status import ReplicaFailure, Suspension, cluster_status, suspension
from tests.ray.ray_objects import ended_container, head, pod, ray_cluster, waiting_container, worker_group

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
STAMP = "2026-01-02T03:04:05Z"
LATER = NOW + timedelta(minutes=5)

Status = dict[str, Any]


def service(cluster_ip: str = "None", **port: Any) -> objects.Service:
    ports = [objects.ServicePort(**{"name": "dashboard", "port": 8265, "target_port": 8265, **port})]
    return objects.Service(
        metadata=objects.ObjectMeta(name="demo-head-svc"),
        spec=objects.ServiceSpec(cluster_ip=cluster_ip, ports=ports),
    )


def status_of(
    cluster: RayCluster,
    *pods: objects.Pod,
    now: datetime = NOW,
    failure: ReplicaFailure | None = None,
    head_service: objects.Service | None = None,
) -> Status:
    return cluster_status(cluster, pods, head_service, now=now, failure=failure)


def stored(status: Status, **spec: Any) -> RayCluster:
    """The cluster again, with this status in store."""
    return ray_cluster(status=status, workers=[worker_group()], **spec)


def conditions(status: Status) -> dict[str, tuple[str, str]]:
    return {entry["type"]: (entry["status"], entry["reason"]) for entry in status["conditions"]}


def two_pods() -> tuple[objects.Pod, objects.Pod]:
    return head(), pod(name="w1")


NEVER_SUSPENDED = {
    "RayClusterSuspending": ("False", "RayClusterSuspending"),
    "RayClusterSuspended": ("False", "RayClusterSuspended"),
}
"""As under KubeRay, the conditions are there from the start: `kubectl wait` finds something to wait on."""


def one_worker() -> RayCluster:
    return ray_cluster(workers=[worker_group()])


def test_a_new_cluster_has_nothing_but_wishes() -> None:
    status = status_of(one_worker())
    assert status["desiredWorkerReplicas"] == 1
    assert (status["readyWorkerReplicas"], status["availableWorkerReplicas"]) == (0, 0)
    assert status["observedGeneration"] == 3
    assert status["lastUpdateTime"] == STAMP
    assert status["head"] == {}
    assert "state" not in status
    assert conditions(status) == {
        "HeadPodReady": ("False", "HeadPodNotFound"),
        "RayClusterProvisioned": ("False", "RayClusterPodsProvisioning"),
        **NEVER_SUSPENDED,
    }


def test_a_cluster_is_ready_when_all_its_pods_are() -> None:
    status = status_of(one_worker(), *two_pods(), head_service=service())
    assert status["state"] == "ready"
    assert status["stateTransitionTimes"] == {"ready": STAMP}
    assert status["head"] == {
        "podName": "head-1",
        "podIP": "10.0.0.1",
        "serviceName": "demo-head-svc",
        "serviceIP": "10.0.0.1",
    }
    assert status["endpoints"] == {"dashboard": "8265"}
    assert conditions(status) == {
        "HeadPodReady": ("True", "HeadPodRunningAndReady"),
        "RayClusterProvisioned": ("True", "AllPodRunningAndReadyFirstTime"),
        **NEVER_SUSPENDED,
    }


@pytest.mark.parametrize(
    "pods",
    [
        [head()],
        [pod(name="w1")],
        [head(ready="False"), pod(name="w1")],
        [head(), pod(name="w1", phase="Pending")],
        [head(), pod(name="w1", ready="False")],
        [head(), pod(name="w1", ready=None)],
        [head(), pod(name="w1"), pod(name="w2")],
        [head(), pod(name="w1", terminating=True)],
        [head(terminating=True), pod(name="w1")],
        [head(), head(name="head-2"), pod(name="w1")],
    ],
)
def test_a_cluster_is_not_ready_while_a_pod_is_missing_unready_or_too_many(pods: Sequence[objects.Pod]) -> None:
    status = status_of(one_worker(), *pods)
    assert "state" not in status
    assert conditions(status)["RayClusterProvisioned"] == ("False", "RayClusterPodsProvisioning")


def test_a_pod_on_its_way_out_does_not_keep_the_others_from_being_ready() -> None:
    assert status_of(one_worker(), *two_pods(), pod(name="old", terminating=True))["state"] == "ready"


def test_a_failure_in_this_pass_keeps_the_cluster_from_being_ready() -> None:
    failure = ReplicaFailure("FailedCreateWorkerPod", "quota exceeded")
    status = status_of(one_worker(), *two_pods(), failure=failure)
    assert "state" not in status
    assert status["reason"] == "quota exceeded"
    assert conditions(status)["ReplicaFailure"] == ("True", "FailedCreateWorkerPod")


def test_a_failure_that_is_over_leaves_no_trace() -> None:
    before = status_of(one_worker(), failure=ReplicaFailure("FailedCreateHeadPod", "no"))
    after = status_of(stored(before), *two_pods())
    assert "ReplicaFailure" not in conditions(after)
    assert "reason" not in after


@pytest.mark.parametrize(
    "pods",
    [
        [head()],
        [head(ready="False"), pod(name="w1")],
        [head(), pod(name="w1", phase="Pending", ready=None)],
        [head(), pod(name="w1"), pod(name="w2", phase="Pending", ready=None)],
        [],
    ],
)
def test_ready_is_lost_with_a_pod_and_comes_again_with_it(pods: Sequence[objects.Pod]) -> None:
    ready = status_of(one_worker(), *two_pods())
    lost = status_of(stored(ready), *pods, now=LATER)
    assert lost["state"] == ""
    assert lost["stateTransitionTimes"] == {"ready": STAMP}
    assert conditions(lost)["RayClusterProvisioned"][0] == "True"
    assert status_of(stored(lost), *pods, now=LATER + timedelta(hours=1)) == lost
    again = status_of(stored(lost), *two_pods(), now=LATER)
    assert again["state"] == "ready"
    assert again["stateTransitionTimes"] == {"ready": "2026-01-02T03:09:05Z"}


def test_a_failure_that_costs_no_pod_leaves_ready_as_it_is() -> None:
    ready = status_of(one_worker(), *two_pods())
    failure = ReplicaFailure("FailedDeleteWorkerPod", "no")
    assert status_of(stored(ready), *two_pods(), failure=failure)["state"] == "ready"


@pytest.mark.parametrize(
    ("workers", "state"),
    [
        ([], ""),
        (["True"], ""),
        (["True", "False"], ""),
        (["True", "True"], "ready"),
        (["True", "True", "False"], "ready"),
        (["True", "True", "True", "True"], "ready"),
    ],
)
def test_with_the_autoscaler_head_and_least_workers_are_ready_enough(workers: list[str], state: str) -> None:
    group = worker_group(replicas=3, minReplicas=1, numOfHosts=2)
    cluster = ray_cluster(workers=[group], enableInTreeAutoscaling=True)
    pods = [
        msgspec.structs.replace(one, metadata=msgspec.structs.replace(one.metadata, labels=of_group(one)))
        for one in (pod(name=f"w{number}", ready=ready) for number, ready in enumerate(workers))
    ]
    assert status_of(cluster, head(), *pods).get("state", "") == state
    assert status_of(cluster, head(ready="False"), *pods).get("state", "") == ""
    assert status_of(cluster, *pods).get("state", "") == ""


def test_with_the_autoscaler_a_worker_beyond_the_least_that_can_not_be_made_keeps_nothing_from_being_ready() -> None:
    failure = ReplicaFailure("FailedCreateWorkerPod", "exceeded quota")
    cluster = ray_cluster(workers=[worker_group(replicas=3, minReplicas=0)], enableInTreeAutoscaling=True)
    status = status_of(cluster, head(), failure=failure)
    assert status["state"] == "ready"
    assert status["reason"] == "exceeded quota"


def of_group(worker: objects.Pod) -> dict[str, str]:
    return {**worker.metadata.labels, "ray.io/group": "small"}


def test_the_head_that_fails_shows_and_so_do_the_counts() -> None:
    before = status_of(one_worker(), *two_pods())
    after = status_of(stored(before), head(ready="False"), pod(name="w1", phase="Failed", ready="False"), now=LATER)
    assert after["availableWorkerReplicas"] == 0
    assert conditions(after)["RayClusterProvisioned"][0] == "True"
    assert conditions(after)["HeadPodReady"][0] == "False"
    assert after["stateTransitionTimes"] == {"ready": STAMP}


def test_nothing_changes_in_the_status_when_nothing_has_changed() -> None:
    before = status_of(one_worker(), *two_pods(), head_service=service())
    assert status_of(stored(before), *two_pods(), head_service=service(), now=LATER) == before


def test_any_change_is_dated() -> None:
    before = status_of(one_worker(), *two_pods())
    after = status_of(stored(before), head(), pod(name="w1", ready="False"), now=LATER)
    assert after["lastUpdateTime"] == "2026-01-02T03:09:05Z"


def test_a_condition_keeps_its_date_until_its_status_changes() -> None:
    before = status_of(one_worker(), head(ready="False", ready_reason="ContainersNotReady"))
    other_reason = head(ready="False", ready_reason="PodFailed")
    after = {entry["type"]: entry for entry in status_of(stored(before), other_reason, now=LATER)["conditions"]}
    assert after["HeadPodReady"]["reason"] == "PodFailed"
    assert after["HeadPodReady"]["lastTransitionTime"] == STAMP
    ready = {entry["type"]: entry for entry in status_of(stored(before), head(), now=LATER)["conditions"]}
    assert ready["HeadPodReady"]["lastTransitionTime"] == "2026-01-02T03:09:05Z"


def test_fields_and_conditions_of_others_are_kept() -> None:
    other = {"type": "Theirs", "status": "True", "reason": "R", "message": "", "lastTransitionTime": STAMP}
    status = status_of(stored({"conditions": [other], "theirs": 1}))
    assert status["theirs"] == 1
    assert other in status["conditions"]


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ([worker_group(replicas=5, minReplicas=1, maxReplicas=3)], (3, 1, 3)),
        ([worker_group(replicas=0, minReplicas=2)], (2, 2, 9)),
        ([worker_group(replicas=2, numOfHosts=4)], (8, 0, 36)),
        ([worker_group("a", replicas=2), worker_group("b", replicas=3, suspend=True)], (2, 0, 9)),
        ([worker_group("a", maxReplicas=2**31 - 1), worker_group("b")], (2, 0, 2**31 - 1)),
        ([{"groupName": "bare", "template": worker_group()["template"]}], (0, 0, 2**31 - 1)),
        ([], (0, 0, 0)),
    ],
)
def test_the_counts_of_replicas(groups: list[dict[str, Any]], expected: tuple[int, int, int]) -> None:
    status = status_of(ray_cluster(workers=groups))
    names = ("desiredWorkerReplicas", "minWorkerReplicas", "maxWorkerReplicas")
    assert tuple(status[name] for name in names) == expected


def test_available_workers_run_and_ready_ones_are_ready() -> None:
    pods = [pod(name="a"), pod(name="b", ready="False"), pod(name="c", phase="Pending", ready="False"), head()]
    status = status_of(one_worker(), *pods)
    assert (status["availableWorkerReplicas"], status["readyWorkerReplicas"]) == (2, 1)


@pytest.mark.parametrize(
    ("port", "endpoint"),
    [
        ({"node_port": 30001}, "30001"),
        ({"target_port": "http"}, "http"),
        ({"target_port": None}, "8265"),
    ],
)
def test_where_a_port_of_the_head_is_found(port: dict[str, Any], endpoint: str) -> None:
    assert status_of(one_worker(), head_service=service(**port))["endpoints"] == {"dashboard": endpoint}


def test_a_service_with_an_address_is_shown_with_it() -> None:
    assert status_of(one_worker(), head(), head_service=service("10.1.1.1"))["head"]["serviceIP"] == "10.1.1.1"


@pytest.mark.parametrize(
    ("head_pod", "expected"),
    [
        (head(ready=None), ("False", "Unknown", "")),
        (head(ready_reason="Fine", ready_message="m"), ("True", "Fine", "m")),
        (head(ready="False", ready_reason="PodFailed", ready_message="m"), ("False", "PodFailed", "m")),
        (
            head(ready="False", ready_reason="ContainersNotReady", ready_message="not yet"),
            ("False", "ContainersNotReady", "not yet"),
        ),
        (
            head(
                ready="False",
                ready_reason="ContainersNotReady",
                ready_message="not yet",
                containers=[waiting_container("ImagePullBackOff", "no such image")],
            ),
            ("False", "ImagePullBackOff", "not yet; ray: no such image"),
        ),
        (
            head(
                ready="False",
                ready_reason="ContainersNotReady",
                ready_message="not yet",
                containers=[waiting_container("ContainerCreating")],
            ),
            ("False", "ContainerCreating", "not yet"),
        ),
        (
            head(
                ready="False",
                ready_reason="ContainersNotReady",
                ready_message="not yet",
                containers=[waiting_container("ContainerCreating")],
                set_up="False",
            ),
            (
                "False",
                "ContainerCreating",
                "not yet; volumes (of ConfigMaps, Secrets, claims) or network are not set up yet",
            ),
        ),
        (
            head(ready="False", ready_reason="ContainersNotReady", containers=[ended_container(reason="OOMKilled")]),
            ("False", "OOMKilled", ""),
        ),
        (head(phase="Pending", ready="False"), ("False", "Unknown", "")),
    ],
)
def test_the_heads_condition_says_why_it_is_not_ready(head_pod: objects.Pod, expected: tuple[str, str, str]) -> None:
    entries = {entry["type"]: entry for entry in status_of(one_worker(), head_pod)["conditions"]}
    ready = entries["HeadPodReady"]
    assert (ready["status"], ready["reason"], ready["message"]) == expected


def test_suspension_deletes_then_rests_then_resumes() -> None:
    running = status_of(one_worker(), *two_pods())
    suspended = {"suspend": True}

    asked = stored(running, **suspended)
    assert suspension(asked, two_pods()) is Suspension.SUSPENDING
    going = status_of(asked, *two_pods())
    assert conditions(going)["RayClusterSuspending"] == ("True", "RayClusterSuspending")
    assert conditions(going)["RayClusterSuspended"] == ("False", "RayClusterSuspended")
    assert going["state"] == "ready"

    gone = status_of(stored(going, **suspended), now=LATER)
    assert conditions(gone)["RayClusterSuspending"][0] == "False"
    assert conditions(gone)["RayClusterSuspended"][0] == "True"
    assert conditions(gone)["RayClusterProvisioned"][0] == "False"
    assert gone["state"] == "suspended"
    assert gone["stateTransitionTimes"] == {"ready": STAMP, "suspended": "2026-01-02T03:09:05Z"}
    assert status_of(stored(gone, **suspended), now=LATER + timedelta(hours=1)) == gone

    resumed = status_of(stored(gone), head(ready="False"))
    assert conditions(resumed)["RayClusterSuspended"][0] == "False"
    assert resumed["state"] == ""
    assert status_of(stored(gone))["state"] == ""
    assert status_of(stored(resumed), *two_pods())["state"] == "ready"


def test_a_suspension_once_begun_goes_on_though_the_spec_has_changed_its_mind() -> None:
    going = status_of(stored({}, suspend=True), *two_pods())
    changed = stored(going, suspend=False)
    assert suspension(changed, two_pods()) is Suspension.SUSPENDING
    gone = status_of(changed)
    assert gone["state"] == "suspended"
    assert suspension(stored(gone, suspend=False), []) is Suspension.NONE


@pytest.mark.parametrize("spec", [{"suspend": False}, {"suspend": None}, {}])
def test_a_cluster_that_is_not_asked_to_be_suspended_runs(spec: dict[str, Any]) -> None:
    suspended = status_of(stored({}, suspend=True))
    assert suspension(stored(suspended, suspend=True), []) is Suspension.SUSPENDED
    assert suspension(stored(suspended, **spec), []) is Suspension.NONE
    assert suspension(ray_cluster(**spec), []) is Suspension.NONE


def test_a_pod_that_shows_up_in_a_suspended_cluster_has_to_go() -> None:
    suspended = stored(status_of(stored({}, suspend=True)), suspend=True)
    assert suspension(suspended, [pod()]) is Suspension.SUSPENDING
