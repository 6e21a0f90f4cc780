"""Kubeconfig files: which cluster and which user a context names.

Read here because the `kubernetes` package, which can do it too, loads for longer than most commands of ours run. As in
kubectl, of several files the first that has a name, or a current context, is believed, and paths in a file are relative
to its folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from muster.yaml_documents import YamlError, yaml_documents


class ConnectionConfigError(Exception):
    """There is no usable kubeconfig, and this is not a pod with a service account."""


class Extension(msgspec.Struct):
    """What somebody else wants to be told of a cluster."""

    name: str = ""
    extension: Any = None


class Cluster(msgspec.Struct, rename="kebab"):
    """An API server, and how to know it. `..._data` is base64."""

    server: str | None = None
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    insecure_skip_tls_verify: bool | None = None
    tls_server_name: str | None = None
    proxy_url: str | None = None
    extensions: list[Extension] | None = None


class Variable(msgspec.Struct):
    """A variable of a plugin's environment."""

    name: str
    value: str


class Exec(msgspec.Struct, rename="camel"):
    """A program that knows the credentials."""

    command: str
    api_version: str
    args: list[str] | None = None
    env: list[Variable] | None = None
    provide_cluster_info: bool | None = None
    interactive_mode: str | None = None
    install_hint: str | None = None


class AuthProvider(msgspec.Struct):
    """What there was before `exec`."""

    name: str = ""


class User(msgspec.Struct, rename="kebab"):
    """With what to identify oneself. `..._data` is base64."""

    token: str | None = None
    token_file: str | None = msgspec.field(default=None, name="tokenFile")
    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    username: str | None = None
    password: str | None = None
    exec: Exec | None = None
    auth_provider: AuthProvider | None = None


class _Context(msgspec.Struct):
    cluster: str = ""
    user: str | None = None


class _NamedCluster(msgspec.Struct):
    name: str
    cluster: Cluster | None = None


class _NamedUser(msgspec.Struct):
    name: str
    user: User | None = None


class _NamedContext(msgspec.Struct):
    name: str
    context: _Context | None = None


class _File(msgspec.Struct, rename="kebab"):
    current_context: str | None = None
    contexts: list[_NamedContext] | None = None
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """A cluster and a user, and the folders of the files that name them."""

    cluster: Cluster
    cluster_folder: Path
    user: User
    user_folder: Path


_Named = TypeVar("_Named", _NamedCluster, _NamedUser, _NamedContext)
_NOWHERE: Final = Path()


def read_kubeconfig(places: str, context: str | None) -> Access:
    """What a context (else the current one) names. `places` are paths as KUBECONFIG has them; some may not exist.

    Raises ConnectionConfigError.
    """
    paths = [Path(place).expanduser() for place in places.split(os.pathsep) if place]
    files = [(path.parent.absolute(), _read(path)) for path in paths if path.exists()]
    if not files:
        raise ConnectionConfigError(f"{places} does not exist")
    chosen = context or next((file.current_context for _, file in files if file.current_context), None)
    if chosen is None:
        raise ConnectionConfigError(f"{places} has no current context")
    _, named = _find(((folder, file.contexts) for folder, file in files), "context", chosen)
    pair = named.context or _Context()
    folder, found = _find(((folder, file.clusters) for folder, file in files), "cluster", pair.cluster)
    cluster = found.cluster or Cluster()
    if not cluster.server:
        raise ConnectionConfigError(f"cluster {pair.cluster!r} names no server")
    if not pair.user:
        return Access(cluster, folder, User(), _NOWHERE)
    user_folder, user = _find(((folder, file.users) for folder, file in files), "user", pair.user)
    return Access(cluster, folder, user.user or User(), user_folder)


def _find(files: Iterable[tuple[Path, list[_Named] | None]], kind: str, name: str) -> tuple[Path, _Named]:
    for folder, some in files:
        for each in some or ():
            if each.name == name:
                return folder, each
    raise ConnectionConfigError(f"there is no {kind} {name!r}")


def _read(path: Path) -> _File:
    try:
        documents = [document for _, document in yaml_documents(path.read_bytes())]
        if not documents:
            raise ConnectionConfigError(f"{path} is empty")
        return msgspec.convert(documents[0], _File)
    except YamlError as error:
        raise ConnectionConfigError(f"{path}: {error.discreet}") from error  # its words may be a token
    except msgspec.ValidationError as error:
        raise ConnectionConfigError(f"{path} can't be used: {error}") from error
    except OSError as error:
        raise ConnectionConfigError(f"{path}: {error.strerror}") from error
