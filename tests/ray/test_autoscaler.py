"""The autoscaler's container in the head pod, and what else a pod shows of it."""

from __future__ import annotations

from typing import Any

import pytest

from muster.ray.autoscaler import restarted_workers
from muster.ray.pod_options import PodOptions
from muster.ray.pods import head_pod, worker_pod
from tests.ray.ray_objects import ray_cluster, template, worker_group

Spec = dict[str, Any]


DEFAULTS = PodOptions()


def head(*, options: PodOptions = DEFAULTS, container: Spec | None = None, **cluster: Any) -> Spec:
    group = {"template": template(**(container or {}))}
    made = head_pod(ray_cluster(**{"head": group, "enableInTreeAutoscaling": True, **cluster}), "h", options=options)
    return dict(made["spec"])


def autoscaler(**cluster: Any) -> Spec:
    (found,) = (one for one in head(**cluster)["containers"] if one["name"] == "autoscaler")
    return dict(found)


def env(container: Spec) -> dict[str, Any]:
    return {one["name"]: one.get("value", one.get("valueFrom")) for one in container["env"]}


def test_without_autoscaling_there_is_none() -> None:
    spec = head(enableInTreeAutoscaling=False, autoscalerOptions={"version": "v2"})
    assert [one["name"] for one in spec["containers"]] == ["ray"]
    assert "serviceAccountName" not in spec
    assert "restartPolicy" not in spec


def test_it_runs_beside_ray_in_rays_image_with_kuberays_command() -> None:
    container = autoscaler()
    assert container["image"] == "ray:2.60.0"
    assert container["imagePullPolicy"] == "IfNotPresent"
    assert container["command"] == ["/bin/bash", "-c", "--"]
    command = "ray kuberay-autoscaler --cluster-name $(RAY_CLUSTER_NAME) --cluster-namespace $(RAY_CLUSTER_NAMESPACE)"
    assert container["args"] == [command]
    assert container["resources"] == {
        "requests": {"cpu": "500m", "memory": "512Mi"},
        "limits": {"cpu": "500m", "memory": "512Mi"},
    }
    assert env(container) == {
        "RAY_CLUSTER_NAME": {"fieldRef": {"fieldPath": "metadata.labels['ray.io/cluster']"}},
        "RAY_CLUSTER_NAMESPACE": {"fieldRef": {"fieldPath": "metadata.namespace"}},
        "RAY_HEAD_POD_NAME": {"fieldRef": {"fieldPath": "metadata.name"}},
        "KUBERAY_CRD_VER": "v1",
        "KUBERAY_GEN_AUTOSCALER_START_CMD": command,
    }


def test_the_users_containers_come_first() -> None:
    group = {"template": template(spec={"containers": [{"name": "ray", "image": "i"}, {"name": "mine", "image": "j"}]})}
    assert [one["name"] for one in head(head=group)["containers"]] == ["ray", "mine", "autoscaler"]


def test_what_the_options_say_takes_the_place_of_the_defaults_or_is_added() -> None:
    options: Spec = {
        "image": "other:1",
        "imagePullPolicy": "Always",
        "resources": {"limits": {"cpu": "2"}},
        "securityContext": {"runAsUser": 7},
        "command": ["/bin/sh", "-c"],
        "args": ["exec $KUBERAY_GEN_AUTOSCALER_START_CMD"],
        "env": [{"name": "MINE", "value": "1"}],
        "envFrom": [{"configMapRef": {"name": "c"}}],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    }
    container = autoscaler(autoscalerOptions=options)
    for field in ("image", "imagePullPolicy", "resources", "securityContext", "command", "args", "envFrom"):
        assert container[field] == options[field]
    assert env(container)["MINE"] == "1"
    assert env(container)["KUBERAY_CRD_VER"] == "v1"
    assert [mount["mountPath"] for mount in container["volumeMounts"]] == ["/v", "/tmp/ray"]


def test_making_a_pod_leaves_the_spec_as_it_was() -> None:
    cluster = ray_cluster(enableInTreeAutoscaling=True, autoscalerOptions={"env": [{"name": "A", "value": "1"}]})
    before = cluster.dump()
    head_pod(cluster, "h")["spec"]["containers"][-1]["env"][-1]["value"] = "2"
    assert cluster.dump() == before


