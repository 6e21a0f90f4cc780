"""The API server's own judgement on what is built here: every manifest, field by field."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from muster.api.raycluster import RayCluster
from muster.ray.cluster_status import cluster_status
from muster.ray.gang_membership import GangMembership
from muster.ray.pods import WorkerPlace, head_pod, worker_pod
from muster.ray.services import head_service, headless_worker_service, ray_job_head_service
from muster.ray.submitter import submitter_job
from tests.cluster.api_access import ApiAccess
from tests.cluster.control_plane import ControlPlane
from tests.ray.ray_objects import head, limits, pod, ray_cluster, ray_job, template, worker_group

GANG = GangMembership("ray-demo-pg", queue="ray-batch", priority_class="high")
NOW = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture
def api(control_plane: ControlPlane) -> ApiAccess:
    return control_plane.api


def judge(api: ApiAccess, manifest: dict[str, Any]) -> dict[str, Any]:
    """Have the server judge the manifest without keeping it; what it would keep. Raises RuntimeError."""
    group = "/api/v1" if manifest["apiVersion"] == "v1" else f"/apis/{manifest['apiVersion']}"
    path = f"{group}/namespaces/default/{manifest['kind'].lower()}s"
    return api.create(f"{path}?dryRun=All&fieldValidation=Strict", manifest)


RICH = template(
    metadata={"labels": {"team": "red"}, "annotations": {"a": "b"}},
    spec={"initContainers": [{"name": "mine", "image": "x"}], "tolerations": [{"operator": "Exists"}]},
    command=["echo"],
    args=["hello"],
    env=[{"name": "A", "value": "1"}],
    ports=[{"name": "client", "containerPort": 10001}],
    resources=limits(cpu=1, memory="2Gi", **{"nvidia.com/gpu": 1}),
)


@pytest.mark.parametrize("version", ["2.60.0", "2.9.0"])
@pytest.mark.parametrize("of", [template(), RICH], ids=["bare", "rich"])
def test_pods_are_accepted_with_their_gate(api: ApiAccess, of: dict[str, Any], version: str) -> None:
    cluster = ray_cluster(head={"template": of}, workers=[worker_group(template=of)], rayVersion=version)
    place = WorkerPlace(replica=2, replica_name="small-abcde", host=1)
    group = cluster.spec.worker_groups[0]
    for made in (
        head_pod(cluster, "demo-head-abcde", GANG),
        worker_pod(cluster, group, "demo-worker-abcde", GANG, place=place),
    ):
        kept = judge(api, made)
        assert kept["spec"]["schedulingGates"] == [{"name": "muster.dev/gang"}]
        assert kept["metadata"]["labels"].items() >= made["metadata"]["labels"].items()


def test_a_pod_that_names_its_node_is_accepted_because_it_is_not_gated(api: ApiAccess) -> None:
    cluster = ray_cluster(head={"template": template(spec={"nodeName": "node-1"})})
    assert judge(api, head_pod(cluster, "demo-head-abcde", GANG))["spec"]["nodeName"] == "node-1"


@pytest.mark.parametrize(
    "head_group",
    [
        {},
        {"serviceType": "NodePort"},
        {"serviceType": "LoadBalancer"},
        {"headService": {"metadata": {"name": "mine"}, "spec": {"ports": [{"port": 80, "name": "web"}]}}},
        {"headService": {"spec": {"type": "NodePort", "ports": [{"port": 8265}]}}},
        {"template": template(ports=[{"name": "prom", "containerPort": 8080}, {"containerPort": 8265}])},
        {"template": template(ports=[{"name": "a", "containerPort": 5}, {"name": "dashboard", "containerPort": 5}])},
        {"headService": {"spec": {"clusterIP": "None", "ports": [{"port": 6379, "name": "x", "protocol": "TCP"}]}}},
    ],
)
def test_services_are_accepted(api: ApiAccess, head_group: dict[str, Any]) -> None:
    cluster = ray_cluster(head=head_group, workers=[worker_group(numOfHosts=2)])
    judge(api, head_service(cluster))
    judge(api, head_service(cluster, with_cluster_ip=True))
    judge(api, ray_job_head_service(ray_job(), cluster))
    headless = headless_worker_service(cluster)
    assert headless is not None
    judge(api, headless)


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"submitterConfig": {"backoffLimit": 0}},
        {"submitterPodTemplate": template(spec={"nodeSelector": {"a": "b"}, "restartPolicy": "OnFailure"})},
        {"submitterPodTemplate": template(command=["sh", "-c", "x"], resources=limits(cpu=1))},
        {"submitterPodTemplate": template(resources={"requests": {"memory": "1Gi"}})},
        {"submitterPodTemplate": {"metadata": None, "spec": {"containers": None, "restartPolicy": None}}},
        {"submitterPodTemplate": template(spec={"restartPolicy": "", "automountServiceAccountToken": None})},
    ],
)
def test_the_submitters_job_is_accepted(api: ApiAccess, spec: dict[str, Any]) -> None:
    job = submitter_job(
        ray_job(entrypoint="python x.py", **spec),
        image="muster:1",
        dashboard_address="demo-head-svc.default.svc.cluster.local:8265",
        submission_id="job-abcde",
        gang=GANG,
        image_pull_policy="IfNotPresent",
    )
    assert judge(api, job)["spec"]["template"]["spec"]["schedulingGates"] == [{"name": "muster.dev/gang"}]


def test_a_status_comes_back_as_it_was_written_so_nothing_is_written_twice(api: ApiAccess) -> None:
    path = "/apis/ray.io/v1/namespaces/default/rayclusters"
    spec = ray_cluster(workers=[worker_group()]).dump()["spec"]
    made = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "status"}, "spec": spec}
    cluster = RayCluster.parse(api.create(path, made))
    pods = [head(ready="False", ready_reason="ContainersNotReady"), pod()]
    status = cluster_status(cluster, pods, None, now=NOW)
    api.merge(f"{path}/status/status?fieldValidation=Strict", {"status": status})
    stored = RayCluster.parse(api.get(f"{path}/status"))
    assert cluster_status(stored, pods, None, now=NOW + timedelta(hours=1)) == status
    api.delete(f"{path}/status")
