from __future__ import annotations

from typing import Any

import pytest

from muster.ray.pods import head_pod
from muster.ray.services import dashboard_port, head_service, headless_worker_service, ray_job_head_service
from tests.ray.ray_objects import ray_cluster, ray_job, template, worker_group

SELECTOR = {
    "ray.io/cluster": "demo",
    "ray.io/node-type": "head",
    "ray.io/identifier": "demo-head",
    "app.kubernetes.io/name": "kuberay",
    "app.kubernetes.io/created-by": "kuberay-operator",
}


def ports(service: dict[str, Any]) -> dict[str, int]:
    return {port["name"]: port["port"] for port in service["spec"]["ports"]}


def test_a_head_service_is_headless_and_leads_to_a_head_that_is_not_ready_yet() -> None:
    service = head_service(ray_cluster())
    assert service["metadata"]["name"] == "demo-head-svc"
    assert service["metadata"]["namespace"] == "default"
    assert service["metadata"]["labels"] == SELECTOR
    assert service["metadata"]["ownerReferences"][0]["uid"] == "uid-1"
    assert service["spec"] == {
        "type": "ClusterIP",
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": SELECTOR,
        "ports": [
            {"name": "client", "port": 10001, "appProtocol": "tcp"},
            {"name": "dashboard", "port": 8265, "appProtocol": "tcp"},
            {"name": "gcs-server", "port": 6379, "appProtocol": "tcp"},
            {"name": "metrics", "port": 8080, "appProtocol": "tcp"},
            {"name": "serve", "port": 8000, "appProtocol": "tcp"},
        ],
    }


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ([{"name": "dashboard", "containerPort": 1}], {"dashboard": 1, "metrics": 8080}),
        ([{"containerPort": 5}], {"5-port": 5, "metrics": 8080}),
        ([{"name": "metrics", "containerPort": 9}], {"metrics": 9}),
        # The API server takes no number twice.
        ([{"name": "prom", "containerPort": 8080}], {"prom": 8080}),
        ([{"containerPort": 8080}], {"8080-port": 8080}),
        ([{"name": "a", "containerPort": 5}, {"name": "serve", "containerPort": 5}], {"serve": 5, "metrics": 8080}),
    ],
)
def test_declared_ports_take_the_place_of_the_usual_ones(
    declared: list[dict[str, Any]], expected: dict[str, int]
) -> None:
    assert ports(head_service(ray_cluster(head={"template": template(ports=declared)}))) == expected


@pytest.mark.parametrize("kind", ["NodePort", "LoadBalancer"])
def test_another_type_of_service_has_an_address(kind: str) -> None:
    spec = head_service(ray_cluster(head={"serviceType": kind}))["spec"]
    assert spec["type"] == kind
    assert "clusterIP" not in spec
    assert "publishNotReadyAddresses" not in spec


def test_the_operator_can_give_every_head_service_an_address() -> None:
    spec = head_service(ray_cluster(), with_cluster_ip=True)["spec"]
    assert spec["type"] == "ClusterIP"
    assert "clusterIP" not in spec


def test_the_application_label_of_the_head_template_is_selected_by() -> None:
    head = {"template": template(metadata={"labels": {"app.kubernetes.io/name": "mine"}})}
    service = head_service(ray_cluster(head=head))
    assert service["spec"]["selector"]["app.kubernetes.io/name"] == "mine"
    assert service["metadata"]["labels"]["app.kubernetes.io/name"] == "mine"


@pytest.mark.parametrize(
    "head",
    [
        {"template": template(metadata={"labels": {"app.kubernetes.io/name": ""}})},
        {"template": template(metadata={"labels": {"ray.io/identifier": "mine", "ray.io/cluster": "no", "a": "b"}})},
        {"template": template(metadata={"labels": {"app.kubernetes.io/created-by": "helm"}})},
        {"labels": {"app.kubernetes.io/name": "mine"}},
        {"template": template(metadata={"labels": None})},
    ],
)
def test_a_head_service_leads_to_its_pod_whatever_labels_that_has_been_given(head: dict[str, Any]) -> None:
    cluster = ray_cluster(head=head)
    carried = head_pod(cluster, "h")["metadata"]["labels"]
    assert head_service(cluster)["spec"]["selector"].items() <= carried.items()


