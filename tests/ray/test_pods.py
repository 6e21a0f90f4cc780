from __future__ import annotations

from typing import Any

import pytest

from muster.ray.gang_membership import GangMembership
from muster.ray.labels import TEMPLATE_HASH
from muster.ray.pod_options import PodOptions
from muster.ray.pods import WorkerPlace, head_pod, worker_pod
from tests.ray.ray_objects import limits, ray_cluster, template, worker_group

GANG = GangMembership("ray-demo-pg", queue="ray-batch", priority_class="high")


def worker(group: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    cluster = ray_cluster(workers=[group or worker_group()])
    return worker_pod(cluster, cluster.spec.worker_groups[0], "demo-small-worker-x", **options)


def said_of(pod: dict[str, Any]) -> dict[str, str]:
    """All but the hash of the template, which has tests of its own."""
    return {key: value for key, value in pod["metadata"]["annotations"].items() if key != TEMPLATE_HASH}


def test_a_head_pod_says_what_it_is() -> None:
    pod = head_pod(ray_cluster(), "demo-head-x")
    assert (pod["apiVersion"], pod["kind"]) == ("v1", "Pod")
    assert {**pod["metadata"], "annotations": said_of(pod)} == {
        "name": "demo-head-x",
        "namespace": "default",
        "labels": {
            "ray.io/is-ray-node": "yes",
            "ray.io/cluster": "demo",
            "ray.io/node-type": "head",
            "ray.io/group": "headgroup",
            "ray.io/identifier": "demo-head",
            "app.kubernetes.io/name": "kuberay",
            "app.kubernetes.io/created-by": "kuberay-operator",
        },
        "annotations": {"ray.io/ft-enabled": "false"},
        "ownerReferences": [
            {
                "apiVersion": "ray.io/v1",
                "kind": "RayCluster",
                "name": "demo",
                "uid": "uid-1",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }


def test_finalizers_of_a_template_are_on_its_pods() -> None:
    user = template(metadata={"finalizers": ["example.org/archive-logs"]})
    for pod in (head_pod(ray_cluster(head={"template": user}), "demo-head-x"), worker(worker_group(template=user))):
        assert pod["metadata"]["finalizers"] == ["example.org/archive-logs"]


def test_a_worker_pod_says_which_worker_it_is() -> None:
    labels = worker(place=WorkerPlace(replica=4))["metadata"]["labels"]
    assert labels["ray.io/node-type"] == "worker"
    assert labels["ray.io/group"] == "small"
    assert labels["ray.io/identifier"] == "demo-worker"
    assert labels["ray.io/worker-group-replica-index"] == "4"
    assert "ray.io/replica-host-index" not in labels


def test_a_host_of_a_multi_host_replica_says_which_host_it_is() -> None:
    labels = worker(place=WorkerPlace(replica=1, replica_name="small-abcde", host=3))["metadata"]["labels"]
    assert labels["ray.io/worker-group-replica-index"] == "1"
    assert labels["ray.io/worker-group-replica-name"] == "small-abcde"
    assert labels["ray.io/replica-host-index"] == "3"


def test_the_name_of_a_replica_fits_a_label_and_keeps_what_tells_it_apart() -> None:
    place = WorkerPlace(replica=1, replica_name=f"{'g' * 63}-abcde", host=3)
    name = worker(place=place)["metadata"]["labels"]["ray.io/worker-group-replica-name"]
    assert len(name) == 63
    assert name.endswith("g-abcde")
    again = worker(place=WorkerPlace(replica=1, replica_name=name, host=0))["metadata"]["labels"]
    assert again["ray.io/worker-group-replica-name"] == name


def test_users_may_override_all_labels_but_the_three_that_identify_a_pod() -> None:
    own = {
        "app.kubernetes.io/name": "mine",
        "team": "red",
        "ray.io/cluster": "x",
        "ray.io/node-type": "x",
        "ray.io/group": "x",
    }
    labels = head_pod(
        ray_cluster(head={"template": template(metadata={"labels": own}), "labels": {"team": "blue"}}), "h"
    )["metadata"]["labels"]
    assert labels["app.kubernetes.io/name"] == "mine"
    assert labels["team"] == "blue"
    assert (labels["ray.io/cluster"], labels["ray.io/node-type"], labels["ray.io/group"]) == (
        "demo",
        "head",
        "headgroup",
    )


def test_annotations_come_from_the_template_and_the_overwrite_from_the_cluster() -> None:
    cluster = ray_cluster(
        head={"template": template(metadata={"annotations": {"a": "b"}})},
        metadata={"annotations": {"ray.io/overwrite-container-cmd": "true", "not-for-pods": "x"}},
    )
    assert said_of(head_pod(cluster, "h")) == {
        "a": "b",
        "ray.io/overwrite-container-cmd": "true",
        "ray.io/ft-enabled": "false",
    }


def test_a_member_of_a_gang_is_gated_from_its_first_moment() -> None:
    pod = worker(gang=GANG)
    assert pod["spec"]["schedulerName"] == "muster"
    assert pod["spec"]["schedulingGates"] == [{"name": "muster.dev/gang"}]
    assert said_of(pod) == {
        "scheduling.k8s.io/group-name": "ray-demo-pg",
        "volcano.sh/task-spec": "small",
    }
    assert pod["metadata"]["labels"]["volcano.sh/queue-name"] == "ray-batch"
    assert pod["metadata"]["labels"]["ray.io/priority-class-name"] == "high"


def test_the_heads_role_in_the_gang_is_headgroup() -> None:
    pod = head_pod(ray_cluster(), "h", GANG)
    assert pod["metadata"]["annotations"]["volcano.sh/task-spec"] == "headgroup"
    assert pod["spec"]["schedulingGates"] == [{"name": "muster.dev/gang"}]


def test_without_a_gang_nothing_is_said_about_scheduling() -> None:
    pod = worker()
    assert "schedulerName" not in pod["spec"]
    assert "schedulingGates" not in pod["spec"]
    assert not said_of(pod)


@pytest.mark.parametrize("scheduler", ["default-scheduler", "yunikorn"])
def test_a_template_that_names_another_scheduler_is_left_to_it(scheduler: str) -> None:
    pod = worker(worker_group(template=template(spec={"schedulerName": scheduler})), gang=GANG)
    assert pod["spec"]["schedulerName"] == scheduler
    assert "schedulingGates" not in pod["spec"]
    assert "scheduling.k8s.io/group-name" not in pod["metadata"]["annotations"]


@pytest.mark.parametrize("scheduler", ["muster", "volcano", ""])
def test_a_template_that_names_us_or_volcano_is_ours(scheduler: str) -> None:
    pod = worker(worker_group(template=template(spec={"schedulerName": scheduler})), gang=GANG)
    assert pod["spec"]["schedulerName"] == "muster"
    assert pod["spec"]["schedulingGates"] == [{"name": "muster.dev/gang"}]


def test_a_template_that_names_its_node_is_a_member_without_a_gate() -> None:
    pod = worker(worker_group(template=template(spec={"nodeName": "node-1"})), gang=GANG)
    assert "schedulingGates" not in pod["spec"]
    assert pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "ray-demo-pg"
    assert pod["spec"]["schedulerName"] == "muster"


def test_gates_of_others_are_kept_and_ours_is_there_once() -> None:
    gates = [{"name": "example.com/wait"}, {"name": "muster.dev/gang"}]
    pod = worker(worker_group(template=template(spec={"schedulingGates": gates})), gang=GANG)
    assert pod["spec"]["schedulingGates"] == gates


@pytest.mark.parametrize(
    ("gang", "spec", "reason"),
    [
        (GANG, {}, None),
        (GANG, {"schedulerName": "volcano"}, None),
        (GANG, {"nodeName": "n1"}, "the template names node n1"),
        (GANG, {"schedulerName": "other", "nodeName": "n1"}, "the template names scheduler other"),
        (GangMembership("g", scheduler_name="volcano", gate=None), {}, "scheduler volcano places the gang"),
    ],
)
def test_why_a_pod_is_not_gated_can_be_told(gang: GangMembership, spec: dict[str, Any], reason: str | None) -> None:
    assert gang.why_ungated(spec) == reason


def test_a_gang_of_another_scheduler_has_its_members_ungated() -> None:
    pod = worker(gang=GangMembership("pg", scheduler_name="volcano", gate=None))
    assert pod["spec"]["schedulerName"] == "volcano"
    assert "schedulingGates" not in pod["spec"]
    assert pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "pg"


def test_shared_memory_is_as_large_as_the_containers_memory() -> None:
    spec = worker(worker_group(template=template(resources=limits(memory="2Gi"))))["spec"]
    assert spec["volumes"] == [{"name": "shared-mem", "emptyDir": {"medium": "Memory", "sizeLimit": "2Gi"}}]
    assert spec["containers"][0]["volumeMounts"] == [{"name": "shared-mem", "mountPath": "/dev/shm"}]


@pytest.mark.parametrize(
    ("resources", "volume"),
    [
        ({"requests": {"memory": "1Gi"}}, {"medium": "Memory", "sizeLimit": "1Gi"}),
        ({"requests": {"memory": "1Gi"}, "limits": {"memory": "3Gi"}}, {"medium": "Memory", "sizeLimit": "3Gi"}),
        ({"limits": {"cpu": 1}}, {"medium": "Memory"}),
        (None, {"medium": "Memory"}),
    ],
)
def test_shared_memory_falls_back_to_the_request_and_to_no_limit(
    resources: dict[str, Any] | None, volume: dict[str, str]
) -> None:
    spec = head_pod(ray_cluster(head={"template": template(resources=resources)}), "h")["spec"]
    assert spec["volumes"][0]["emptyDir"] == volume


@pytest.mark.parametrize(
    "head",
    [
        {"template": template(volumeMounts=[{"name": "mine", "mountPath": "/dev/shm"}])},
        {"template": template(), "rayStartParams": {"plasma-directory": "/tmp"}},
    ],
)
def test_shared_memory_that_the_user_arranged_is_left_alone(head: dict[str, Any]) -> None:
    spec = head_pod(ray_cluster(head=head), "h")["spec"]
    assert "volumes" not in spec
    assert spec["containers"][0].get("volumeMounts") == head["template"]["spec"]["containers"][0].get("volumeMounts")


def test_a_worker_waits_for_its_head_after_the_users_own_init_containers() -> None:
    own = {"name": "mine", "image": "x", "env": [{"name": "A", "value": "1"}]}
    ray: dict[str, Any] = {
        "securityContext": {"runAsUser": 7},
        "imagePullPolicy": "Never",
        "env": [{"name": "B", "value": "2"}],
    }
    first, wait = worker(worker_group(template=template(spec={"initContainers": [own]}, **ray)))["spec"][
        "initContainers"
    ]
    assert first["env"] == [
        {"name": "A", "value": "1"},
        {"name": "FQ_RAY_IP", "value": "demo-head-svc.default.svc.cluster.local"},
        {"name": "RAY_IP", "value": "demo-head-svc"},
    ]
    assert wait["name"] == "wait-gcs-ready"
    assert (wait["image"], wait["imagePullPolicy"]) == ("ray:2.60.0", "Never")
    assert wait["securityContext"] == {"runAsUser": 7}
    assert {"name": "B", "value": "2"} in wait["env"]
    assert wait["volumeMounts"] == [{"name": "shared-mem", "mountPath": "/dev/shm"}]
    assert wait["resources"] == {
        "requests": {"cpu": "200m", "memory": "256Mi"},
        "limits": {"cpu": "200m", "memory": "256Mi"},
    }


def test_the_heads_address_is_an_argument_of_the_waiting_script_and_never_part_of_it() -> None:
    cluster = ray_cluster(head={"rayStartParams": {"port": "$(reboot)"}}, workers=[worker_group()])
    wait = worker_pod(cluster, cluster.spec.worker_groups[0], "w")["spec"]["initContainers"][-1]
    script, _, address = wait["args"]
    assert address == "demo-head-svc.default.svc.cluster.local:$(reboot)"
    assert "reboot" not in script


def test_a_head_waits_for_nobody() -> None:
    assert "initContainers" not in head_pod(ray_cluster(), "h")["spec"]


def test_no_worker_waits_when_the_operator_says_so() -> None:
    assert "initContainers" not in worker(options=PodOptions(inject_init_container=False))["spec"]


def test_the_domain_of_the_kubernetes_cluster_is_the_operators_choice() -> None:
    args = worker(options=PodOptions(cluster_domain="example.org"))["spec"]["containers"][0]["args"]
    assert "--address=demo-head-svc.default.svc.example.org:6379 " in args[0]


def test_the_users_head_service_is_where_workers_look_for_the_head() -> None:
    cluster = ray_cluster(head={"headService": {"metadata": {"name": "mine"}}}, workers=[worker_group()])
    args = worker_pod(cluster, cluster.spec.worker_groups[0], "w")["spec"]["containers"][0]["args"]
    assert "--address=mine.default.svc.cluster.local:6379 " in args[0]
