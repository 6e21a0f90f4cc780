"""One Ray node to be: what its pod's containers, volumes and command all need to know about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

from muster.api.raycluster import RayCluster, WorkerGroupSpec
from muster.ray import labels, names
from muster.ray.authentication import token_env
from muster.ray.autoscaler import said_of_autoscaler
from muster.ray.fault_tolerance import head_env, head_start_params, worker_env

GCS_PORT: Final = 6379
CLIENT_PORT: Final = 10001
DASHBOARD_PORT: Final = 8265
METRICS_PORT: Final = 8080
SERVE_PORT: Final = 8000
DASHBOARD_AGENT_PORT: Final = 52365


@dataclass(frozen=True, slots=True)
class RayNode:
    """A head or worker node of a cluster, as its group describes it.

    `gcs_port` and `head_fqdn` are where every node finds the head. `origin` is the kind that the user wrote:
    RayCluster, RayJob or RayService. `option_env` are variables that options of the cluster ask for. `autoscaler` is
    what the spec says of the autoscaler that shows in this pod.
    """

    node_type: str
    group: str
    template: Mapping[str, Any]
    head_fqdn: str
    gcs_port: str
    ray_version: str = ""
    autoscaling: bool = False
    origin: str = "RayCluster"
    start_params: Mapping[str, str] = field(default_factory=dict)
    group_resources: Mapping[str, str] = field(default_factory=dict)
    group_labels: Mapping[str, str] = field(default_factory=dict)
    option_env: Sequence[Mapping[str, Any]] = ()
    autoscaler: Mapping[str, Any] | None = None

    @classmethod
    def head(cls, cluster: RayCluster, cluster_domain: str) -> Self:
        """The head of the cluster."""
        group = cluster.spec.head_group_spec
        return cls(
            node_type=labels.HEAD,
            group=labels.HEAD_GROUP,
            template=group.template,
            start_params=head_start_params(cluster),
            group_resources=group.resources or {},
            group_labels=group.labels or {},
            option_env=[*token_env(cluster), *head_env(cluster)],
            autoscaler=said_of_autoscaler(cluster.spec, is_head=True),
            **_shared(cluster, cluster_domain),
        )

    @classmethod
    def worker(cls, cluster: RayCluster, group: WorkerGroupSpec, cluster_domain: str) -> Self:
        """A worker of this group of the cluster."""
        return cls(
            node_type=labels.WORKER,
            group=group.group_name,
            template=group.template,
            start_params=group.ray_start_params or {},
            group_resources=group.resources or {},
            group_labels=group.labels or {},
            option_env=[*token_env(cluster), *worker_env(cluster)],
            autoscaler=said_of_autoscaler(cluster.spec, is_head=False),
            **_shared(cluster, cluster_domain),
        )

    @property
    def is_head(self) -> bool:
        """Whether this is the head node."""
        return self.node_type == labels.HEAD

    @property
    def gcs_address(self) -> str:
        """Where a worker finds the head's control service."""
        return f"{self.head_fqdn}:{self.gcs_port}"

    @property
    def container(self) -> dict[str, Any]:
        """The template's Ray container: the first one."""
        first: dict[str, Any] = self.template["spec"]["containers"][0]
        return first


def _shared(cluster: RayCluster, cluster_domain: str) -> dict[str, Any]:
    head = cluster.spec.head_group_spec
    service = names.head_service(cluster.metadata.name, head.head_service)
    return {
        "head_fqdn": names.service_fqdn(service, cluster.metadata.namespace, cluster_domain),
        "gcs_port": (head.ray_start_params or {}).get("port") or str(GCS_PORT),
        "ray_version": cluster.spec.ray_version or "",
        "autoscaling": cluster.spec.autoscaling,
        "origin": cluster.metadata.labels.get(labels.ORIGINATED_FROM_KIND) or "RayCluster",
    }
