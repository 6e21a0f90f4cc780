"""Token authentication of Ray: how the containers of a cluster get the token.

The token is in a Secret, one key of it, and goes to containers by reference: no manifest holds it. With
`enableK8sTokenAuth` there is no Secret: each pod shows a token of its own ServiceAccount, and Ray asks the API server
whether it may.
"""

from __future__ import annotations

import base64
from typing import Any, Final

from muster.api.raycluster import RayCluster
from muster.ray import labels, names
from muster.ray.owner import owner_reference

TOKEN: Final = "token"  # noqa: S105 - the name of a mode
SECRET_KEY: Final = "auth_token"  # noqa: S105 - the name of a key
TOKEN_BYTES: Final = 32

VARIABLE: Final = "RAY_AUTH_TOKEN"
"""What Ray reads the token from in its environment."""

_VOLUME: Final = "ray-token"
_MOUNT_PATH: Final = "/var/run/secrets/ray.io/serviceaccount"

Env = dict[str, Any]


def asks_for_token(cluster: RayCluster) -> bool:
    """Whether whoever talks to the cluster has to show a token."""
    options = cluster.spec.auth_options
    return options is not None and options.mode == TOKEN


def asks_kubernetes(cluster: RayCluster) -> bool:
    """Whether the tokens are those of ServiceAccounts."""
    options = cluster.spec.auth_options
    return asks_for_token(cluster) and options is not None and bool(options.enable_k8s_token_auth)


def users_secret(cluster: RayCluster) -> str | None:
    """The Secret that the user made for the token; None where Muster makes it."""
    options = cluster.spec.auth_options
    return (options.secret_name or None) if options is not None else None


def token_secret_name(cluster: RayCluster) -> str | None:
    """The Secret that has the token; None for a cluster without one."""
    if not asks_for_token(cluster) or asks_kubernetes(cluster):
        return None
    return users_secret(cluster) or names.token_secret(cluster.metadata.name)


def token_env(cluster: RayCluster) -> list[Env]:
    """The variables by which a container of the cluster, or its submitter, has the token; none without authentication.

    Whoever needs more than variables (see `mount_token`) is a container of a Ray pod.
    """
    if not asks_for_token(cluster):
        return []
    mode = {"name": "RAY_AUTH_MODE", "value": TOKEN}
    secret = token_secret_name(cluster)
    if secret is None:
        return [mode, {"name": "RAY_ENABLE_K8S_TOKEN_AUTH", "value": "true"}]
    reference = {"secretKeyRef": {"name": secret, "key": SECRET_KEY}}
    return [mode, {"name": VARIABLE, "valueFrom": reference}]


def give_token(cluster: RayCluster, pod_spec: dict[str, Any], container: dict[str, Any]) -> None:
    """Let one more container of a Ray pod (a sidecar) show the cluster's token; what it sets itself is kept."""
    given = {variable.get("name") for variable in container.get("env") or []}
    missing = [variable for variable in token_env(cluster) if variable["name"] not in given]
    if missing:
        container["env"] = [*(container.get("env") or []), *missing]
    mount_token(cluster, pod_spec, container)


def mount_token(cluster: RayCluster, pod_spec: dict[str, Any], container: dict[str, Any]) -> None:
    """Mount the token of the pod's ServiceAccount where the cluster asks for those."""
    if not asks_kubernetes(cluster):
        return
    volumes, mounts = pod_spec.get("volumes") or [], container.get("volumeMounts") or []
    if not any(volume.get("name") == _VOLUME for volume in volumes):
        source = {"serviceAccountToken": {"path": "token"}}
        pod_spec["volumes"] = [*volumes, {"name": _VOLUME, "projected": {"sources": [source]}}]
    if not any(mount.get("name") == _VOLUME for mount in mounts):
        container["volumeMounts"] = [*mounts, {"name": _VOLUME, "mountPath": _MOUNT_PATH, "readOnly": True}]


def token_secret(cluster: RayCluster, random: bytes) -> dict[str, Any]:
    """The Secret of a new token, made from these random bytes; it goes with the cluster."""
    token = base64.b64encode(random)
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": names.token_secret(cluster.metadata.name),
            "namespace": cluster.metadata.namespace,
            "labels": {labels.CLUSTER: cluster.metadata.name, labels.CREATED_BY: labels.OPERATOR},
            "ownerReferences": [owner_reference(cluster)],
        },
        "type": "Opaque",
        "data": {SECRET_KEY: base64.b64encode(token).decode()},
    }
