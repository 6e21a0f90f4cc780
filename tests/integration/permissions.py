"""Muster's own account, with what `manifests/base` grants to it and nothing more.

Tests of the operator's parts work as this account, so that a verb that the shipped ClusterRole lacks fails them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from muster.kube.errors import ApiError, error_from_answer
from muster.kube.resource import LEASES, RAYJOBS, Resource
from tests.cluster.api_access import wait_until
from tests.cluster.control_plane import ControlPlane

MANIFESTS: Final = Path(__file__).parents[2] / "manifests" / "base"
ACCOUNT: Final = "system:serviceaccount:muster-system:muster"
"""The user name by which the API server knows the service account; a certificate may carry it too."""

NAMESPACE: Final = "muster-system"
_RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"


def account_of_muster(plane: ControlPlane) -> Path:
    """Put the shipped ClusterRole and Role into force; return a kubeconfig of the account that they are bound to."""
    plane.api.apply(
        f"/api/v1/namespaces/{NAMESPACE}", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    )
    for document in documents("cluster-role.yaml"):
        plane.api.apply(f"{_RBAC}/{document['kind'].lower()}s/{document['metadata']['name']}", document)
    for document in documents("role.yaml"):
        place = f"{_RBAC}/namespaces/{NAMESPACE}/{document['kind'].lower()}s"
        plane.api.apply(f"{place}/{document['metadata']['name']}", document)
    wait_until(lambda: may(plane, "list", RAYJOBS), "the ClusterRole is in force", 20.0)
    wait_until(lambda: may(plane, "create", LEASES, NAMESPACE), "the Role is in force", 20.0)
    return plane.kubeconfig_for(ACCOUNT)


def documents(name: str) -> list[dict[str, Any]]:
    """The objects of one file of `manifests/base`."""
    return list(yaml.safe_load_all((MANIFESTS / name).read_text()))


def may(plane: ControlPlane, verb: str, resource: Resource, namespace: str = "", *, user: str = ACCOUNT) -> bool:
    """Whether the account, or another user, may do this in a namespace, or in all."""
    attributes = {"group": resource.group, "resource": resource.plural, "verb": verb, "namespace": namespace}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "resourceAttributes": attributes},
    }
    answer = plane.api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return bool(answer["status"].get("allowed"))


def note_refusals(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have every verb that Muster is refused noted in the list, also one that it does without in silence."""
    refused: list[str] = []

    def noting(status: int, payload: bytes, retry_after: str | None = None) -> ApiError:
        error = error_from_answer(status, payload, retry_after)
        if status == 403 and f"User {json.dumps(ACCOUNT)} cannot " in error.message:
            refused.append(error.message)
        return error

    monkeypatch.setattr("muster.kube.transport.error_from_answer", noting)
    return refused
