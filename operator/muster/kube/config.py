"""How to reach the API server and with which credentials.

They come from a kubeconfig (client certificates, tokens, exec plugins) or, in a pod, from the service account's files.
Tokens rotate, so a connection asks for the present one every few seconds of use: a file is read again then, and an exec
plugin run again when what it gave is about to expire.
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
from typing import Final
from urllib.parse import urlsplit

from muster.kube import service_account
from muster.kube.client_certificates import content_or_path, load_identity
from muster.kube.credentials import Credentials, TokenFile, credentials_of
from muster.kube.errors import Unreachable
from muster.kube.kubeconfig import Access, ConnectionConfigError, read_kubeconfig

__all__ = ["Connection", "ConnectionConfigError", "Credentials", "load_connection"]

_ASK_AGAIN_AFTER: Final = 10.0
"""Seconds for which a token is used without asking whether it is still the present one."""


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
        except (ConnectionConfigError, OSError, ValueError) as error:
            raise Unreachable(f"the credentials can't be read: {error}") from error
        self._asked = self.clock()


def load_connection(kubeconfig: Path | None = None, context: str | None = None) -> Connection:
    """The connection that a kubeconfig (this one, else KUBECONFIG's, else ~/.kube/config) names.

    Where neither a kubeconfig nor a context is asked for and none is usable, a pod's service account is used. Raises
    ConnectionConfigError with the reason.
    """
    places = str(kubeconfig or os.environ.get("KUBECONFIG") or _home() / ".kube" / "config")
    try:
        try:
            return _from_kubeconfig(places, context)
        except ConnectionConfigError as error:
            if kubeconfig is not None or context is not None:
                raise
            try:
                return _in_pod()
            except ConnectionConfigError as inside:
                raise ConnectionConfigError(f"no usable kubeconfig ({error}), and not in a pod ({inside})") from inside
    except (OSError, ValueError) as error:
        raise ConnectionConfigError(str(error)) from error


def _from_kubeconfig(places: str, context: str | None) -> Connection:
    access = read_kubeconfig(places, context)
    cluster = access.cluster
    server = (cluster.server or "").rstrip("/")
    tls = _tls(server, access)
    return Connection(
        server=server,
        ssl=tls,
        credentials=credentials_of(access, tls, places, context),
        proxy=_proxy(server, cluster.proxy_url),
        server_name=cluster.tls_server_name,
    )


def _in_pod() -> Connection:
    server, token, authority = service_account.server(), service_account.token_file(), service_account.authority_file()
    context = _context(authority)
    return Connection(server=server, ssl=context, credentials=TokenFile(token), proxy=_proxy(server, None))


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # the user of a container may be a bare number, without a home
        return Path("/")


def _tls(server: str, access: Access) -> ssl.SSLContext | None:
    if not server.startswith("https"):
        return None
    cluster = access.cluster
    context = _context(
        content_or_path(cluster.certificate_authority_data, cluster.certificate_authority, access.cluster_folder)
    )
    load_identity(context, access)
    if cluster.insecure_skip_tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _context(authority: bytes | Path | None) -> ssl.SSLContext:
    """Believes what the authority (PEM) vouches for; without one, what this machine believes."""
    if isinstance(authority, bytes):
        context = ssl.create_default_context(cadata=authority.decode())
    else:
        context = ssl.create_default_context(cafile=authority)
    # Clusters in the wild carry CA certificates that lack what Python's strict mode (3.13 and later) asks for.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _proxy(server: str, named: str | None) -> str | None:
    """The proxy of the kubeconfig or of the environment, unless NO_PROXY excludes the server."""
    parts = urlsplit(server)
    surroundings = urllib.request.getproxies()
    proxy = named or surroundings.get(parts.scheme) or surroundings.get("all")
    return None if not proxy or urllib.request.proxy_bypass(parts.netloc) else proxy
