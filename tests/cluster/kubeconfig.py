"""Kubeconfig files that hold everything in themselves, so that they may be copied anywhere."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.certificates import KeyPair, write_secret


def write_kubeconfig(path: Path, *, server: str, authority: bytes, user: str, identity: KeyPair) -> Path:
    """Write a kubeconfig of one context, `user@muster`, and return its path. Only the owner may read it."""
    cluster = {"server": server, "certificate-authority-data": _base64(authority)}
    credentials = {
        "client-certificate-data": _base64(identity.certificate),
        "client-key-data": _base64(identity.key),
    }
    context = f"{user}@muster"
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "muster", "cluster": cluster}],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": context, "context": {"cluster": "muster", "user": user}}],
        "current-context": context,
    }
    return write_secret(path, yaml.safe_dump(document, sort_keys=False).encode())


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
