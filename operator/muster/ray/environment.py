"""The environment variables that Ray, its autoscaler and users' scripts expect in the containers of a Ray pod."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from muster.ray import labels
from muster.ray.ray_node import RayNode

KUBERAY_VERSION: Final = "v1.7.0"
"""The KubeRay release whose pods these are, in Ray's usage statistics too."""

Env = dict[str, Any]


def head_address_env(node: RayNode) -> list[Env]:
    """How a container finds the head service, by full name and by short name."""
    return [_literal("FQ_RAY_IP", node.head_fqdn), _literal("RAY_IP", node.head_fqdn.partition(".")[0])]


def ray_container_env(node: RayNode, user: Iterable[Mapping[str, Any]], start_command: str) -> list[Env]:
    """The whole environment of the Ray container: the user's variables first, in their order, then ours.

    Variables that tell the pod who it is are always ours; the others only fill in what the user has not set.
    """
    identity = _identity(node, start_command)
    ours = {variable["name"] for variable in identity}
    kept = [dict(variable) for variable in user if variable.get("name") not in ours]
    given = {variable.get("name") for variable in kept}
    filling = [*_defaults(node), *map(dict, node.option_env)]
    return kept + identity + [variable for variable in filling if variable["name"] not in given]


def _identity(node: RayNode, start_command: str) -> list[Env]:
    own = [
        _from_field("RAY_CLUSTER_NAME", f"metadata.labels['{labels.CLUSTER}']"),
        _from_field("RAY_CLUSTER_NAMESPACE", "metadata.namespace"),
        _from_field("RAY_CLOUD_INSTANCE_ID", "metadata.name"),
        _from_field("RAY_NODE_TYPE_NAME", f"metadata.labels['{labels.GROUP}']"),
        _literal("KUBERAY_GEN_RAY_START_CMD", start_command),
    ]
    if node.is_head:
        tags = f"kuberay_version={KUBERAY_VERSION};kuberay_crd={node.origin}"
        return [*own, _literal("RAY_USAGE_STATS_EXTRA_TAGS", tags)]
    return head_address_env(node) + own


def _defaults(node: RayNode) -> list[Env]:
    variables = {
        "RAY_PORT": node.gcs_port,
        "RAY_ADDRESS": f"127.0.0.1:{node.gcs_port}" if node.is_head else node.gcs_address,
        "RAY_USAGE_STATS_KUBERAY_IN_USE": "1",
        "RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE": "1",
    }
    return [_literal(name, value) for name, value in variables.items()]


def _literal(name: str, value: str) -> Env:
    return {"name": name, "value": value}


def _from_field(name: str, path: str) -> Env:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
