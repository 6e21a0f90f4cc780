"""What Muster would make of a spec is tried out before it is made, and what is refused is told by the user's field."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from muster.api.errors import FieldProblem
from muster.api.raycluster import RayCluster
from muster.controllers.clock import SystemClock
from muster.controllers.template_judge import TemplateJudge
from muster.kube.client import ApiClient
from muster.kube.resource import RAYCLUSTERS
from muster.ray.every_pod import EveryPod
from muster.ray.pod_options import PodOptions
from muster.ray.validation import validate_ray_cluster
from muster.ray.validation.made import made_of_ray_cluster
from tests.integration.fault_proxy import FaultProxy
from tests.integration.observed import Observed
from tests.integration.operators import Operator
from tests.integration.ray_dashboard import RayDashboards
from tests.integration.ray_manifests import ray_cluster, template, worker_group
from tests.integration.stand_ins import StandIns

pytest_plugins = ("tests.integration.controller_fixtures",)

SIDECAR = PodOptions(every_pod=EveryPod(head_sidecars=({"name": "logs", "image": "logs"},)))
LARGE = 262_144 - 40
Json = dict[str, Any]


@pytest.fixture
async def operator(
    proxy: FaultProxy, namespace: str, dashboards: RayDashboards, stand_ins: StandIns
) -> AsyncIterator[Operator]:
    async with Operator(proxy.connection(), namespace, dashboards) as operator:
        yield operator


def of_worker(**spec: Any) -> Json:
    return ray_cluster("demo", worker_group(template=template(**spec)))


def of_head(head: Json | None = None, **spec: Any) -> Json:
    cluster = ray_cluster("demo", worker_group())
    cluster["spec"]["headGroupSpec"] = {**cluster["spec"]["headGroupSpec"], **(head or {})}
    cluster["spec"].update(spec)
    return cluster


def service(**fields: Any) -> Json:
    return of_head({"headService": fields})


def with_annotations(annotations: Json) -> Json:
    return ray_cluster("demo", worker_group(template={**template(), "metadata": {"annotations": annotations}}))


def with_env(*env: Json) -> Json:
    made = template()
    made["spec"]["containers"][0]["env"] = list(env)
    return ray_cluster("demo", worker_group(template=made))


def redis(**credentials: Any) -> Json:
    return of_head(gcsFaultToleranceOptions={"redisAddress": "redis:6379", **credentials})


def container(name: str) -> Json:
    return {"name": name, "image": "x"}


WORKER = "spec.workerGroupSpecs[0].template"
HEAD = "spec.headGroupSpec.template"
SERVICE = "spec.headGroupSpec.headService"
REDIS = "spec.gcsFaultToleranceOptions"
REFUSED = [
    (
        of_worker(initContainers=[container("wait-gcs-ready")]),
        [f'{WORKER}.spec.initContainers[0].name: "wait-gcs-ready" is the name of an init container that Muster adds'],
    ),
    (
        ray_cluster(
            "demo", worker_group(template={"spec": {"containers": [container("r"), container("wait-gcs-ready")]}})
        ),
        [f'{WORKER}.spec.containers[1].name: "wait-gcs-ready" is the name of an init container that Muster adds'],
    ),
    (
        of_head({"template": {"spec": {"containers": [container("ray"), container("logs")]}}}),
        [f'{HEAD}.spec.containers[1].name: "logs" is the name of a container that Muster adds; choose another'],
    ),
    (
        of_head({"template": template(initContainers=[container("logs")])}),
        [f'{HEAD}.spec.initContainers[0].name: "logs" is the name of a container that Muster adds; choose another'],
    ),
    (with_annotations({"a": "x" * LARGE}), [f"{WORKER}.metadata.annotations: Too long"]),
    (with_env({"name": "A", "value": "x" * 1_000_000}), [f"{WORKER}: makes a pod of 2"]),
    (with_env({"name": "RAY_IP"}, {"name": "A", "valueFrom": {}}), [f"{WORKER}.spec.containers[0].env[1].valueFrom: "]),
    (redis(redisPassword={"valueFrom": {"bogus": {}}}), [f"{REDIS}.redisPassword.valueFrom.bogus: is not a field"]),
    (
        redis(redisUsername={"valueFrom": {"secretKeyRef": {"name": "A B", "key": "k"}}}),
        [f'{REDIS}.redisUsername.valueFrom.secretKeyRef.name: Invalid value: "A B"'],
    ),
    (
        of_head(
            enableInTreeAutoscaling=True, autoscalerOptions={"volumeMounts": [{"name": "none", "mountPath": "/x"}]}
        ),
        ['spec.autoscalerOptions.volumeMounts[0].name: Not found: "none"'],
    ),
    (
        service(spec={"ports": [{"port": 99_999_999, "targetPort": 1}]}),
        [f"{SERVICE}.spec.ports[0].port: Invalid value: 99999999"],
    ),
    (
        service(spec={"ports": [{"name": "A B", "port": 1}, {"name": "A B", "port": 2}]}),
        [
            f'{SERVICE}.spec.ports[0].name: Invalid value: "A B"',
            f'{SERVICE}.spec.ports[1].name: Invalid value: "A B"',
            f'{SERVICE}.spec.ports[1].name: Duplicate value: "A B"',
        ],
    ),
    (service(spec={"clusterIP": "not-an-ip"}), [f'{SERVICE}.spec.clusterIP: Invalid value: "not-an-ip"']),
    (service(metadata={"labels": {"a b": "c"}}), [f'{SERVICE}.metadata.labels: Invalid value: "a b"']),
    (service(metadata={"annotations": {"a b": "c"}}), [f'{SERVICE}.metadata.annotations: Invalid value: "a b"']),
    (service(spec={"prots": []}), [f"{SERVICE}.spec.prots: is not a field that the API server knows"]),
    (service(spec={"loadBalancerIP": 5}), [f"{SERVICE}.spec.loadBalancerIP: must be a string, not number"]),
    (of_head(headServiceAnnotations={"a b": "c"}), ['spec.headServiceAnnotations: Invalid value: "a b"']),
]
ONE_OF_EACH = [REFUSED[0], REFUSED[4], REFUSED[8], REFUSED[10], REFUSED[-1]]


@pytest.mark.parametrize(("written", "told"), REFUSED)
async def test_what_is_refused_of_what_is_made_is_told_by_the_users_field(
    api: ApiClient, namespace: str, written: Json, told: list[str]
) -> None:
    found = [str(problem) for problem in await judged(api, namespace, written)]
    assert len(found) == len(told), found
    for problem, begin in zip(found, told, strict=True):
        assert problem.startswith(begin)


async def judged(api: ApiClient, namespace: str, written: Json, options: PodOptions = SIDECAR) -> list[FieldProblem]:
    written = {**written, "metadata": {**written["metadata"], "namespace": namespace}}
    cluster = RayCluster.parse(written)
    assert validate_ray_cluster(cluster) == []
    return await TemplateJudge(api, SystemClock()).problems(namespace, made_of_ray_cluster(cluster, options))


FINE = [
    of_head(enableInTreeAutoscaling=True, autoscalerOptions={"version": "v2"}),
    of_head(authOptions={"mode": "token", "enableK8sTokenAuth": True}, rayVersion="2.55.0"),
    redis(redisPassword={"valueFrom": {"secretKeyRef": {"name": "redis", "key": "password"}}}),
    service(metadata={"name": "mine"}, spec={"type": "LoadBalancer", "ports": [{"port": 80}, {"port": 81}]}),
    of_head({"serviceType": "NodePort"}, headServiceAnnotations={"a": "b"}),
    ray_cluster("demo", worker_group(numOfHosts=2), worker_group("other", template=template(nodeName="node-1"))),
    of_worker(initContainers=[container("mine")], restartPolicy="Never"),
    of_worker(schedulerName="default-scheduler"),
]


@pytest.mark.parametrize("written", FINE)
async def test_what_can_be_made_passes(api: ApiClient, namespace: str, written: Json) -> None:
    assert await judged(api, namespace, written) == []


async def test_without_the_init_container_its_name_is_free(api: ApiClient, namespace: str) -> None:
    options = replace(PodOptions(), inject_init_container=False)
    assert await judged(api, namespace, REFUSED[0][0], options) == []


@pytest.mark.parametrize(("written", "told"), ONE_OF_EACH)
async def test_nothing_is_made_of_what_can_not_be_made_whole(
    seen: Observed, operator: Operator, written: Json, told: list[str]
) -> None:
    await seen.api.create(RAYCLUSTERS, seen.namespace, written)
    assert told[0] in await seen.event("InvalidRayClusterSpec")
    assert await seen.nothing_made()
    assert not (await seen.api.get(RAYCLUSTERS, seen.namespace, "demo"))["metadata"].get("finalizers")


async def test_what_only_the_creation_of_the_service_can_tell_is_told_by_the_users_field_too(
    seen: Observed, operator: Operator
) -> None:
    written = service(spec={"type": "NodePort", "ports": [{"port": 1, "nodePort": 1}]})
    written["spec"]["gcsFaultToleranceOptions"] = {"redisAddress": "redis:6379"}
    await seen.api.create(RAYCLUSTERS, seen.namespace, written)
    assert f"{SERVICE}.spec.ports[0].nodePort: Invalid value: 1: " in await seen.event("FailedToReconcile")
    held = (await seen.api.get(RAYCLUSTERS, seen.namespace, "demo"))["metadata"].get("finalizers")
    assert held is None, "there is no pod yet whose state would have to be cleared out"
    written["spec"]["headGroupSpec"]["headService"]["spec"]["ports"][0]["nodePort"] = None
    await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", {"spec": written["spec"]})
    await seen.cluster_state("demo", "ready")


async def test_clusters_of_one_make_are_one_question(seen: Observed, operator: Operator, proxy: FaultProxy) -> None:
    for name in ("one", "two", "three"):
        written = ray_cluster(name, worker_group("a"), worker_group("b"))
        redis = {"redisAddress": "redis:6379", "redisPassword": {"value": "x"}}
        written["spec"] |= {"gcsFaultToleranceOptions": redis, "headServiceAnnotations": {"a": "b"}}
        await seen.api.create(RAYCLUSTERS, seen.namespace, written)
        await seen.cluster_state(name, "ready")
    tried_out = [request for request in proxy.requests if "dryRun" in request.query]
    assert [request.path.rsplit("/")[-1] for request in tried_out] == ["podtemplates", "podtemplates", "services"]