def test_it_shows_the_clusters_token() -> None:
    secret = {"secretKeyRef": {"name": "demo", "key": "auth_token"}}
    assert env(autoscaler(authOptions={"mode": "token"}))["RAY_AUTH_TOKEN"] == secret


def test_a_login_shell_is_the_autoscalers_too() -> None:
    assert autoscaler(options=PodOptions(login_shell=True))["command"] == ["/bin/bash", "-cl", "--"]


def test_ray_and_the_autoscaler_share_their_logs() -> None:
    spec = head()
    assert {"name": "ray-logs", "emptyDir": {}} in spec["volumes"]
    for container in spec["containers"]:
        assert {"name": "ray-logs", "mountPath": "/tmp/ray"} in container["volumeMounts"]


@pytest.mark.parametrize("path", ["/tmp/ray", "/tmp/ray/"])
def test_where_the_user_keeps_the_logs_the_autoscaler_writes_there(path: str) -> None:
    mine = {"name": "mine", "mountPath": path, "subPath": "logs"}
    spec = head(container={"volumeMounts": [mine]})
    assert all(volume["name"] != "ray-logs" for volume in spec.get("volumes", []))
    assert mine in spec["containers"][1]["volumeMounts"]


def test_a_volume_of_that_name_is_taken_as_it_is() -> None:
    group = {"template": template(spec={"volumes": [{"name": "ray-logs", "hostPath": {"path": "/l"}}]})}
    spec = head(head=group)
    assert [volume for volume in spec["volumes"] if volume["name"] == "ray-logs"] == [
        {"name": "ray-logs", "hostPath": {"path": "/l"}}
    ]


@pytest.mark.parametrize(
    ("named", "account"),
    [({}, "demo"), ({"serviceAccountName": "mine"}, "mine"), ({"serviceAccount": "old"}, "old")],
)
def test_the_head_runs_as_the_account_with_the_role(named: Spec, account: str) -> None:
    assert head(head={"template": template(spec=named)})["serviceAccountName"] == account


@pytest.mark.parametrize(("version", "value"), [("v1", "false"), ("v2", "true"), (None, None)])
def test_ray_is_told_the_version_that_was_asked_for(version: str | None, value: str | None) -> None:
    spec = head(autoscalerOptions={"version": version} if version else {})
    assert env(spec["containers"][0]).get("RAY_enable_autoscaler_v2") == value


@pytest.mark.parametrize(("version", "policy"), [("v1", None), ("v2", "Never"), (None, None)])
def test_the_second_autoscaler_replaces_pods_itself(version: str | None, policy: str | None) -> None:
    asked = {"version": version} if version else None
    cluster = ray_cluster(enableInTreeAutoscaling=True, workers=[worker_group()], autoscalerOptions=asked)
    worker = worker_pod(cluster, cluster.spec.worker_groups[0], "w")
    assert head_pod(cluster, "h")["spec"].get("restartPolicy") == policy
    assert worker["spec"].get("restartPolicy") == policy
    assert [one["name"] for one in worker["spec"]["containers"]] == ["ray"]


@pytest.mark.parametrize(
    ("version", "policy", "told"),
    [
        ("v1", "Always", ["workers"]),
        ("v1", "OnFailure", ["workers"]),
        ("v1", None, ["workers"]),
        ("v1", "Never", []),
        (None, "Always", []),
    ],
)
def test_workers_that_the_first_autoscaler_would_lose_sight_of(
    version: str | None, policy: str | None, told: list[str]
) -> None:
    options = {} if version is None else {"version": version}
    restart = {} if policy is None else {"restartPolicy": policy}
    group = worker_group("workers", template={"spec": {"containers": [{"name": "ray"}], **restart}})
    cluster = ray_cluster(workers=[group], enableInTreeAutoscaling=True, autoscalerOptions=options)
    assert restarted_workers(cluster.spec) == told


def test_without_the_autoscaler_kubelets_may_restart_workers() -> None:
    assert restarted_workers(ray_cluster(autoscalerOptions={"version": "v1"}).spec) == []
