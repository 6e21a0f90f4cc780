"""How to reach the API server and with which credentials.

The `kubernetes` package reads them: a kubeconfig (client certificates, tokens, exec plugins) or, in a pod, the service
account's files. Tokens rotate, so a connection asks the package for the present one every few seconds of use: it reads
the service account's file again after a minute, and runs an exec plugin again when its token is about to expire.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import kubernetes.client
import kubernetes.config

from muster.kube.errors import Unreachable

_ASK_AGAIN_AFTER: Final = 10.0
"""Seconds for which a token is used without asking the package whether it is still the present one."""


class ConnectionConfigError(Exception):
    """There is no usable kubeconfig, and this is not a pod with a service account."""


class Credentials(Protocol):
    """Where the present token comes from; `authorization` may block (it reads a file or runs a program)."""

    def authorization(self) -> str | None:
        """The value of the Authorization header; None without a token."""
        ...


class PackageCredentials:
    """The token that the `kubernetes` package keeps in its configuration object, renewed by its own hook."""

    def __init__(self, configuration: Any) -> None:
        self._configuration = configuration

    def authorization(self) -> str | None:
        """See Credentials."""
        if self._configuration.refresh_api_key_hook is not None:
            self._configuration.refresh_api_key_hook(self._configuration)
        token: str | None = self._configuration.api_key.get("BearerToken")
        # The service account's file may end in a newline, which no header can carry.
        return token.strip() if token else None


@dataclass(slots=True)
class Connection:
    """An API server: its URL, the TLS context (None for plain http), and where the token comes from.

    `proxy` is the URL of an HTTP proxy on the way, `server_name` the name in the server's certificate where it differs
    from the URL's host.
    """

    server: str
    ssl: ssl.SSLContext | None = None
    credentials: Credentials | None = None
    proxy: str | None = None
    server_name: str | None = None
    clock: Callable[[], float] = time.monotonic
    # Not part of a copy (`dataclasses.replace`): the lock belongs to one event loop.
    _token: str | None = field(default=None, init=False, repr=False)
    _asked: float | None = field(default=None, init=False, repr=False)
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock, init=False, repr=False)

    async def authorization(self) -> str | None:
        """The value of the Authorization header for a request that starts now; None without a token.

        Raises Unreachable when the credentials can't be read: the request was not sent.
        """
        if self.credentials is None or self._is_fresh():
            return self._token
        async with self._asking:
            if not self._is_fresh():
                await self._ask(self.credentials)
        return self._token

    def _is_fresh(self) -> bool:
        return self._asked is not None and self.clock() - self._asked < _ASK_AGAIN_AFTER

    async def _ask(self, credentials: Credentials) -> None:
        try:
            self._token = await asyncio.to_thread(credentials.authorization)
        except (kubernetes.config.ConfigException, OSError, ValueError) as error:
            raise Unreachable(f"the credentials can't be read: {error}") from error
        self._asked = self.clock()


def load_connection(kubeconfig: Path | None = None, context: str | None = None) -> Connection:
    """The connection that a kubeconfig (this one, else KUBECONFIG's, else ~/.kube/config) names.

    Where neither a kubeconfig nor a context is asked for and none is found, a pod's service account is used. Raises
    ConnectionConfigError with the reason.
    """
    configuration: Any = kubernetes.client.Configuration()
    try:
        _fill(configuration, kubeconfig, context)
        return Connection(
            server=str(configuration.host).rstrip("/"),
            ssl=_tls(configuration),
            credentials=PackageCredentials(configuration) if configuration.api_key else None,
            proxy=_proxy(configuration),
            server_name=configuration.tls_server_name,
        )
    except (kubernetes.config.ConfigException, OSError, ValueError) as error:
        raise ConnectionConfigError(str(error)) from error


def _fill(configuration: Any, kubeconfig: Path | None, context: str | None) -> None:
    """Let the package fill its own configuration object."""
    package: Any = kubernetes.config
    place = str(kubeconfig or os.environ.get("KUBECONFIG") or _home() / ".kube" / "config")
    try:
        package.load_kube_config(
            config_file=place, context=context, client_configuration=configuration, persist_config=False
        )
    except package.ConfigException as error:
        if kubeconfig is not None or context is not None:
            raise
        try:
            package.load_incluster_config(client_configuration=configuration)
        except package.ConfigException as inside:
            raise ConnectionConfigError(f"no usable kubeconfig ({error}), and not in a pod ({inside})") from inside


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # the user of a container may be a bare number, without a home
        return Path("/")


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


def _proxy(configuration: Any) -> str | None:
    """The proxy of the kubeconfig or of the environment, unless NO_PROXY excludes the server."""
    host = urlsplit(str(configuration.host)).netloc
    if not configuration.proxy or urllib.request.proxy_bypass(host):
        return None
    return str(configuration.proxy)
