from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from muster.quantities import QuantityError
from muster.ray.ray_node import RayNode
from muster.ray.start_command import flags, is_gpu, start_command, start_params
from tests.ray.ray_objects import limits, ray_cluster, worker_group


def head_params(container: dict[str, Any] | None = None, *, autoscaling: bool = False, **head: Any) -> dict[str, str]:
    cluster = ray_cluster(head=head, enableInTreeAutoscaling=autoscaling)
    return start_params(RayNode.head(cluster, "cluster.local"), container or {})


def worker_params(container: dict[str, Any] | None = None, *, port: str | None = None, **group: Any) -> dict[str, str]:
    head = {"rayStartParams": {"port": port}} if port else {}
    cluster = ray_cluster(head=head, workers=[worker_group(**group)])
    node = RayNode.worker(cluster, cluster.spec.worker_groups[0], "cluster.local")
    return start_params(node, container or {})


def test_a_head_gets_the_flags_that_every_head_needs() -> None:
    assert head_params() == {
        "dashboard-host": "0.0.0.0",  # noqa: S104
        "metrics-export-port": "8080",
        "dashboard-agent-listen-port": "52365",
        "block": "true",
    }


def test_a_worker_gets_the_address_of_its_head() -> None:
    assert worker_params() == {
        "address": "demo-head-svc.default.svc.cluster.local:6379",
        "metrics-export-port": "8080",
        "dashboard-agent-listen-port": "52365",
        "block": "true",
    }


def test_a_worker_follows_the_heads_own_port() -> None:
    assert worker_params(port="7000")["address"] == "demo-head-svc.default.svc.cluster.local:7000"


def test_ray_does_not_run_its_own_monitor_beside_the_autoscaler() -> None:
    assert head_params(autoscaling=True)["no-monitor"] == "true"
    assert "no-monitor" not in head_params()


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"dashboard-host": "127.0.0.1"}, {"dashboard-host": "127.0.0.1"}),
        ({"metrics-export-port": "9000"}, {"metrics-export-port": "9000"}),
        ({"dashboard-agent-listen-port": "5000"}, {"dashboard-agent-listen-port": "5000"}),
        ({"block": "false"}, {"block": "true"}),
        ({"num-cpus": "7"}, {"num-cpus": "7"}),
        ({"memory": "1"}, {"memory": "1"}),
        ({"num-gpus": "0"}, {"num-gpus": "0"}),
    ],
)
def test_what_the_user_sets_stays_but_for_block(params: dict[str, str], expected: dict[str, str]) -> None:
    container = {"resources": limits(cpu=2, memory="4Gi", **{"nvidia.com/gpu": 1})}
    assert expected.items() <= head_params(container, rayStartParams=params).items()


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        (limits(cpu="500m"), {"num-cpus": "1"}),
        (limits(cpu=2), {"num-cpus": "2"}),
        ({"requests": {"cpu": "1500m"}}, {"num-cpus": "2"}),
        ({"requests": {"cpu": "8"}, "limits": {"cpu": "3"}}, {"num-cpus": "3"}),
        ({"requests": {"cpu": "8"}, "limits": {"cpu": "0"}}, {"num-cpus": "8"}),
        (limits(memory="1Gi"), {"memory": "1073741824"}),
        (limits(memory="1.5M"), {"memory": "1500000"}),
        ({"requests": {"memory": "1Gi"}}, {}),
        (limits(**{"nvidia.com/gpu": 4}), {"num-gpus": "4"}),
        (limits(**{"nvidia.com/gpu": 0, "zeta/gpu": 2}), {"num-gpus": "2"}),
        (limits(**{"nvidia.com/mig-1g.5gb": 3}), {"num-gpus": "3"}),
        ({"requests": {"nvidia.com/gpu": 4}}, {}),
        (limits(**{"google.com/tpu": 4}), {"resources": """'{"TPU":4}'"""}),
        (
            limits(**{"aws.amazon.com/neuroncore": 2, "google.com/tpu": 4}),
            {"resources": """'{"neuron_cores":2}'"""},
        ),
        ({}, {}),
        ({"limits": None, "requests": None}, {}),
    ],
)
def test_what_the_user_leaves_out_comes_from_the_container(resources: dict[str, Any], expected: dict[str, str]) -> None:
    assert head_params({"resources": resources}) == head_params() | expected


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ("""'{"custom": 1}'""", """'{"TPU":4,"custom":1}'"""),
        ('''"{\\"custom\\": 0.5}"''', """'{"TPU":4,"custom":0.5}'"""),
        ("""'{"TPU": 1}'""", """'{"TPU": 1}'"""),
        ("""'{"neuron_cores": 1}'""", """'{"neuron_cores": 1}'"""),
        ("$CUSTOM", "$CUSTOM"),
        ("""'["custom"]'""", """'["custom"]'"""),
    ],
)
def test_an_accelerator_joins_the_users_own_resources_unless_they_name_one(own: str, expected: str) -> None:
    params = head_params({"resources": limits(**{"google.com/tpu": 4})}, rayStartParams={"resources": own})
    assert params["resources"] == expected


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({"cpu": "1500m"}, {"num-cpus": "2"}),
        ({"memory": "1Gi"}, {"memory": "1073741824"}),
        ({"nvidia.com/gpu": "2"}, {"num-gpus": "2"}),
        ({"b": "2", "a": "0.5"}, {"resources": """'{"a":0.5,"b":2}'"""}),
        ({"CPU": "3", "Memory": "1Ki", "GPU": "1"}, {"num-cpus": "3", "memory": "1024", "num-gpus": "1"}),
        ({"CPU": "0", "TPU": "4"}, {"num-cpus": "0", "resources": """'{"TPU":4}'"""}),
        ({"cpu": "many", "memory": "2Gi", "x": "?"}, {"memory": "2147483648"}),
    ],
)
def test_the_groups_resources_take_the_place_of_the_containers(
    resources: dict[str, str], expected: dict[str, str]
) -> None:
    assert expected.items() <= worker_params({"resources": limits(memory="8Gi")}, resources=resources).items()


