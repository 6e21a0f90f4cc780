"""What the operator's own configuration makes of clusters, on a real API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from muster.kube.config import Connection
from muster.kube.resource import PODGROUPS, PODS, RAYCLUSTERS, SERVICES
from muster.ray.every_pod import EveryPod
from muster.ray.pod_options import PodOptions
from tests.integration.observed import Observed
from tests.integration.operators import Operator, eventually
from tests.integration.ray_dashboard import RayDashboards
from tests.integration.ray_manifests import ray_cluster, template, worker_group
from tests.integration.stand_ins import StandIns

pytest_plugins = ("tests.integration.controller_fixtures",)

SIDECAR = {"name": "logs", "image": "fluent", "resources": {"requests": {"cpu": "500m"}}}
SITE = PodOptions(
    login_shell=True,
    inject_probes=False,
    inject_init_container=False,
    fixed_head_name=True,
    head_cluster_ip=True,
    cluster_domain="example.org",
    every_pod=EveryPod(
        head_sidecars=(SIDECAR,),
        worker_sidecars=(SIDECAR,),
        env=({"name": "PROXY", "value": "site"},),
        annotations=(("site", "a"),),
        labels=(("site", "l"),),
    ),
)


@pytest.fixture
async def configured(
    connection: Connection, namespace: str, dashboards: RayDashboards, stand_ins: StandIns
) -> AsyncIterator[Operator]:
    async with Operator(connection, namespace, dashboards, pods=SITE, random_pod_delete=True) as operator:
        yield operator


async def create(seen: Observed, **spec: Any) -> None:
    await seen.api.create(RAYCLUSTERS, seen.namespace, ray_cluster("demo", worker_group(replicas=1), **spec))


@pytest.mark.usefixtures("configured")
async def test_pods_service_and_gang_are_as_the_site_wants_them(seen: Observed) -> None:
    await create(seen)
    await seen.cluster_state("demo", "ready")
    (head,), (worker,) = await seen.pods("headgroup"), await seen.pods("workers")
    assert head["metadata"]["name"] == "demo-head"
    for pod in (head, worker):
        ray, sidecar = pod["spec"]["containers"]
        assert sidecar["name"] == "logs"
        assert ray["command"] == ["/bin/bash", "-cl", "--"]
        assert "livenessProbe" not in ray
        assert {"name": "PROXY", "value": "site"} in ray["env"]
        assert pod["metadata"]["labels"]["site"] == "l"
        assert pod["metadata"]["annotations"]["site"] == "a"
        assert not pod["spec"].get("initContainers")
    assert f"demo-head-svc.{seen.namespace}.svc.example.org:6379" in worker["spec"]["containers"][0]["args"][0]
    service = await seen.get(SERVICES, "demo-head-svc")
    assert service is not None
    assert service["spec"]["clusterIP"] not in ("", "None")
    group = await seen.get(PODGROUPS, "ray-demo-pg")
    assert group is not None
    assert group["spec"]["minResources"]["cpu"] == "3"  # two times Ray's 1 and the sidecar's half


@pytest.mark.usefixtures("configured")
async def test_the_next_head_has_the_same_name(seen: Observed, stand_ins: StandIns) -> None:
    await create(seen)
    await seen.cluster_state("demo", "ready")
    old = await seen.get(PODS, "demo-head")
    assert old is not None
    await stand_ins.set_pod("demo-head", phase="Failed", ready=False)
    await seen.until(PODS, "demo-head", lambda pod: pod["metadata"]["uid"] != old["metadata"]["uid"], "another head")


@pytest.mark.usefixtures("configured")
async def test_a_pod_of_somebody_else_with_the_heads_name_is_told_of_and_left_alone(seen: Observed) -> None:
    foreign = {"metadata": {"name": "demo-head"}, "spec": template()["spec"]}
    before = await seen.api.create(PODS, seen.namespace, foreign)
    await create(seen)
    await seen.event("FailedToCreateHeadPod", "Pod demo-head exists already and belongs to nobody that Muster knows")
    await seen.api.delete(PODS, seen.namespace, "demo-head", grace_seconds=0)
    now = await seen.until(PODS, "demo-head", lambda pod: pod["metadata"].get("ownerReferences"), "the cluster's head")
    assert now["metadata"]["uid"] != before["metadata"]["uid"]


@pytest.mark.usefixtures("configured")
async def test_surplus_goes_also_under_the_autoscaler_where_the_site_wants_it_so(seen: Observed) -> None:
    await create(seen, enableInTreeAutoscaling=True)
    await seen.cluster_state("demo", "ready")
    (head,) = await seen.pods("headgroup")
    assert [one["name"] for one in head["spec"]["containers"]] == ["ray", "autoscaler", "logs"]
    patch = {"spec": {"workerGroupSpecs": [worker_group(replicas=0)]}}
    await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", patch)

    async def gone() -> bool:
        return await seen.pods("workers") == []

    await eventually(gone, "no worker is left")
