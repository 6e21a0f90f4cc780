"""The PodGroup of a Ray cluster or a RayJob, and its Queue."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from muster.api.podgroup import PodGroup
from muster.api.queue import Queue
from muster.api.raycluster import RayCluster
from muster.api.rayjob import RayJob
from muster.ray import gang
from muster.ray.pod_options import PodOptions
from muster.ray.pods import head_pod, worker_pod
from muster.ray.scheduling_request import scheduling_request

Json = dict[str, Any]

SUBMITTER: Json = {
    "restartPolicy": "Never",
    "nodeSelector": {"zone": "a"},
    "tolerations": [{"operator": "Exists"}],
    "affinity": {},
    "containers": [
        {
            "name": "ray-job-submitter",
            "image": "muster",
            "env": [{"name": "SECRET", "value": "s3cret"}],
            "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"cpu": "500m"}},
        }
    ],
}


GPU_ONLY: Json = {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": 1}}}]}}


def template(cpu: object = "1", memory: object = "1Gi", **spec: Any) -> Json:
    resources = {"requests": {"cpu": cpu, "memory": memory}}
    return {"spec": {"containers": [{"name": "ray", "resources": resources}], **spec}}


def workers(name: str = "small", replicas: int | None = 2, **fields: Any) -> Json:
    return {"groupName": name, "replicas": replicas, "template": template(), **fields}


def cluster_spec(*groups: Json, **fields: Any) -> Json:
    return {"headGroupSpec": {"template": template()}, "workerGroupSpecs": list(groups), **fields}


def cluster(spec: Json, **metadata: Any) -> RayCluster:
    return RayCluster.parse({"metadata": {"name": "demo", "namespace": "ns", "uid": "u1", **metadata}, "spec": spec})


def job(spec: Json, **metadata: Any) -> RayJob:
    return RayJob.parse({"metadata": {"name": "demo-job", "namespace": "ns", "uid": "u2", **metadata}, "spec": spec})


def of_cluster(spec: Json, **metadata: Any) -> Json:
    manifest = gang.ray_cluster_pod_group(cluster(spec, **metadata))
    assert manifest is not None
    return manifest


@pytest.mark.parametrize(
    ("spec", "members"),
    [
        (cluster_spec(), {"headgroup": 1}),
        (cluster_spec(workers()), {"headgroup": 1, "small": 2}),
        (cluster_spec(workers(), workers("big", 3)), {"headgroup": 1, "small": 2, "big": 3}),
        (cluster_spec(workers(replicas=9, maxReplicas=4)), {"headgroup": 1, "small": 4}),
        (cluster_spec(workers(replicas=0, minReplicas=3)), {"headgroup": 1, "small": 3}),
        (cluster_spec(workers(replicas=0)), {"headgroup": 1}),
        (cluster_spec(workers(replicas=None)), {"headgroup": 1}),
        (cluster_spec(workers(numOfHosts=4)), {"headgroup": 1, "small": 8}),
        (cluster_spec(workers(suspend=True), workers("big", 3)), {"headgroup": 1, "big": 3}),
        (cluster_spec(workers(replicas=5, minReplicas=1), enableInTreeAutoscaling=True), {"headgroup": 1, "small": 1}),
        (cluster_spec(workers(replicas=5), enableInTreeAutoscaling=True), {"headgroup": 1}),
        (
            cluster_spec(workers(replicas=5, minReplicas=2, numOfHosts=2), enableInTreeAutoscaling=True),
            {"headgroup": 1, "small": 4},
        ),
        (
            cluster_spec(workers(minReplicas=2, suspend=True), enableInTreeAutoscaling=True),
            {"headgroup": 1},
        ),
        (cluster_spec(workers(template=template(schedulerName="default-scheduler"))), {"headgroup": 1}),
        (cluster_spec(workers(template=template(schedulerName="volcano"))), {"headgroup": 1, "small": 2}),
        ({"headGroupSpec": {"template": template(schedulerName="other")}}, {}),
        (cluster_spec(workers(), suspend=True), {}),
    ],
)
def test_the_members_are_the_pods_that_must_start_together(spec: Json, members: Json) -> None:
    manifest = of_cluster(spec)
    assert manifest["spec"]["minTaskMember"] == members
    assert manifest["spec"]["minMember"] == sum(members.values())


def test_another_name_of_the_scheduler_may_be_configured() -> None:
    named = cluster(cluster_spec(workers(template=template(schedulerName="ours"))))
    assert gang.gang_of(named.spec, scheduler_name="ours").members == {"headgroup": 1, "small": 2}
    assert gang.gang_of(named.spec).members == {"headgroup": 1}


@pytest.mark.parametrize(
    "spec",
    [
        cluster_spec(),
        cluster_spec(workers(minReplicas=2), enableInTreeAutoscaling=True),
        cluster_spec(enableInTreeAutoscaling=True, autoscalerOptions={"resources": {"requests": {"cpu": "2"}}}),
        cluster_spec(workers(), workers("big", 3, template=template("100m", "64Mi"))),
        cluster_spec(workers(numOfHosts=2, template=GPU_ONLY)),
        cluster_spec(
            workers(
                template=template(
                    overhead={"cpu": "250m"},
                    initContainers=[
                        {"name": "proxy", "restartPolicy": "Always", "resources": {"limits": {"cpu": "500m"}}},
                        {"name": "load", "resources": {"limits": {"cpu": "300m", "memory": "4Gi"}}},
                    ],
                )
            )
        ),
    ],
)
def test_the_resources_are_the_sum_over_the_pods_as_they_are_built(spec: Json) -> None:
    demo = cluster(spec)
    built = [head_pod(demo, "head")]
    for group in demo.spec.worker_groups:
        built += [worker_pod(demo, group, f"worker-{n}") for n in range(group.desired_pods)]
    total = sum((scheduling_request(pod["spec"]) for pod in built), Counter[str]())
    assert gang.gang_of(demo.spec).resources == total
    assert gang.gang_of(demo.spec).size == len(built)


def test_a_size_beyond_what_the_field_holds_is_cut_to_it() -> None:
    manifest = of_cluster(cluster_spec(workers(replicas=2**31 - 1, numOfHosts=1000)))
    assert manifest["spec"]["minMember"] == 2**31 - 1
    assert manifest["spec"]["minTaskMember"]["small"] == 2**31 - 1


@pytest.mark.parametrize(
    ("spec", "resources"),
    [
        (cluster_spec(), {"cpu": "1", "memory": "1Gi"}),
        (cluster_spec(workers()), {"cpu": "3", "memory": "3Gi"}),
        (cluster_spec(workers(replicas=9, maxReplicas=2)), {"cpu": "3", "memory": "3Gi"}),
        (cluster_spec(workers(replicas=2, numOfHosts=2)), {"cpu": "5", "memory": "5Gi"}),
        (cluster_spec(workers(suspend=True)), {"cpu": "1", "memory": "1Gi"}),
        # wait-gcs-ready (200m, 256Mi) is the larger part of a very small worker
        (cluster_spec(workers(template=template("100m", "1Gi"))), {"cpu": "1400m", "memory": "3Gi"}),
        (cluster_spec(workers(template=template("100m", "64Mi"))), {"cpu": "1400m", "memory": "1536Mi"}),
        # the autoscaler (500m, 512Mi) runs in the head pod
        (cluster_spec(workers(), enableInTreeAutoscaling=True), {"cpu": "1500m", "memory": "1536Mi"}),
        (
            cluster_spec(
                enableInTreeAutoscaling=True,
                autoscalerOptions={"resources": {"limits": {"cpu": "2"}, "requests": {"memory": "1Gi"}}},
            ),
            {"cpu": "3", "memory": "2Gi"},
        ),
        (cluster_spec(workers(template=template(overhead={"cpu": "250m"}))), {"cpu": "3500m", "memory": "3Gi"}),
        (
            cluster_spec(workers(template=template(initContainers=[{"resources": {"limits": {"cpu": 4}}}]))),
            {"cpu": "9", "memory": "3Gi"},
        ),
        (
            cluster_spec(
                workers(
                    template=template(
                        initContainers=[{"restartPolicy": "Always", "resources": {"limits": {"cpu": "500m"}}}]
                    )
                )
            ),
            {"cpu": "4", "memory": "3Gi"},
        ),
        (
            cluster_spec(workers(replicas=1, template=GPU_ONLY)),
            {"cpu": "1200m", "memory": "1280Mi", "nvidia.com/gpu": "1"},
        ),
        (cluster_spec(workers(template=template(schedulerName="other"))), {"cpu": "1", "memory": "1Gi"}),
        (cluster_spec(workers(), suspend=True), {}),
    ],
)
def test_the_resources_are_what_the_pods_really_ask_for(spec: Json, resources: Json) -> None:
    assert of_cluster(spec)["spec"]["minResources"] == resources


def test_without_the_init_container_it_does_not_count() -> None:
    tiny = cluster(cluster_spec(workers(replicas=1, template=template("100m", "64Mi"))))
    manifest = gang.ray_cluster_pod_group(tiny, options=PodOptions(inject_init_container=False))
    assert manifest is not None
    assert manifest["spec"]["minResources"] == {"cpu": "1100m", "memory": "1088Mi"}


def test_the_whole_pod_group_of_a_cluster() -> None:
    manifest = of_cluster(
        cluster_spec(workers()),
        labels={
            "volcano.sh/queue-name": "ray-batch",
            "ray.io/priority-class-name": "high",
            "volcano.sh/network-topology-mode": "soft",
            "volcano.sh/network-topology-highest-tier-allowed": "2",
            "team": "a",
        },
        annotations={"kubectl.kubernetes.io/last-applied-configuration": "{}", "note": "kept"},
    )
    assert manifest == {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": "ray-demo-pg",
            "namespace": "ns",
            "annotations": {"note": "kept"},
            "ownerReferences": [
                {
                    "apiVersion": "ray.io/v1",
                    "kind": "RayCluster",
                    "name": "demo",
                    "uid": "u1",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "minMember": 3,
            "minTaskMember": {"headgroup": 1, "small": 2},
            "minResources": {"cpu": "3", "memory": "3Gi"},
            "queue": "ray-batch",
            "priorityClassName": "high",
            "networkTopology": {"mode": "soft", "highestTierAllowed": 2},
        },
        "status": {"phase": "Pending"},
    }
    assert PodGroup.parse(manifest).dump() == manifest


def test_without_labels_the_defaults_of_the_crd_apply() -> None:
    assert set(of_cluster(cluster_spec())["spec"]) == {"minMember", "minTaskMember", "minResources"}


MADE_BY_JOB = {"ray.io/originated-from-crd": "RayJob", "ray.io/originated-from-cr-name": "demo-job"}


def owned_by(kind: str, group: str = "ray.io", *, controller: bool = True) -> Json:
    return {"apiVersion": f"{group}/v1", "kind": kind, "name": "demo-job", "uid": "u2", "controller": controller}


@pytest.mark.parametrize(
    "owners",
    [[], [owned_by("RayJob", controller=False)], [owned_by("RayService")], [owned_by("RayJob", "example.org")]],
)
def test_whose_gang_it_is_no_label_says(owners: list[Json]) -> None:
    copied = cluster(cluster_spec(), labels=MADE_BY_JOB, ownerReferences=owners)
    assert gang.pod_group_name(copied) == "ray-demo-pg"
    assert gang.ray_cluster_pod_group(copied) is not None


def test_a_cluster_that_a_ray_job_made_has_no_pod_group_but_its_pods_name_the_jobs() -> None:
    made = cluster(cluster_spec(), ownerReferences=[owned_by("RayJob")])
    assert gang.ray_cluster_pod_group(made) is None
    assert gang.pod_group_name(made) == gang.pod_group_name(job({})) == "ray-demo-job-pg"


def test_a_cluster_of_another_origin_has_its_own() -> None:
    served = cluster(cluster_spec(), labels={"ray.io/originated-from-crd": "RayService"})
    assert gang.pod_group_name(served) == "ray-demo-pg"
    assert gang.ray_cluster_pod_group(served) is not None


def test_a_ray_job_keeps_room_for_its_submitter_though_it_is_no_member() -> None:
    manifest = gang.ray_job_pod_group(job({"rayClusterSpec": cluster_spec(workers())}), SUBMITTER)
    assert manifest["metadata"]["name"] == "ray-demo-job-pg"
    assert manifest["metadata"]["ownerReferences"][0]["kind"] == "RayJob"
    assert manifest["spec"]["minMember"] == 3
    assert manifest["spec"]["minResources"] == {"cpu": "3050m", "memory": "3136Mi"}
    assert json.loads(manifest["metadata"]["annotations"]["muster.dev/companions"]) == [
        {
            "role": "submittergroup",
            "podSpec": {
                "nodeSelector": {"zone": "a"},
                "tolerations": [{"operator": "Exists"}],
                "containers": [
                    {"resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"cpu": "500m"}}}
                ],
            },
        }
    ]


def test_what_a_submitter_asks_for_as_a_whole_pod_is_described_too() -> None:
    submitter = {**SUBMITTER, "resources": {"requests": {"cpu": "2"}}}
    manifest = gang.ray_job_pod_group(job({"rayClusterSpec": cluster_spec()}), submitter)
    assert manifest["spec"]["minResources"] == {"cpu": "3", "memory": "1088Mi"}
    (described,) = json.loads(manifest["metadata"]["annotations"]["muster.dev/companions"])
    assert described["podSpec"]["resources"] == {"requests": {"cpu": "2"}}


def test_room_for_a_submitter_that_names_its_node_is_kept_on_that_node() -> None:
    submitter = {**SUBMITTER, "nodeName": "node-7", "tolerations": []}
    manifest = gang.ray_job_pod_group(job({"rayClusterSpec": cluster_spec()}), submitter)
    (described,) = json.loads(manifest["metadata"]["annotations"]["muster.dev/companions"])
    (term,) = described["podSpec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-7"]}]}
    assert described["podSpec"]["tolerations"] == [{"operator": "Exists"}]


@pytest.mark.parametrize(
    ("fields", "submitter", "resources"),
    [
        ({"submissionMode": "HTTPMode"}, SUBMITTER, {"cpu": "1", "memory": "1Gi"}),
        ({}, None, {"cpu": "1", "memory": "1Gi"}),
        ({}, {**SUBMITTER, "schedulerName": "default-scheduler"}, {"cpu": "1", "memory": "1Gi"}),
        ({"rayClusterSpec": cluster_spec(suspend=True)}, SUBMITTER, {}),
    ],
)
def test_a_submitter_that_muster_does_not_place_gets_no_room(
    fields: Json, submitter: Json | None, resources: Json
) -> None:
    manifest = gang.ray_job_pod_group(job({"rayClusterSpec": cluster_spec(), **fields}), submitter)
    assert "muster.dev/companions" not in manifest["metadata"]["annotations"]
    assert manifest["spec"]["minResources"] == resources


def test_the_cluster_as_it_is_now_may_take_the_place_of_the_spec_in_the_job() -> None:
    now = cluster(cluster_spec(workers(replicas=5))).spec
    manifest = gang.ray_job_pod_group(job({"rayClusterSpec": cluster_spec(workers())}), cluster_spec=now)
    assert manifest["spec"]["minMember"] == 6


def test_a_ray_job_without_a_cluster_spec_has_no_gang() -> None:
    with pytest.raises(ValueError, match="RayJob ns/demo-job has no rayClusterSpec"):
        gang.ray_job_pod_group(job({"clusterSelector": {"ray.io/cluster": "x"}}))


def test_the_owners_annotations_can_not_forge_companions() -> None:
    annotations = {"muster.dev/companions": "[]", "muster.dev/companion-nodes": '{"submittergroup":"n1"}', "a": "b"}
    assert of_cluster(cluster_spec(), annotations=annotations)["metadata"]["annotations"] == {"a": "b"}


@pytest.mark.parametrize(
    ("owner_labels", "name"),
    [({"volcano.sh/queue-name": "ray-batch"}, "ray-batch"), ({"volcano.sh/queue-name": ""}, None), ({}, None)],
)
def test_the_queue_that_a_label_names(owner_labels: Json, name: str | None) -> None:
    assert gang.queue_name(job({}, labels=owner_labels)) == name


def test_a_missing_queue_is_made_with_an_equal_share() -> None:
    manifest = gang.queue("ray-batch")
    assert Queue.parse(manifest).dump() == manifest
    assert manifest["spec"] == {"weight": 1, "reclaimable": True}
