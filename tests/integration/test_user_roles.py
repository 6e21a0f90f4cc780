"""What users of a cluster may do by the roles that Kubernetes has for them, once Muster is installed."""

from __future__ import annotations

import uuid

import pytest

from muster.kube.resource import PODGROUPS, QUEUES, RAYCLUSTERS, RAYJOBS
from tests.cluster.api_access import wait_until
from tests.cluster.control_plane import ControlPlane
from tests.integration.permissions import documents, may

RBAC = "/apis/rbac.authorization.k8s.io/v1"
READ = ("get", "list", "watch")
WRITE = ("create", "update", "patch", "delete", "deletecollection")


@pytest.fixture(scope="module")
def plane(full_control_plane: ControlPlane) -> ControlPlane:
    """Give a control plane with the roles, which its controller manager adds to Kubernetes' own."""
    for role in documents("user-roles.yaml"):
        full_control_plane.api.apply(f"{RBAC}/clusterroles/{role['metadata']['name']}", role)
    return full_control_plane


def user_with(plane: ControlPlane, role: str, namespace: str = "") -> str:
    """Bind the ClusterRole to a new user, in a namespace or in all; return the user's name."""
    user = f"user-{uuid.uuid4().hex[:8]}"
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    place = f"{RBAC}/namespaces/{namespace}/rolebindings" if namespace else f"{RBAC}/clusterrolebindings"
    plane.api.create(place, {"metadata": {"name": user}, "roleRef": reference, "subjects": [subject]})
    return user


@pytest.mark.parametrize(("role", "writes"), [("view", False), ("edit", True), ("admin", True)])
def test_a_role_in_a_namespace_shows_its_gangs_and_lets_who_may_edit_run_jobs(
    plane: ControlPlane, role: str, writes: bool
) -> None:
    user = user_with(plane, role, "default")
    wait_until(lambda: may(plane, "get", PODGROUPS, "default", user=user), "gangs can be seen", 30.0)
    wait_until(lambda: may(plane, "create", RAYJOBS, "default", user=user) is writes, "jobs can be made", 30.0)
    for resource in (RAYJOBS, RAYCLUSTERS):
        assert all(may(plane, verb, resource, "default", user=user) for verb in READ)
        assert {may(plane, verb, resource, "default", user=user) for verb in WRITE} == {writes}
        assert not may(plane, "get", resource, "kube-system", user=user)
    assert not any(may(plane, verb, PODGROUPS, "default", user=user) for verb in WRITE)
    assert not may(plane, "get", QUEUES, user=user)


@pytest.mark.parametrize("role", ["muster-queue-view", "view", "edit"])
def test_a_role_in_all_namespaces_shows_the_queues_and_changes_none(plane: ControlPlane, role: str) -> None:
    user = user_with(plane, role)
    wait_until(lambda: may(plane, "list", QUEUES, user=user), "queues can be seen", 30.0)
    assert not any(may(plane, verb, QUEUES, user=user) for verb in WRITE)
