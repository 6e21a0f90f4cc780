"""What Ray's autoscaler may do: its service account, a role, and the binding of the two, all of the cluster's own.

The role is no more than the autoscaler needs in its namespace: to see and resize pods, and to change RayClusters. A
user who names a service account in the head's template has made it and keeps it; the role is bound to that one then.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from muster.api.raycluster import RayCluster
from muster.ray import labels, names
from muster.ray.owner import owner_reference

Manifest = dict[str, Any]

_RBAC: Final = "rbac.authorization.k8s.io"

RULES: Final = (
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "patch"]},
    {"apiGroups": [""], "resources": ["pods/resize"], "verbs": ["patch"]},
    {"apiGroups": ["ray.io"], "resources": ["rayclusters"], "verbs": ["get", "patch"]},
)


def users_service_account(cluster: RayCluster) -> str | None:
    """The service account that the head's template names; None when it names none."""
    spec = cluster.spec.head_group_spec.template.get("spec") or {}
    # The second is the old name of the field, which the API server still takes.
    return spec.get("serviceAccountName") or spec.get("serviceAccount") or None


def autoscaler_account(cluster: RayCluster) -> str:
    """The service account of the head pod of a cluster with an autoscaler."""
    return users_service_account(cluster) or names.service_account(cluster.metadata.name)


def service_account(cluster: RayCluster) -> Manifest:
    """The service account that is made where the user names none."""
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(cluster)}


def role(cluster: RayCluster) -> Manifest:
    """What the autoscaler may do in its namespace."""
    rules = [dict(rule) for rule in RULES]
    return {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": _metadata(cluster), "rules": rules}


def role_binding(cluster: RayCluster, accounts: Iterable[str] = ()) -> Manifest:
    """Gives the role to the head's service account, and to `accounts`: those of heads that run already."""
    given = sorted({autoscaler_account(cluster), *accounts})
    namespace = cluster.metadata.namespace
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": _metadata(cluster),
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": names.service_account(cluster.metadata.name)},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace} for name in given],
    }


def _metadata(cluster: RayCluster) -> dict[str, Any]:
    return {
        "name": names.service_account(cluster.metadata.name),
        "namespace": cluster.metadata.namespace,
        "labels": {
            labels.CLUSTER: cluster.metadata.name,
            labels.APP_NAME: labels.APPLICATION,
            labels.CREATED_BY: labels.OPERATOR,
        },
        "ownerReferences": [owner_reference(cluster)],
    }
