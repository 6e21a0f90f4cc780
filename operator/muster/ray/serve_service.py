"""The service in front of Ray Serve, for a RayCluster whose user runs Serve in it (no RayService does it for them)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.api.raycluster import RayCluster
from muster.ray import labels, names
from muster.ray.owner import owner_reference
from muster.ray.services import head_ports

Manifest = dict[str, Any]


def wants_serve_service(annotations: Mapping[str, str]) -> bool:
    """Whether the cluster's annotations ask for the service."""
    return annotations.get(labels.ENABLE_SERVE_SERVICE) == "true"


def is_serve_port(name: str) -> bool:
    """Whether a port of the head's Ray container is one of Serve's, by its name."""
    return name == "serve" or name.startswith("serve-")


def serve_service(cluster: RayCluster) -> Manifest:
    """A service that leads to all pods of the cluster, by the ports of Serve that the head declares."""
    name = cluster.metadata.name
    ports = [
        {"name": port["name"], "port": port["port"]} for port in head_ports(cluster) if is_serve_port(port["name"])
    ]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": names.serve_service(name),
            "namespace": cluster.metadata.namespace,
            "labels": {
                labels.ORIGINATED_FROM_NAME: name,
                labels.ORIGINATED_FROM_KIND: RayCluster.definition.kind,
                labels.SERVE: f"{name}-serve",
            },
            "ownerReferences": [owner_reference(cluster)],
        },
        "spec": {
            "type": cluster.spec.head_group_spec.service_type or "ClusterIP",
            "selector": {labels.CLUSTER: name},
            "ports": ports,
        },
    }
