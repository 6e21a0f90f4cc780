"""Where the value of the Authorization header comes from, by what a kubeconfig's user has."""

from __future__ import annotations

import base64
import ssl
from pathlib import Path
from typing import Any, Final, Protocol

from muster.kube.exec_plugin import ExecPlugin
from muster.kube.kubeconfig import Access, ConnectionConfigError

_KNOWN_PROVIDERS: Final = ("gcp", "oidc")


class Credentials(Protocol):
    """Where the present token comes from; `authorization` may block (it reads a file or runs a program)."""

    def authorization(self) -> str | None:
        """The value of the Authorization header; None without a token.

        Raises ConnectionConfigError, OSError, ValueError.
        """
        ...


class Fixed:
    """What does not change."""

    def __init__(self, value: str) -> None:
        self._value = value

    def authorization(self) -> str | None:
        """See Credentials."""
        return self._value


class TokenFile:
    """A token in a file, which somebody else replaces before it expires."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def authorization(self) -> str | None:
        """See Credentials."""
        token = self._path.read_text().strip()  # it may end in a newline, which no header can carry
        if not token:
            raise ConnectionConfigError(f"{self._path} has no token")
        return f"Bearer {token}"


class PackageCredentials:
    """The token of an `auth-provider`, which kubectl has given up and the `kubernetes` package can still renew.

    That is loaded here only: it takes longer than all else.
    """

    def __init__(self, places: str, context: str | None) -> None:
        import kubernetes.client
        import kubernetes.config

        self._package: Any = kubernetes.config
        self._configuration: Any = kubernetes.client.Configuration()
        try:
            self._package.load_kube_config(
                config_file=places, context=context, client_configuration=self._configuration, persist_config=False
            )
        except self._package.ConfigException as error:
            raise ConnectionConfigError(str(error)) from error

    def authorization(self) -> str | None:
        """See Credentials."""
        try:
            if self._configuration.refresh_api_key_hook is not None:
                self._configuration.refresh_api_key_hook(self._configuration)
        except self._package.ConfigException as error:
            raise ConnectionConfigError(str(error)) from error
        token: str | None = self._configuration.api_key.get("BearerToken")
        return token.strip() if token else None


def credentials_of(access: Access, tls: ssl.SSLContext | None, places: str, context: str | None) -> Credentials | None:
    """What the user of a kubeconfig has; None without any, or with a certificate alone.

    `places` and `context` are those that it was read with. Raises ConnectionConfigError.
    """
    user = access.user
    if user.auth_provider is not None:
        if user.auth_provider.name not in _KNOWN_PROVIDERS:
            raise ConnectionConfigError(f"auth-provider {user.auth_provider.name!r} is not known: use an exec plugin")
        return PackageCredentials(places, context)
    if user.token_file:
        return TokenFile(access.user_folder / user.token_file)
    if user.token:
        return Fixed(f"Bearer {user.token.strip()}")
    if user.exec is not None:
        return ExecPlugin(user.exec, access, tls)
    if user.username and user.password is not None:
        both = f"{user.username}:{user.password}".encode()
        return Fixed(f"Basic {base64.b64encode(both).decode()}")
    return None
