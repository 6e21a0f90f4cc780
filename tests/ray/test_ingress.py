"""The Ingress in front of the dashboard."""

from __future__ import annotations

from typing import Any

from muster.ray import labels
from muster.ray.ingress import head_ingress
from tests.ray.ray_objects import ray_cluster, template


def ingress(head: dict[str, Any] | None = None, **cluster: Any) -> dict[str, Any]:
    return head_ingress(ray_cluster(head={"enableIngress": True, **(head or {})}, **cluster))


def path(manifest: dict[str, Any]) -> dict[str, Any]:
    ((only,),) = (rule["http"]["paths"] for rule in manifest["spec"]["rules"])
    return dict(only)


def test_without_options_it_is_the_one_that_kuberay_always_made() -> None:
    made = ingress(metadata={"annotations": {"kubernetes.io/ingress.class": "nginx", "rewrite": "/$1"}})
    assert made["metadata"]["name"] == "demo-head-ingress"
    assert made["metadata"]["labels"] == {
        "ray.io/cluster": "demo",
        "ray.io/identifier": "demo-head",
        "app.kubernetes.io/name": "kuberay",
        "app.kubernetes.io/created-by": "kuberay-operator",
    }
    assert {key for key in made["metadata"]["annotations"] if key != labels.SPEC_HASH} == {"rewrite"}
    assert made["metadata"]["ownerReferences"][0]["uid"] == "uid-1"
    backend = {"service": {"name": "demo-head-svc", "port": {"number": 8265}}}
    assert made["spec"] == {
        "ingressClassName": "nginx",
        "rules": [{"http": {"paths": [{"path": "/demo/(.*)", "pathType": "Exact", "backend": backend}]}}],
    }


def test_with_options_it_is_as_they_say() -> None:
    options = {"host": "ray.example.org", "path": "/x", "pathType": "Exact", "tls": [{"hosts": ["ray.example.org"]}]}
    made = ingress({"ingressOptions": options})
    assert made["spec"]["rules"][0]["host"] == "ray.example.org"
    assert made["spec"]["tls"] == [{"hosts": ["ray.example.org"]}]
    assert (path(made)["path"], path(made)["pathType"]) == ("/x", "Exact")
    assert "ingressClassName" not in made["spec"]


def test_options_that_say_nothing_lead_the_root_to_the_dashboard() -> None:
    made = ingress({"ingressOptions": {}})
    assert (path(made)["path"], path(made)["pathType"]) == ("/", "Prefix")


def test_it_leads_to_the_dashboards_port_of_the_users_own_service() -> None:
    head = {
        "headService": {"metadata": {"name": "mine"}},
        "template": template(ports=[{"name": "dashboard", "containerPort": 9000}]),
    }
    assert path(ingress(head))["backend"] == {"service": {"name": "mine", "port": {"number": 9000}}}


def test_what_kubectl_noted_of_the_cluster_is_not_the_ingresss() -> None:
    made = ingress(metadata={"annotations": {labels.LAST_APPLIED: "{}"}})
    assert set(made["metadata"]["annotations"]) == {labels.SPEC_HASH}


def test_its_hash_tells_what_it_was_made_from() -> None:
    def made_from(manifest: dict[str, Any]) -> str:
        return str(manifest["metadata"]["annotations"][labels.SPEC_HASH])

    assert made_from(ingress()) == made_from(ingress(rayVersion="2.60.0"))
    assert made_from(ingress()) != made_from(ingress({"ingressOptions": {}}))
    assert made_from(ingress()) != made_from(ingress(metadata={"annotations": {"a": "b"}}))
