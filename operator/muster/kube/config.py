"""How to reach the API server and with which credentials.

The `kubernetes` package reads them: a kubeconfig (client certificates, tokens, exec plugins) or, in a pod, the service
account's files. This module only asks it for the present token before a request, because both kinds rotate: the
package reads the service account's file again after a minute, and runs the exec plugin again when its token expired.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import kubernetes.client
import kubernetes.config


class ConnectionConfigError(Exception):
    """There is no usable kubeconfig, and this is not a pod with a service account."""


class _Refreshable(Protocol):
    """The part of the package's Configuration that changes while we run."""

    api_key: dict[str, str]
    refresh_api_key_hook: Callable[[Any], None] | None


@dataclass(slots=True)
class Connection:
    """An API server: its URL, the TLS context (None for plain http), and where the token comes from.

    `proxy` is the URL of an HTTP proxy on the way, `server_name` the name in the server's certificate where it differs
    from the URL's host.
    """

    server: str
    ssl: ssl.SSLContext | None = None
    credentials: _Refreshable | None = None
    proxy: str | None = None
    server_name: str | None = None
    _refreshing: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    async def authorization(self) -> str | None:
        """The value of the Authorization header for the next request, renewed when it is due; None without a token."""
        if self.credentials is None:
            return None
        if self.credentials.refresh_api_key_hook is not None:
            async with self._refreshing:
                # The package reads a file or runs a program here, so it must not hold up the loop.
                await asyncio.to_thread(self.credentials.refresh_api_key_hook, self.credentials)
        return self.credentials.api_key.get("BearerToken")


def load_connection(kubeconfig: Path | None = None, context: str | None = None) -> Connection:
    """The connection that a kubeconfig (or KUBECONFIG, or ~/.kube/config) names; in a pod, the service account's.

    Without an explicit kubeconfig or context, a pod's service account comes first only where no kubeconfig exists.
    Raises ConnectionConfigError with the reason.
    """
    configuration = kubernetes.client.Configuration()
    try:
        _fill(configuration, kubeconfig, context)
        return Connection(
            server=str(configuration.host).rstrip("/"),
            ssl=_tls(configuration),
            credentials=configuration if configuration.api_key else None,
            proxy=configuration.proxy or None,
            server_name=getattr(configuration, "tls_server_name", None),
        )
    except (kubernetes.config.ConfigException, OSError, ValueError) as error:
        raise ConnectionConfigError(str(error)) from error


def _fill(configuration: Any, kubeconfig: Path | None, context: str | None) -> None:
    """Let the package fill its own configuration object."""
    try:
        kubernetes.config.load_kube_config(
            config_file=str(kubeconfig) if kubeconfig else None, context=context, client_configuration=configuration
        )
    except kubernetes.config.ConfigException as error:
        if kubeconfig is not None or context is not None:
            raise
        try:
            kubernetes.config.load_incluster_config(client_configuration=configuration)
        except kubernetes.config.ConfigException as inside:
            raise ConnectionConfigError(f"no usable kubeconfig ({error}) and not in a pod ({inside})") from inside


def _tls(configuration: Any) -> ssl.SSLContext | None:
    if not str(configuration.host).startswith("https"):
        return None
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert or None)
    # Clusters in the wild carry CA certificates that lack what Python's strict mode (3.13 and later) asks for.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file or None)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
