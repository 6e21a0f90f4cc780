"""Where a controller finds the dashboard of a Ray head.

What users write does not say whom the operator talks to. A head service is its user's: made into an ExternalName, or
left without a selector, its name leads wherever the user likes, also to the head of another tenant behind a
NetworkPolicy that lets in only the operator. So Muster itself goes to the address that the head pod's kubelet reports;
the service's name is for users and for the submitter, which runs in their namespace.

An operator that runs outside of the cluster needs another way (the API server's proxy), so the way is passed in.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Protocol

import httpx

from muster.kube.config import Connection, ConnectionConfigError
from muster.kube.resource import PODS
from muster.ray.jobs_api import DashboardUnreachable, RayJobsClient
from muster.ray.names import service_fqdn
from muster.ray.ray_node import DASHBOARD_PORT


@dataclass(frozen=True, slots=True)
class Dashboard:
    """The dashboard of one cluster: its head service, the port, and address and name of its head pod if there is one.

    `token` is what it asks for, if anything.
    """

    namespace: str
    service: str
    port: int = DASHBOARD_PORT
    head_ip: str | None = None
    head_pod: str | None = None
    token: str | None = field(default=None, repr=False)


class DashboardResolver(Protocol):
    """Knows the way to dashboards."""

    def address(self, dashboard: Dashboard) -> str:
        """Host and port by which pods of the cluster reach it: what `status.dashboardURL` says, without a scheme."""
        ...

    def connect(self, dashboard: Dashboard) -> RayJobsClient:
        """A client for it, to be used as an async context manager. Raises DashboardUnreachable."""
        ...


class PodDashboards:
    """The way from inside the cluster. `timeout` is in seconds, for each call."""

    def __init__(self, cluster_domain: str = "cluster.local", timeout: float = 5.0) -> None:
        self._cluster_domain = cluster_domain
        self._timeout = timeout

    def address(self, dashboard: Dashboard) -> str:
        """`<service>.<namespace>.svc.<domain>:<port>`."""
        return f"{service_fqdn(dashboard.service, dashboard.namespace, self._cluster_domain)}:{dashboard.port}"

    def connect(self, dashboard: Dashboard) -> RayJobsClient:
        """A client that talks plain HTTP to the head pod, in the name of the service: a mesh knows it by that."""
        if dashboard.head_ip is None:
            raise DashboardUnreachable("the head pod has no address")
        host = f"[{dashboard.head_ip}]" if ":" in dashboard.head_ip else dashboard.head_ip
        headers = {"Host": self.address(dashboard)}
        url = f"http://{host}:{dashboard.port}"
        return RayJobsClient(url, dashboard.token, timeout=self._timeout, headers=headers)


class ProxiedDashboards:
    """The way through the API server, for an operator outside of the cluster: to the head pod, by its name.

    Its account needs `get` and `create` on `pods/proxy`. `timeout` is in seconds, for each call. Raises
    ConnectionConfigError for an API server that is itself behind a proxy.
    """

    def __init__(self, connection: Connection, cluster_domain: str = "cluster.local", timeout: float = 10.0) -> None:
        if connection.proxy or connection.server_name:
            message = "dashboards can't be reached through an API server with a proxy-url or a tls-server-name"
            raise ConnectionConfigError(message)
        self._connection = connection
        self._inside = PodDashboards(cluster_domain)
        self._timeout = timeout

    def address(self, dashboard: Dashboard) -> str:
        """The same as from inside: it is the submitter's way, and users'."""
        return self._inside.address(dashboard)

    def connect(self, dashboard: Dashboard) -> RayJobsClient:
        """A client that asks the API server to pass its requests on."""
        if dashboard.head_pod is None or dashboard.head_ip is None:
            raise DashboardUnreachable("the head pod has no address")
        # A port in the name of a pod is the API server's own way to write it, so it must not be escaped.
        pod = PODS.path(dashboard.namespace, dashboard.head_pod)
        return RayJobsClient(
            f"{self._connection.server}{pod}:{dashboard.port}/proxy",
            dashboard.token,
            timeout=self._timeout,
            verify=self._connection.ssl,
            auth=_ApiServerToken(self._connection),
            behind_api_server=True,
        )


class _ApiServerToken(httpx.Auth):
    """Muster's own credentials, as they are at each request. The API server does not pass them on."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        authorization = await self._connection.authorization()
        if authorization:
            request.headers["Authorization"] = authorization
        yield request
