"""A pod's own account: the API server's address in the environment, the token and the authority in files."""

from __future__ import annotations

import os
from pathlib import Path

from muster.kube.kubeconfig import ConnectionConfigError

FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def token_file() -> Path:
    """Where the token is; it is replaced while the pod runs."""
    return _file("token")


def authority_file() -> Path:
    """Where the certificate is that vouches for the API server."""
    return _file("ca.crt")


def server() -> str:
    """The URL of the API server. Raises ConnectionConfigError outside of a pod."""
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{each}") for each in ("HOST", "PORT"))
    if not host or not port:
        raise ConnectionConfigError("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def _file(name: str) -> Path:
    path = FOLDER / name
    if not path.is_file():
        raise ConnectionConfigError(f"{path} does not exist")
    return path
