from __future__ import annotations

from typing import Any

import pytest

from muster.ray.pod_options import PodOptions
from muster.ray.pods import head_pod, worker_pod
from tests.ray.ray_objects import limits, ray_cluster, template, worker_group

Container = dict[str, Any]

OPEN_FILES = "ulimit -n ${RAY_START_ULIMIT_OPEN_FILES:-65536}; "


def head_container(
    *, options: PodOptions | None = None, cluster: dict[str, Any] | None = None, **container: Any
) -> Container:
    pod = head_pod(
        ray_cluster(head={"template": template(**container)}, **(cluster or {})), "h", options=options or PodOptions()
    )
    first: Container = pod["spec"]["containers"][0]
    return first


def worker_container(*, cluster: dict[str, Any] | None = None, **container: Any) -> Container:
    made = ray_cluster(workers=[worker_group(template=template(**container))], **(cluster or {}))
    first: Container = worker_pod(made, made.spec.worker_groups[0], "w")["spec"]["containers"][0]
    return first


def env_of(container: Container) -> dict[str, Any]:
    names = [variable["name"] for variable in container["env"]]
    assert len(names) == len(set(names)), "a variable is there twice"
    return {variable["name"]: variable.get("value", variable.get("valueFrom")) for variable in container["env"]}


START = (
    "ray start --head  --block  --dashboard-agent-listen-port=52365  --dashboard-host=0.0.0.0 "
    " --metrics-export-port=8080 "
)


def test_a_container_without_a_command_starts_ray() -> None:
    container = head_container()
    assert container["command"] == ["/bin/bash", "-c", "--"]
    assert container["args"] == [OPEN_FILES + START]


def test_a_login_shell_runs_it_when_the_operator_says_so() -> None:
    assert head_container(options=PodOptions(login_shell=True))["command"] == ["/bin/bash", "-cl", "--"]


def test_the_users_command_runs_first() -> None:
    container = head_container(command=["echo"], args=["hello", "there"])
    assert container["args"] == [f"echo hello there && {OPEN_FILES}{START}"]


@pytest.mark.parametrize(
    ("own", "annotations"),
    [
        ({"command": ["bash", "-c"], "args": ["ray start --head --port=1"]}, {}),
        ({"command": ["ray start --head"]}, {}),
        ({"args": ["sleep", "1"]}, {"ray.io/overwrite-container-cmd": "true"}),
    ],
)
def test_a_command_that_starts_ray_itself_is_left_alone(own: Container, annotations: dict[str, str]) -> None:
    container = head_container(cluster={"metadata": {"annotations": annotations}}, **own)
    assert (container.get("command"), container.get("args")) == (own.get("command"), own.get("args"))
    assert env_of(container)["KUBERAY_GEN_RAY_START_CMD"] == START


def test_the_annotation_counts_only_when_it_says_true() -> None:
    metadata = {"annotations": {"ray.io/overwrite-container-cmd": "false"}}
    assert head_container(cluster={"metadata": metadata}, args=["x"])["args"] == [f"x && {OPEN_FILES}{START}"]


def test_a_head_knows_who_it_is() -> None:
    assert env_of(head_container()) == {
        "RAY_CLUSTER_NAME": {"fieldRef": {"fieldPath": "metadata.labels['ray.io/cluster']"}},
        "RAY_CLUSTER_NAMESPACE": {"fieldRef": {"fieldPath": "metadata.namespace"}},
        "RAY_CLOUD_INSTANCE_ID": {"fieldRef": {"fieldPath": "metadata.name"}},
        "RAY_NODE_TYPE_NAME": {"fieldRef": {"fieldPath": "metadata.labels['ray.io/group']"}},
        "KUBERAY_GEN_RAY_START_CMD": START,
        "RAY_USAGE_STATS_EXTRA_TAGS": "kuberay_version=v1.7.0;kuberay_crd=RayCluster",
        "RAY_PORT": "6379",
        "RAY_ADDRESS": "127.0.0.1:6379",
        "RAY_USAGE_STATS_KUBERAY_IN_USE": "1",
        "RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE": "1",
    }


def test_a_worker_knows_its_head_too() -> None:
    env = env_of(worker_container())
    assert env["FQ_RAY_IP"] == "demo-head-svc.default.svc.cluster.local"
    assert env["RAY_IP"] == "demo-head-svc"
    assert env["RAY_ADDRESS"] == "demo-head-svc.default.svc.cluster.local:6379"
    assert "RAY_USAGE_STATS_EXTRA_TAGS" not in env
    assert env["RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE"] == "1", "a worker's dashboard agent reports its node's disk"


