"""Why a pod that has its node does not work yet."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from muster.explain.startup import NOT_SET_UP, PodState, not_working, what_it_waits_for
from muster.kube.objects import Pod


def placed(phase: str = "Pending", *, head: bool = False, deleted: bool = False, **status: Any) -> Pod:
    metadata: dict[str, Any] = {"name": "head" if head else "p", "namespace": "ns"}
    if head:
        metadata["labels"] = {"ray.io/node-type": "head"}
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    body = {"metadata": metadata, "spec": {"nodeName": "n1"}, "status": {"phase": phase, **status}}
    return msgspec.convert(body, type=Pod)


def container(state: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    return [{"name": "ray", "state": state, **more}]


def ready(status: str, message: str | None = None) -> list[dict[str, Any]]:
    return [{"type": "Ready", "status": status, "message": message}]


PULL = {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image x"}}


@pytest.mark.parametrize(
    ("pod", "words"),
    [
        pytest.param(placed(), "the kubelet has not started it yet", id="just bound"),
        pytest.param(
            placed(containerStatuses=container({"waiting": {"reason": "ContainerCreating"}})),
            "container ray is being created (its volumes or its network may not be set up yet, or its image is being "
            "pulled)",
            id="creating, and the kubelet does not tell more",
        ),
        pytest.param(
            placed(
                containerStatuses=container({"waiting": {"reason": "ContainerCreating"}}),
                conditions=[{"type": "PodReadyToStartContainers", "status": "False"}],
            ),
            NOT_SET_UP,
            id="volumes or network",
        ),
        pytest.param(
            placed(
                initContainerStatuses=container({"waiting": {"reason": "PodInitializing"}}),
                containerStatuses=container({"waiting": {"reason": "PodInitializing"}}),
                conditions=[{"type": "PodReadyToStartContainers", "status": "False"}],
            ),
            NOT_SET_UP,
            id="volumes or network, with an init container",
        ),
        pytest.param(
            placed(
                containerStatuses=container({"waiting": {"reason": "ContainerCreating"}}),
                conditions=[{"type": "PodReadyToStartContainers", "status": "True"}],
            ),
            "container ray is being created (its volumes and its network are there: its image is being pulled)",
            id="image being pulled",
        ),
        pytest.param(
            placed(containerStatuses=container(PULL)),
            "container ray waits: ImagePullBackOff: Back-off pulling image x",
            id="image",
        ),
        pytest.param(
            placed(
                initContainerStatuses=container({"running": {}}),
                containerStatuses=container({"waiting": {"reason": "PodInitializing"}}),
            ),
            "init container ray is still at work",
            id="init container",
        ),
        pytest.param(
            placed(initContainerStatuses=container({"terminated": {"exitCode": 3, "reason": "Error"}})),
            "init container ray has ended with status 3: Error",
            id="init container failed",
        ),
        pytest.param(
            placed(
                "Running",
                containerStatuses=container(
                    {"waiting": {"reason": "CrashLoopBackOff"}},
                    restartCount=4,
                    lastState={"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
                ),
            ),
            "container ray waits: CrashLoopBackOff (it ended 4 times, last with status 137: OOMKilled)",
            id="crashes",
        ),
        pytest.param(
            placed("Running", head=True, conditions=ready("False", "containers with unready status: [ray]")),
            "the head is not ready, so the workers wait: containers with unready status: [ray]",
            id="head not ready",
        ),
        pytest.param(placed("Running", conditions=ready("False")), "its readiness probe does not succeed", id="worker"),
        pytest.param(
            placed("Failed", reason="OutOfcpu", message="Node didn't have enough resource"),
            "it has failed: OutOfcpu: Node didn't have enough resource",
            id="refused by the kubelet",
        ),
        pytest.param(placed("Running", deleted=True), "it is being deleted", id="leaving"),
        pytest.param(placed("Running", conditions=ready("True")), None, id="ready"),
        pytest.param(placed("Succeeded"), None, id="done"),
    ],
)
def test_what_a_placed_pod_waits_for(pod: Pod, words: str | None) -> None:
    assert what_it_waits_for(pod) == words


def test_the_head_comes_first_and_pods_without_a_node_are_the_schedulers_business() -> None:
    waiting = msgspec.convert({"metadata": {"name": "a", "namespace": "ns"}}, type=Pod)
    found = not_working([waiting, placed(), placed(head=True)])
    assert [each.pod for each in found] == ["ns/head", "ns/p"]


def test_a_pod_that_the_default_scheduler_has_not_bound_yet_says_what_that_says() -> None:
    name = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    required = {"nodeSelectorTerms": [{"matchFields": [name]}]}
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no device"}
    manifest = {
        "metadata": {
            "name": "p",
            "namespace": "default",
            "annotations": {"muster.dev/delegated-at": "2026-01-01T00:00:00Z"},
        },
        "spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}},
        "status": {"phase": "Pending", "conditions": [refused]},
    }
    waits_for = "default-scheduler has not bound it yet: no device"
    assert not_working([msgspec.convert(manifest, Pod)]) == [PodState("default/p", "n1", waits_for)]
    manifest["status"] = {"phase": "Pending"}
    (found,) = not_working([msgspec.convert(manifest, Pod)])
    assert found.waits_for == "default-scheduler has not bound it yet"
