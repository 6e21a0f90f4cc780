"""The names and units are Volcano's: an extender that was written for it finds what it looks for."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from muster.scheduler.constraints import Taint
from muster.scheduler.plugins.extender.documents import (
    cluster_document,
    job_document,
    node_document,
    queue_document,
    status_bit,
    task_document,
)
from muster.scheduler.specs import DisruptionBudget, NodeUsage, PodGroupSpec, Portion, TaskStatus
from muster.testing import GIB, Cluster, gang, node, pod, pod_group, queue, resources


def cluster_of() -> Cluster:
    return Cluster.of(
        node("n", cpu=4, memory=8, pods=10, gpu=2, labels={"zone": "a"}, taints=[Taint("k", "v")]),
        queue("research", weight=3, capability=resources(cpu=8), deserved=resources(cpu=4)),
        gang("g", 2, cpu=1.5, memory=1, gpu=1, queue="research", labels={"app": "x"}),
        pod("there", "g", cpu=1, node="n"),
    )


def only(document: Any, *names: str) -> dict[str, Any]:
    return {name: document[name] for name in names}


@pytest.mark.parametrize(
    ("status", "bit"),
    [
        (TaskStatus.PENDING, 1),
        (TaskStatus.ALLOCATED, 2),
        (TaskStatus.PIPELINED, 4),
        (TaskStatus.BINDING, 8),
        (TaskStatus.BOUND, 16),
        (TaskStatus.RUNNING, 32),
        (TaskStatus.RELEASING, 64),
        (TaskStatus.SUCCEEDED, 128),
        (TaskStatus.FAILED, 256),
        (TaskStatus.UNKNOWN, 512),
    ],
)
def test_statuses_are_volcanos_bits(status: TaskStatus, bit: int) -> None:
    assert status_bit(status) == bit


def test_a_task() -> None:
    document = task_document(cluster_of().cache.tasks["uid-g-w-0"])
    pod_document = document.pop("Pod")
    scalars = {"nvidia.com/gpu": 1000, "pods": 1}
    request = {"MilliCPU": 1500, "Memory": GIB, "ScalarResources": scalars, "MaxTaskNum": 1}
    assert document == {
        "UID": "uid-g-w-0",
        "Job": "default/g",
        "Name": "g-w-0",
        "Namespace": "default",
        "TaskRole": "",
        "Resreq": request,
        "InitResreq": request,
        "NodeName": "",
        "Status": 1,
        "Priority": 1,
        "Preemptable": True,
        "BestEffort": False,
        "SchGated": False,
        "RevocableZone": "",
    }
    assert only(pod_document["metadata"], "name", "namespace", "uid", "labels") == {
        "name": "g-w-0",
        "namespace": "default",
        "uid": "uid-g-w-0",
        "labels": {"app": "x"},
    }
    assert pod_document["metadata"]["creationTimestamp"].startswith("1970-01-12T13:")
    assert pod_document["status"] == {"phase": "Pending"}


def test_a_task_that_has_just_lost_its_node_still_names_it() -> None:
    assert task_document(cluster_of().cache.tasks["uid-g-w-0"], "n")["NodeName"] == "n"


def test_a_node() -> None:
    cluster = cluster_of()
    cluster.cache.set_node_usage("n", NodeUsage(12.5, 50, 0))
    document = node_document(cluster.cache.nodes["n"])
    assert only(document, "Name", "State") == {"Name": "n", "State": {"Phase": 1, "Reason": ""}}
    assert document["Allocatable"] == {
        "MilliCPU": 4000,
        "Memory": 8 * GIB,
        "ScalarResources": {"nvidia.com/gpu": 2000, "pods": 10},
        "MaxTaskNum": 10,
    }
    assert [document[name]["MilliCPU"] for name in ("Idle", "Used", "Releasing", "Pipelined")] == [3000, 1000, 0, 0]
    assert document["ResourceUsage"] == {"CPUUsageAvg": {"10m": 12.5}, "MEMUsageAvg": {"10m": 50}}
    assert {key: task["Status"] for key, task in document["Tasks"].items()} == {"default/there": 32}
    assert document["Node"] == {
        "metadata": {"name": "n", "labels": {"zone": "a"}},
        "spec": {"unschedulable": False, "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]},
        "status": {
            "allocatable": {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "2", "pods": "10"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def test_a_job() -> None:
    cluster = cluster_of()
    job = cluster.cache.jobs["default/g"]
    assert isinstance(job.spec, PodGroupSpec)
    changed = replace(
        job.spec,
        min_task_member={"head": 1},
        sla_waiting_time=1.5,
        preemptable=True,
        budget=DisruptionBudget(min_available=Portion(50, percent=True)),
    )
    cluster.add(changed)
    document = job_document(cluster.cache.jobs["default/g"])
    assert only(document, "UID", "PgUID", "Name", "Namespace", "Queue", "Priority", "MinAvailable", "WaitingTime") == {
        "UID": "default/g",
        "PgUID": "uid-g",
        "Name": "g",
        "Namespace": "default",
        "Queue": "research",
        "Priority": 0,
        "MinAvailable": 2,
        "WaitingTime": 1_500_000_000,
    }
    assert {status: sorted(tasks) for status, tasks in document["TaskStatusIndex"].items()} == {
        "1": ["uid-g-w-0", "uid-g-w-1"],
        "32": ["uid-there"],
    }
    assert sorted(document["Tasks"]) == ["uid-g-w-0", "uid-g-w-1", "uid-there"]
    assert only(document, "TaskMinAvailable", "TaskMinAvailableTotal", "Preemptable", "Budget") == {
        "TaskMinAvailable": {"head": 1},
        "TaskMinAvailableTotal": 1,
        "Preemptable": True,
        "Budget": {"MinAvailable": "50%", "MaxUnavailable": ""},
    }
    assert (document["Allocated"]["MilliCPU"], document["TotalRequest"]["MilliCPU"]) == (1000, 4000)
    assert document["PodGroup"]["name"] == "g"
    assert document["PodGroup"]["Spec"]["MinResources"] == {"cpu": "3", "memory": "2Gi", "nvidia.com/gpu": "2"}
    assert document["PodGroup"]["Status"] == {"Phase": "Pending"}


def test_a_job_of_pods_without_their_pod_group() -> None:
    document = job_document(Cluster.of(pod("p", "missing")).cache.jobs["default/missing"])
    assert only(document, "PodGroup", "PgUID", "MinAvailable", "Budget") == {
        "PodGroup": None,
        "PgUID": "",
        "MinAvailable": 0,
        "Budget": None,
    }


def test_a_queue() -> None:
    cluster = cluster_of()
    document = queue_document(cluster.cache.queues["research"])
    assert only(document, "UID", "Name", "Weight", "Capability", "Deserved", "ReclaimableFlag", "State") == {
        "UID": "research",
        "Name": "research",
        "Weight": 3,
        "Capability": {"cpu": "8"},
        "Deserved": {"cpu": "4"},
        "ReclaimableFlag": True,
        "State": "Open",
    }
    assert document["Allocated"] == {"cpu": "1", "pods": "1"}
    assert document["Queue"]["Spec"]["Weight"] == 3
    assert document["Queue"]["Status"]["State"] == "Open"
    cluster.add(pod_group("h", queue="missing"))
    assert queue_document(cluster.cache.queues["missing"])["Name"] == "missing"


def test_the_cluster_when_a_cycle_begins() -> None:
    cluster = cluster_of()
    cluster.add(node("night", labels={"volcano.sh/revocable-zone": "rz"}), pod("lost", node="gone", ours=False))
    document = cluster_document(cluster.cache)
    assert sorted(document) == ["Jobs", "NamespaceInfo", "NodeList", "Nodes", "Queues", "RevocableNodes"]
    assert sorted(document["Jobs"]) == ["default/g"]
    assert sorted(document["Nodes"]) == ["n", "night"]
    assert sorted(document["Queues"]) == ["default", "research", "root"]
    assert sorted(document["RevocableNodes"]) == ["night"]
    json.dumps(document, allow_nan=False)