def test_the_origin_of_the_cluster_is_told() -> None:
    metadata = {"labels": {"ray.io/originated-from-crd": "RayJob"}}
    env = env_of(head_container(cluster={"metadata": metadata}))
    assert env["RAY_USAGE_STATS_EXTRA_TAGS"] == "kuberay_version=v1.7.0;kuberay_crd=RayJob"


def test_the_users_variables_come_first_and_win_over_defaults_but_not_over_identity() -> None:
    own = [{"name": "RAY_ADDRESS", "value": "mine"}, {"name": "RAY_CLUSTER_NAME", "value": "other"}]
    container = head_container(env=own)
    env = env_of(container)
    assert container["env"][0] == own[0]
    assert env["RAY_ADDRESS"] == "mine"
    assert env["RAY_CLUSTER_NAME"] == {"fieldRef": {"fieldPath": "metadata.labels['ray.io/cluster']"}}


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        (None, [{"name": "metrics", "containerPort": 8080}]),
        (
            [{"name": "client", "containerPort": 10001}],
            [{"name": "client", "containerPort": 10001}, {"name": "metrics", "containerPort": 8080}],
        ),
        ([{"name": "metrics", "containerPort": 9090}], [{"name": "metrics", "containerPort": 9090}]),
    ],
)
def test_a_port_for_metrics_is_always_there(own: list[Container] | None, expected: list[Container]) -> None:
    assert head_container(ports=own)["ports"] == expected


@pytest.mark.parametrize("version", ["2.53.0", "2.60.1", "3.0.0", "v2.53.0"])
def test_newer_rays_are_asked_over_http(version: str) -> None:
    container = head_container(cluster={"rayVersion": version})
    question = {"httpGet": {"path": "/api/healthz", "port": 52365}, "timeoutSeconds": 5, "successThreshold": 1}
    assert container["livenessProbe"] == {
        **question,
        "initialDelaySeconds": 30,
        "periodSeconds": 5,
        "failureThreshold": 120,
    }
    assert container["readinessProbe"] == {
        **question,
        "initialDelaySeconds": 10,
        "periodSeconds": 5,
        "failureThreshold": 10,
    }


@pytest.mark.parametrize("version", ["2.52.9", "1.99.0", "", "nightly", "9" * 5000 + ".0.0", None])
def test_older_and_unknown_rays_are_asked_by_a_command(version: str | None) -> None:
    raylet = "wget --tries 1 -T 2 -q -O- http://localhost:52365/api/local_raylet_healthz | grep success"
    control = "wget --tries 1 -T 10 -q -O- http://localhost:8265/api/gcs_healthz | grep success"
    cluster = {"rayVersion": version}
    head, worker = head_container(cluster=cluster), worker_container(cluster=cluster)
    assert head["readinessProbe"]["exec"]["command"] == ["bash", "-c", f"{raylet} && {control}"]
    assert worker["readinessProbe"]["exec"]["command"] == ["bash", "-c", raylet]


def test_workers_are_given_less_time_to_answer() -> None:
    container = worker_container(cluster={"rayVersion": "2.60.0"})
    assert container["livenessProbe"]["timeoutSeconds"] == container["readinessProbe"]["timeoutSeconds"] == 2


def test_a_probe_asks_where_the_agent_listens() -> None:
    head = {"template": template(), "rayStartParams": {"dashboard-agent-listen-port": "5000"}}
    pod = head_pod(ray_cluster(head=head, rayVersion="2.60.0"), "h")
    assert pod["spec"]["containers"][0]["livenessProbe"]["httpGet"]["port"] == 5000


def test_the_users_probes_are_kept_each_by_itself() -> None:
    own = {"tcpSocket": {"port": 1}}
    container = head_container(livenessProbe=own)
    assert container["livenessProbe"] == own
    assert "exec" in container["readinessProbe"]


def test_no_probes_when_the_operator_says_so() -> None:
    container = head_container(options=PodOptions(inject_probes=False))
    assert "livenessProbe" not in container
    assert "readinessProbe" not in container


def test_the_template_itself_stays_as_it_is() -> None:
    cluster = ray_cluster(head={"template": template(resources=limits(cpu=1))})
    before = cluster.dump()
    head_pod(cluster, "h")
    assert cluster.dump() == before
