"""A kubeconfig's `exec`: a program (`aws eks get-token`, `gke-gcloud-auth-plugin`, ...) that knows the credentials.

The protocol is client.authentication.k8s.io: what it should know is in its environment, its answer is JSON on stdout.
What it has is used until shortly before it expires.
"""

from __future__ import annotations

import base64
import json
import os
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from muster.kube.client_certificates import content_or_path, load_pem
from muster.kube.kubeconfig import Access, ConnectionConfigError, Exec

_EARLY: Final = 300.0
"""Seconds before it expires that a credential is asked for anew."""
_EXTENSION: Final = "client.authentication.k8s.io/exec"


class _Status(msgspec.Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: str | None = None


class _Answer(msgspec.Struct):
    status: _Status | None = None


class ExecPlugin:
    """Credentials; see `config.Credentials`. A certificate goes into the connection's TLS context."""

    def __init__(
        self, plugin: Exec, access: Access, tls: ssl.SSLContext | None, now: Callable[[], float] = time.time
    ) -> None:
        self._plugin = plugin
        self._access = access
        self._tls = tls
        self._now = now
        self._lock = threading.Lock()  # connections of several threads share it
        self._asked = False
        self._token: str | None = None
        self._expires: float | None = None

    def authorization(self) -> str | None:
        """See Credentials. Raises ConnectionConfigError where the plugin has nothing."""
        with self._lock:
            if not self._asked or (self._expires is not None and self._now() > self._expires - _EARLY):
                self._take(self._ask())
                self._asked = True
            return f"Bearer {self._token}" if self._token else None

    def _take(self, status: _Status) -> None:
        if not status.token and not status.client_certificate_data:
            raise self._failed("it has neither a token nor a certificate")
        if status.client_certificate_data and self._tls is not None:
            if not status.client_key_data:
                raise self._failed("it has a certificate and no key")
            load_pem(self._tls, status.client_certificate_data.encode(), status.client_key_data.encode())
        self._token = status.token
        expires = status.expiration_timestamp
        try:
            self._expires = datetime.fromisoformat(expires).timestamp() if expires else None
        except ValueError as error:
            raise self._failed(f"it expires at {expires!r}") from error

    def _ask(self) -> _Status:
        interactive = self._interactive()
        info = {"apiVersion": self._plugin.api_version, "kind": "ExecCredential", "spec": self._spec(interactive)}
        environment = {each.name: each.value for each in self._plugin.env or ()}
        try:
            done = subprocess.run(  # noqa: S603 - what the user's own kubeconfig names
                [self._command(), *(self._plugin.args or ())],
                stdin=None if interactive else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=None if interactive else subprocess.PIPE,
                env={**os.environ, **environment, "KUBERNETES_EXEC_INFO": json.dumps(info)},
                check=False,
            )
        except OSError as error:
            hint = f" ({self._plugin.install_hint})" if self._plugin.install_hint else ""
            raise self._failed(f"{error.strerror}{hint}") from error
        if done.returncode:
            said = (done.stderr or b"").decode(errors="replace").strip()
            raise self._failed(f"it ended with status {done.returncode}" + (f": {said}" if said else ""))
        try:
            return msgspec.json.decode(done.stdout, type=_Answer).status or _Status()
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise self._failed(f"its answer can't be read: {error}") from error

    def _interactive(self) -> bool:
        terminal = sys.stdin is not None and sys.stdin.isatty()
        if self._plugin.interactive_mode == "Always" and not terminal:
            raise self._failed("it needs a terminal to ask at")
        return terminal and self._plugin.interactive_mode != "Never"

    def _command(self) -> str:
        """As kubectl has it: a name is looked for in PATH, a path is relative to the kubeconfig."""
        command = self._plugin.command
        return str(self._access.user_folder / Path(command)) if os.sep in command else command

    def _spec(self, interactive: bool) -> dict[str, Any]:
        spec: dict[str, Any] = {"interactive": interactive}
        if self._plugin.provide_cluster_info:
            spec["cluster"] = self._cluster()
        return spec

    def _cluster(self) -> dict[str, Any]:
        cluster = self._access.cluster
        found = content_or_path(
            cluster.certificate_authority_data, cluster.certificate_authority, self._access.cluster_folder
        )
        authority = found.read_bytes() if isinstance(found, Path) else found
        told = {
            "server": cluster.server,
            "tls-server-name": cluster.tls_server_name,
            "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
            "certificate-authority-data": base64.b64encode(authority).decode() if authority else None,
            "proxy-url": cluster.proxy_url,
            "config": next((each.extension for each in cluster.extensions or () if each.name == _EXTENSION), None),
        }
        return {name: value for name, value in told.items() if value is not None}

    def _failed(self, problem: str) -> ConnectionConfigError:
        return ConnectionConfigError(f"plugin {self._plugin.command}: {problem}")
