"""The service in front of Ray Serve."""

from __future__ import annotations

from typing import Any

import pytest

from muster.ray.serve_service import serve_service, wants_serve_service
from muster.ray.validation import validate_ray_cluster
from tests.ray.ray_objects import ray_cluster, template

ASKED = {"annotations": {"ray.io/enable-serve-service": "true"}}


@pytest.mark.parametrize(("value", "wanted"), [(None, False), ("", False), ("false", False), ("true", True)])
def test_it_is_asked_for_by_an_annotation(value: str | None, wanted: bool) -> None:
    assert wants_serve_service({} if value is None else {"ray.io/enable-serve-service": value}) is wanted


def test_it_leads_to_all_pods_and_looks_as_kuberays_does() -> None:
    service = serve_service(ray_cluster(head={"serviceType": "NodePort"}))
    assert service["metadata"]["name"] == "demo-serve-svc"
    assert service["metadata"]["labels"] == {
        "ray.io/originated-from-cr-name": "demo",
        "ray.io/originated-from-crd": "RayCluster",
        "ray.io/serve": "demo-serve",
    }
    assert service["metadata"]["ownerReferences"][0]["uid"] == "uid-1"
    assert service["spec"] == {
        "type": "NodePort",
        "selector": {"ray.io/cluster": "demo"},
        "ports": [{"name": "serve", "port": 8000}],
    }


def port(name: str, number: int) -> dict[str, Any]:
    return {"name": name, "containerPort": number}


def test_only_the_ports_of_serve_are_its_ports() -> None:
    ports = [port("serve", 9000), port("serve-grpc", 9001), port("server", 9002), port("dashboard", 8265)]
    service = serve_service(ray_cluster(head={"template": template(ports=ports)}))
    assert [one["name"] for one in service["spec"]["ports"]] == ["serve", "serve-grpc"]
    assert service["spec"]["type"] == "ClusterIP"


@pytest.mark.parametrize(
    ("ports", "refused"), [([], False), ([port("serve", 8000)], False), ([port("dashboard", 8265)], True)]
)
def test_it_needs_a_port(ports: list[dict[str, Any]], refused: bool) -> None:
    head = {"template": template(ports=ports)}
    told = [str(problem) for problem in validate_ray_cluster(ray_cluster(head=head, metadata=ASKED))]
    assert len(told) == refused
    assert not refused or told[0].startswith("metadata.annotations[ray.io/enable-serve-service]: needs a port")
    assert validate_ray_cluster(ray_cluster(head=head)) == []
