"""Where a controller finds the dashboard of a Ray head.

Inside the cluster, the head service's name is enough. An operator that runs outside needs another way (a pod's address,
the API server's proxy), so the way is passed in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from muster.ray.jobs_api import RayJobsClient
from muster.ray.names import service_fqdn
from muster.ray.ray_node import DASHBOARD_PORT


@dataclass(frozen=True, slots=True)
class Dashboard:
    """The dashboard of one cluster: its head service, and the port there."""

    namespace: str
    service: str
    port: int = DASHBOARD_PORT


class DashboardResolver(Protocol):
    """Knows the way to dashboards."""

    def address(self, dashboard: Dashboard) -> str:
        """Host and port by which pods of the cluster reach it: what `status.dashboardURL` says, without a scheme."""
        ...

    def connect(self, dashboard: Dashboard) -> RayJobsClient:
        """A client for it, to be used as an async context manager."""
        ...


class ServiceDashboards:
    """The way from inside the cluster: the head service's DNS name. `timeout` is in seconds, for each call."""

    def __init__(self, cluster_domain: str = "cluster.local", timeout: float = 5.0) -> None:
        self._cluster_domain = cluster_domain
        self._timeout = timeout

    def address(self, dashboard: Dashboard) -> str:
        """`<service>.<namespace>.svc.<domain>:<port>`."""
        return f"{service_fqdn(dashboard.service, dashboard.namespace, self._cluster_domain)}:{dashboard.port}"

    def connect(self, dashboard: Dashboard) -> RayJobsClient:
        """A client that talks plain HTTP to the service."""
        return RayJobsClient(f"http://{self.address(dashboard)}", timeout=self._timeout)
