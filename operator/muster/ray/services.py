"""The services of a Ray cluster: the head's, one that gives worker hosts their names, and the RayJob's own.

Pure: manifests come out. A head service is made once and belongs to its user from then on.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

from muster.api.raycluster import RayCluster
from muster.api.rayjob import RayJob
from muster.ray import labels, names
from muster.ray.owner import owner_reference
from muster.ray.ray_node import CLIENT_PORT, DASHBOARD_PORT, GCS_PORT, METRICS_PORT, SERVE_PORT

Manifest = dict[str, Any]
Port = dict[str, Any]

_DEFAULT_PORTS: Final = {
    "client": CLIENT_PORT,
    "dashboard": DASHBOARD_PORT,
    "gcs-server": GCS_PORT,
    "metrics": METRICS_PORT,
    "serve": SERVE_PORT,
}

_ADDRESSES: Final = frozenset({"clusterIP", "clusterIPs", "externalIPs", "loadBalancerIP", "healthCheckNodePort"})


def head_service(cluster: RayCluster, *, with_cluster_ip: bool = False) -> Manifest:
    """The service that leads to the head pod.

    Headless, so that its name resolves to the pod itself and before the pod is ready; with an address of its own when
    the group asks for another type, or the operator's configuration for `with_cluster_ip`. What the user's own
    `headService` says is kept, but for selector and namespace.
    """
    group = cluster.spec.head_group_spec
    if group.head_service is not None:
        return _user_head_service(cluster, group.head_service)
    return _service(
        cluster,
        name=names.head_service(cluster.metadata.name),
        labels_=head_selector(cluster),
        annotations=cluster.spec.head_service_annotations or {},
        spec=_spec_of_type(cluster, head_ports(cluster), with_cluster_ip),
    )


def head_selector(cluster: RayCluster) -> dict[str, str]:
    """The labels of the head pod that its service selects by; the service carries them too."""
    group = cluster.spec.head_group_spec
    template = group.template.get("metadata") or {}
    name = cluster.metadata.name
    usual = {
        labels.IDENTIFIER: names.identifier(name, labels.HEAD),
        labels.APP_NAME: labels.APPLICATION,
        labels.CREATED_BY: labels.OPERATOR,
    }
    # As on the pod: what the user has written wins, an empty value too.
    written = {**(template.get("labels") or {}), **(group.labels or {})}
    selected = {key: written.get(key, value) for key, value in usual.items()}
    return {labels.CLUSTER: name, labels.NODE_TYPE: labels.HEAD, **selected}


def head_ports(cluster: RayCluster) -> list[Port]:
    """The ports of the head's Ray container, or Ray's usual ones when it declares none; sorted by name.

    A number that is declared twice has one port, since the API server takes none twice: under the name that others
    look for, if it has one.
    """
    container = cluster.spec.head_group_spec.template["spec"]["containers"][0]
    declared = {
        port.get("name") or f"{port['containerPort']}-port": port["containerPort"]
        for port in container.get("ports") or []
    }
    ports = declared or _DEFAULT_PORTS
    if METRICS_PORT not in ports.values():
        ports = {"metrics": METRICS_PORT} | ports
    name_of: dict[int, str] = {}
    for name in sorted(ports, key=lambda name: (name not in _DEFAULT_PORTS, name)):
        name_of.setdefault(ports[name], name)
    by_name = sorted((name, number) for number, name in name_of.items())
    return [{"name": name, "port": number, "appProtocol": "tcp"} for name, number in by_name]


def dashboard_port(ports: list[Port]) -> int:
    """The port named `dashboard` among a service's ports, else Ray's usual one."""
    return next((int(port["port"]) for port in ports if port.get("name") == "dashboard"), DASHBOARD_PORT)


def headless_worker_service(cluster: RayCluster) -> Manifest | None:
    """The service that gives the hosts of multi-host replicas their names; None when no group has any."""
    if all(group.hosts == 1 for group in cluster.spec.worker_groups):
        return None
    name = cluster.metadata.name
    return _service(
        cluster,
        name=names.headless_service(name),
        labels_={labels.HEADLESS_WORKER_SERVICE: name},
        annotations={},
        spec={
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {labels.CLUSTER: name, labels.NODE_TYPE: labels.WORKER},
        },
    )


def ray_job_head_service(job: RayJob, cluster: RayCluster, *, with_cluster_ip: bool = False) -> Manifest:
    """The RayJob's own service, which leads to the head of the cluster that the job has at the time.

    It is like the cluster's head service, but for its addresses: those can be taken only once.
    """
    head = head_service(cluster, with_cluster_ip=with_cluster_ip)["spec"]
    spec = {key: value for key, value in head.items() if key not in _ADDRESSES or value == "None"}
    spec["ports"] = [{key: value for key, value in port.items() if key != "nodePort"} for port in head["ports"]]
    name = job.metadata.name
    return _service(
        job,
        name=names.ray_job_head_service(name),
        labels_={
            labels.ORIGINATED_FROM_NAME: name,
            labels.ORIGINATED_FROM_KIND: "RayJob",
            labels.NODE_TYPE: labels.HEAD,
            labels.IDENTIFIER: names.identifier(name, labels.HEAD),
        },
        annotations={},
        spec=spec,
    )


def _spec_of_type(cluster: RayCluster, ports: list[Port], with_cluster_ip: bool) -> dict[str, Any]:
    kind = cluster.spec.head_group_spec.service_type or "ClusterIP"
    spec: dict[str, Any] = {"type": kind, "selector": head_selector(cluster), "ports": ports}
    if kind == "ClusterIP" and not with_cluster_ip:
        spec |= {"clusterIP": "None", "publishNotReadyAddresses": True}
    return spec


def _user_head_service(cluster: RayCluster, user: Mapping[str, Any]) -> Manifest:
    metadata: Mapping[str, Any] = user.get("metadata") or {}
    spec = copy.deepcopy(dict(user.get("spec") or {}))
    spec["selector"] = head_selector(cluster)
    if not spec.get("type") and cluster.spec.head_group_spec.service_type:
        spec["type"] = cluster.spec.head_group_spec.service_type
    spec["ports"] = _with_head_ports(spec.get("ports") or [], head_ports(cluster))
    return _service(
        cluster,
        name=names.head_service(cluster.metadata.name, user),
        labels_={**(metadata.get("labels") or {}), **head_selector(cluster)},
        annotations={**(metadata.get("annotations") or {}), **(cluster.spec.head_service_annotations or {})},
        spec=spec,
    )


def _with_head_ports(user: list[Port], ours: list[Port]) -> list[Port]:
    """The user's ports, then those of ours that clash with none: the API server refuses a name or number twice."""
    taken_names = {port.get("name") for port in user}
    taken_numbers = {port.get("port") for port in user if port.get("protocol") in (None, "TCP")}
    added = [port for port in ours if port["name"] not in taken_names and port["port"] not in taken_numbers]
    named = [port if port.get("name") or not added else {**port, "name": f"{port['port']}-port"} for port in user]
    return [*named, *added]


def _service(
    owner: RayCluster | RayJob,
    *,
    name: str,
    labels_: dict[str, str],
    annotations: Mapping[str, str],
    spec: dict[str, Any],
) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name,
            "namespace": owner.metadata.namespace,
            "labels": labels_,
            "annotations": dict(annotations),
            "ownerReferences": [owner_reference(owner)],
        },
        "spec": spec,
    }
