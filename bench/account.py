"""As whom the measured systems come: with the token of a service account, as in a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import yaml

from tests.cluster.control_plane import ControlPlane

_ACCOUNT: Final = "bench"
_NAMESPACE: Final = "kube-system"
_TOKEN_SECONDS: Final = 24 * 60 * 60

USER: Final = f"system:serviceaccount:{_NAMESPACE}:{_ACCOUNT}"
"""The account's name as a user of the API server."""


def account_kubeconfig(plane: ControlPlane) -> Path:
    """A kubeconfig with the token of a service account that may do everything, as a system in a cluster has one.

    The API server remembers for a while whose a token is; who shows a certificate is verified at each request.
    """
    accounts = f"/api/v1/namespaces/{_NAMESPACE}/serviceaccounts"
    plane.api.apply(
        f"{accounts}/{_ACCOUNT}", {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": _ACCOUNT}}
    )
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": _ACCOUNT},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": _ACCOUNT, "namespace": _NAMESPACE}],
    }
    plane.api.apply(f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{_ACCOUNT}", binding)
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": _TOKEN_SECONDS},
    }
    token = plane.api.create(f"{accounts}/{_ACCOUNT}/token", request)["status"]["token"]
    document = yaml.safe_load(plane.kubeconfig.read_text())
    document["users"][0]["user"] = {"token": token}
    path = plane.folder / "account.kubeconfig"
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(document))
    return path