def test_the_groups_labels_are_one_sorted_flag() -> None:
    assert worker_params(labels={"zone": "b", "arch": "arm"})["labels"] == "arch=arm,zone=b"


def test_an_unreadable_amount_in_the_container_is_an_error() -> None:
    with pytest.raises(QuantityError, match="lots"):
        head_params({"resources": limits(cpu="lots")})


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"b": "1", "a": "x y"}, " --a=x y  --b=1 "),
        ({"block": "true"}, " --block "),
        ({"block": "True"}, " --block "),
        ({"no-redirect-output": "false"}, ""),
        ({"log-color": "false"}, " --log-color=false "),
        ({"include-dashboard": "true"}, " --include-dashboard=true "),
        ({"include-log-monitor": "false"}, " --include-log-monitor=false "),
        ({}, ""),
    ],
)
def test_flags_are_sorted_and_booleans_stand_alone(params: dict[str, str], text: str) -> None:
    assert flags(params) == text


def test_head_and_worker_start_differently() -> None:
    cluster = ray_cluster(workers=[worker_group()])
    head = RayNode.head(cluster, "cluster.local")
    worker = RayNode.worker(cluster, cluster.spec.worker_groups[0], "cluster.local")
    assert start_command(head, {"block": "true"}) == "ray start --head  --block "
    assert start_command(worker, {"block": "true"}) == "ray start  --block "


@pytest.mark.parametrize(
    ("resource", "gpu"),
    [
        ("nvidia.com/gpu", True),
        ("amd.com/gpu", True),
        ("nvidia.com/mig-2g.10gb", True),
        ("nvidia.com/mig-mixed", False),
        ("nvidia.com/gpu.shared", False),
        ("google.com/tpu", False),
        ("cpu", False),
    ],
)
def test_which_resources_are_gpus(resource: str, gpu: bool) -> None:
    assert is_gpu(resource) is gpu


@pytest.mark.parametrize("name", ["it's", "a'; touch /tmp/x; '", 'a"b', "$(id)", "`id`"])
def test_a_resource_reaches_ray_as_one_word_whatever_its_name(name: str) -> None:
    params = worker_params({}, resources={name: "2"})
    assert json.loads(shlex.split(f"--resources={params['resources']}")[0].removeprefix("--resources=")) == {name: 2}