def test_the_users_own_service_is_kept_but_for_selector_and_namespace() -> None:
    own = {
        "metadata": {
            "name": "mine",
            "namespace": "elsewhere",
            "labels": {"team": "red", "ray.io/cluster": "x"},
            "annotations": {"a": "theirs", "b": "b"},
        },
        "spec": {"type": "NodePort", "clusterIP": "10.0.0.9", "selector": {"x": "y"}, "externalTrafficPolicy": "Local"},
    }
    service = head_service(ray_cluster(head={"headService": own}, headServiceAnnotations={"a": "cluster's"}))
    assert service["metadata"]["name"] == "mine"
    assert service["metadata"]["namespace"] == "default"
    assert service["metadata"]["labels"] == {"team": "red", **SELECTOR}
    assert service["metadata"]["annotations"] == {"a": "cluster's", "b": "b"}
    assert service["spec"]["selector"] == SELECTOR
    assert (service["spec"]["type"], service["spec"]["clusterIP"]) == ("NodePort", "10.0.0.9")
    assert service["spec"]["externalTrafficPolicy"] == "Local"
    assert own["spec"]["selector"] == {"x": "y"}


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ([], {"client": 10001, "dashboard": 8265, "gcs-server": 6379, "metrics": 8080, "serve": 8000}),
        (
            [{"name": "dashboard", "port": 80}],
            {"dashboard": 80, "client": 10001, "gcs-server": 6379, "metrics": 8080, "serve": 8000},
        ),
        (
            [{"name": "web", "port": 8265}],
            {"web": 8265, "client": 10001, "gcs-server": 6379, "metrics": 8080, "serve": 8000},
        ),
        (
            [{"port": 99}],
            {"99-port": 99, "client": 10001, "dashboard": 8265, "gcs-server": 6379, "metrics": 8080, "serve": 8000},
        ),
    ],
)
def test_the_usual_ports_join_the_users_unless_they_clash(own: list[dict[str, Any]], expected: dict[str, int]) -> None:
    service = head_service(ray_cluster(head={"headService": {"spec": {"ports": own}}}))
    assert ports(service) == expected


def test_annotations_of_the_cluster_are_put_on_its_head_service() -> None:
    service = head_service(ray_cluster(headServiceAnnotations={"a": "b"}))
    assert service["metadata"]["annotations"] == {"a": "b"}


@pytest.mark.parametrize(("hosts", "made"), [([None], False), ([1], False), ([1, 4], True), ([], False)])
def test_only_multi_host_groups_need_a_headless_service(hosts: list[int | None], made: bool) -> None:
    groups = [worker_group(f"g{n}", **({"numOfHosts": count} if count else {})) for n, count in enumerate(hosts)]
    service = headless_worker_service(ray_cluster(workers=groups))
    assert (service is not None) is made


def test_the_headless_service_publishes_every_worker() -> None:
    service = headless_worker_service(ray_cluster(workers=[worker_group(numOfHosts=2)]))
    assert service is not None
    assert service["metadata"]["name"] == "demo-headless"
    assert service["metadata"]["labels"] == {"ray.io/headless-worker-svc": "demo"}
    assert service["spec"] == {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {"ray.io/cluster": "demo", "ray.io/node-type": "worker"},
    }


def test_a_ray_jobs_service_leads_to_the_head_of_its_cluster() -> None:
    service = ray_job_head_service(ray_job(), ray_cluster(head={"template": template(ports=[])}))
    assert service["metadata"]["name"] == "job-head-svc"
    assert service["metadata"]["labels"] == {
        "ray.io/originated-from-cr-name": "job",
        "ray.io/originated-from-crd": "RayJob",
        "ray.io/node-type": "head",
        "ray.io/identifier": "job-head",
    }
    assert service["metadata"]["ownerReferences"][0]["kind"] == "RayJob"
    assert service["spec"]["selector"] == SELECTOR
    assert ports(service)["dashboard"] == 8265


def test_a_ray_jobs_service_never_takes_over_the_address_of_the_users_head_service() -> None:
    own = {
        "spec": {"clusterIP": "10.0.0.9", "type": "NodePort", "ports": [{"name": "x", "port": 1, "nodePort": 30001}]}
    }
    spec = ray_job_head_service(ray_job(), ray_cluster(head={"headService": own}))["spec"]
    assert spec.get("clusterIP") != "10.0.0.9"
    assert all("nodePort" not in port for port in spec["ports"])


@pytest.mark.parametrize(("own", "kind"), [({}, "NodePort"), ({"type": "LoadBalancer"}, "LoadBalancer")])
def test_service_type_is_that_of_the_users_head_service_where_it_has_none(own: dict[str, Any], kind: str) -> None:
    cluster = ray_cluster(head={"headService": {"spec": own}, "serviceType": "NodePort"})
    assert head_service(cluster)["spec"]["type"] == kind


def test_a_ray_jobs_service_is_of_the_kind_of_the_users_head_service() -> None:
    own = {"spec": {"type": "LoadBalancer", "loadBalancerIP": "10.0.0.9", "ports": [{"name": "x", "port": 1}]}}
    spec = ray_job_head_service(ray_job(), ray_cluster(head={"headService": own}))["spec"]
    assert spec["type"] == "LoadBalancer"
    assert "loadBalancerIP" not in spec


def test_a_ray_jobs_service_has_an_address_where_the_users_head_service_does_not_refuse_one() -> None:
    own: dict[str, Any] = {"spec": {"ports": [{"name": "x", "port": 1}]}}
    spec = ray_job_head_service(ray_job(), ray_cluster(head={"headService": own}))["spec"]
    assert "clusterIP" not in spec
    own["spec"]["clusterIP"] = "None"
    assert ray_job_head_service(ray_job(), ray_cluster(head={"headService": own}))["spec"]["clusterIP"] == "None"


@pytest.mark.parametrize(
    ("given", "port"),
    [([{"name": "dashboard", "port": 80}], 80), ([{"name": "other", "port": 80}], 8265), ([], 8265)],
)
def test_the_dashboard_is_found_by_the_name_of_its_port(given: list[dict[str, Any]], port: int) -> None:
    assert dashboard_port(given) == port
