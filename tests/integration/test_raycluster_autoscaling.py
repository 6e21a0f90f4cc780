"""Clusters with Ray's autoscaler on a real API server. The test plays the autoscaler: it writes what that would."""

from __future__ import annotations

from typing import Any

import pytest

from muster.kube.client import ApiClient, PatchKind
from muster.kube.errors import NotFound
from muster.kube.resource import (
    PODGROUPS,
    PODS,
    RAYCLUSTERS,
    ROLEBINDINGS,
    ROLES,
    SERVICEACCOUNTS,
    Resource,
)
from tests.cluster.control_plane import ControlPlane
from tests.integration.observed import Observed
from tests.integration.operators import eventually
from tests.integration.ray_manifests import ray_cluster, template, worker_group

pytest_plugins = ("tests.integration.controller_fixtures",)
pytestmark = pytest.mark.usefixtures("operator")

ACCESS = (SERVICEACCOUNTS, ROLES, ROLEBINDINGS)


async def create(seen: Observed, *groups: dict[str, Any], **spec: Any) -> None:
    manifest = ray_cluster("demo", *groups, **{"enableInTreeAutoscaling": True, **spec})
    await seen.api.create(RAYCLUSTERS, seen.namespace, manifest)


async def scale(seen: Observed, index: int, replicas: int, *named: str) -> None:
    """Patch a group as Ray's autoscaler does: by its position."""
    group = f"/spec/workerGroupSpecs/{index}"
    patch: list[dict[str, Any]] = [
        {"op": "replace", "path": f"{group}/replicas", "value": replicas},
        {"op": "add", "path": f"{group}/scaleStrategy", "value": {"workersToDelete": list(named)}},
    ]
    await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", patch, kind=PatchKind.JSON)


async def workers(seen: Observed, group: str, number: int) -> set[str]:
    async def right() -> set[str] | None:
        names = {pod["metadata"]["name"] for pod in await seen.pods(group)}
        return names if len(names) == number else None

    return await eventually(right, f"{number} workers in {group}") if number else set()


async def test_the_autoscaler_comes_with_the_rights_that_it_needs_and_no_others(
    seen: Observed, control_plane: ControlPlane
) -> None:
    await create(seen)
    await seen.cluster_state("demo", "ready")
    (head,) = await seen.pods("headgroup")
    assert [one["name"] for one in head["spec"]["containers"]] == ["ray", "autoscaler"]
    assert head["spec"]["serviceAccountName"] == "demo"
    cluster = await seen.get(RAYCLUSTERS, "demo")
    assert cluster is not None
    for resource in ACCESS:
        made = await seen.get(resource, "demo")
        assert made is not None
        assert made["metadata"]["ownerReferences"][0]["uid"] == cluster["metadata"]["uid"]
        await seen.event(f"Created{resource.kind}", "demo")
    account = f"system:serviceaccount:{seen.namespace}:demo"
    allowed = {
        (verb, resource): may(control_plane, account, seen.namespace, verb, resource)
        for resource in (PODS, RAYCLUSTERS)
        for verb in ("get", "patch", "delete", "create")
    }
    assert {what for what, yes in allowed.items() if yes} == {
        ("get", PODS),
        ("patch", PODS),
        ("get", RAYCLUSTERS),
        ("patch", RAYCLUSTERS),
    }
    assert not may(control_plane, account, "default", "get", PODS)


def may(plane: ControlPlane, account: str, namespace: str, verb: str, resource: Resource) -> bool:
    attributes = {"namespace": namespace, "verb": verb, "group": resource.group, "resource": resource.plural}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": account, "resourceAttributes": attributes},
    }
    answer = plane.api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return bool(answer["status"].get("allowed"))


async def test_the_gang_is_the_head_and_the_least_number_of_workers(seen: Observed) -> None:
    await create(seen, worker_group(replicas=3, minReplicas=1))
    await seen.cluster_state("demo", "ready")
    await workers(seen, "workers", 3)
    group = await seen.get(PODGROUPS, "ray-demo-pg")
    assert group is not None
    assert (group["spec"]["minMember"], group["spec"]["minTaskMember"]) == (2, {"headgroup": 1, "workers": 1})
    assert group["spec"]["minResources"]["cpu"] == "2500m"  # head, one worker, and the autoscaler
    await scale(seen, 0, 5)
    await workers(seen, "workers", 5)
    group = await seen.get(PODGROUPS, "ray-demo-pg")
    assert group is not None
    assert group["spec"]["minMember"] == 2


async def test_only_the_workers_that_the_autoscaler_names_go(seen: Observed) -> None:
    await create(seen, worker_group(replicas=3))
    names = await workers(seen, "workers", 3)
    await seen.cluster_state("demo", "ready")
    idle = sorted(names)[1]
    await scale(seen, 0, 2, idle)
    assert await workers(seen, "workers", 2) == names - {idle}
    await seen.event("DeletedWorkerPod", "workersToDelete names it")
    # The autoscaler lowers the number first, perhaps, and says whom only later: nobody goes before that.
    await scale(seen, 0, 1)
    await seen.until(
        RAYCLUSTERS, "demo", lambda cluster: cluster["status"]["desiredWorkerReplicas"] == 1, "the status says one"
    )
    assert await workers(seen, "workers", 2) == names - {idle}
    (last, *_) = sorted(names - {idle})
    await scale(seen, 0, 1, last)
    assert await workers(seen, "workers", 1) == names - {idle, last}
    cluster = await seen.get(RAYCLUSTERS, "demo")
    assert cluster is not None
    # What the autoscaler wrote is the autoscaler's to take back.
    assert cluster["spec"]["workerGroupSpecs"][0]["scaleStrategy"]["workersToDelete"] == [last]


async def test_groups_that_change_places_under_the_autoscaler_keep_their_workers(seen: Observed) -> None:
    one, two = worker_group("one", 2), worker_group("two", 1)
    await create(seen, one, two)
    ones, twos = await workers(seen, "one", 2), await workers(seen, "two", 1)
    await seen.cluster_state("demo", "ready")
    await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", {"spec": {"workerGroupSpecs": [two, one]}})
    # It still believes that `one` is the first: the number goes to `two`, but whom it names must go all the same.
    gone = min(ones)
    await scale(seen, 0, 1, gone)
    await seen.event("DeletedWorkerPod", gone)
    assert await workers(seen, "two", 1) == twos
    assert await workers(seen, "one", 2) > ones - {gone}


async def test_the_workers_of_a_removed_group_go_also_under_the_autoscaler(seen: Observed) -> None:
    await create(seen, worker_group("keep", 1), worker_group("drop", 2))
    kept = await workers(seen, "keep", 1)
    await workers(seen, "drop", 2)
    await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", {"spec": {"workerGroupSpecs": [worker_group("keep", 1)]}})
    await seen.event("DeletedWorkerPod", "not in the spec any more")

    async def dropped() -> bool:
        return await seen.pods("drop") == []

    await eventually(dropped, "no worker of the removed group")
    assert await workers(seen, "keep", 1) == kept


@pytest.mark.parametrize("resource", ACCESS, ids=lambda resource: resource.plural)
async def test_what_belongs_to_somebody_else_is_not_taken_over(seen: Observed, resource: Resource) -> None:
    foreign: dict[str, Any] = {"metadata": {"name": "demo"}}
    if resource == ROLEBINDINGS:
        foreign["roleRef"] = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "theirs"}
    await seen.api.create(resource, seen.namespace, foreign)
    before = await seen.get(resource, "demo")
    await create(seen)
    note = await seen.event("NameTaken", f"{resource.kind} demo exists already")
    assert ("serviceAccountName" in note) == (resource == SERVICEACCOUNTS)
    assert await seen.pods() == []
    assert await seen.get(resource, "demo") == before
    await seen.api.delete(resource, seen.namespace, "demo")
    await seen.cluster_state("demo", "ready")


async def test_a_head_may_run_as_an_account_of_the_users_own(seen: Observed) -> None:
    named = {"rayStartParams": {}, "template": template(serviceAccountName="mine")}
    await create(seen, headGroupSpec=named)
    await seen.event("AutoscalerServiceAccountNotFound", "ServiceAccount mine does not exist")
    assert await seen.pods() == []
    await seen.api.create(SERVICEACCOUNTS, seen.namespace, {"metadata": {"name": "mine"}})
    await seen.cluster_state("demo", "ready")
    (head,) = await seen.pods("headgroup")
    assert head["spec"]["serviceAccountName"] == "mine"
    assert await seen.get(SERVICEACCOUNTS, "demo") is None
    binding = await seen.get(ROLEBINDINGS, "demo")
    assert binding is not None
    assert [one["name"] for one in binding["subjects"]] == ["mine"]
    # The head that runs keeps its rights when another account is named for the next one.
    other = {"rayStartParams": {}, "template": template(serviceAccountName="other")}
    await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", {"spec": {"headGroupSpec": other}})
    await seen.until(
        ROLEBINDINGS, "demo", lambda it: {one["name"] for one in it["subjects"]} == {"mine", "other"}, "both have it"
    )


async def test_rights_that_somebody_took_away_or_added_are_put_right(seen: Observed, api: ApiClient) -> None:
    await create(seen)
    await seen.cluster_state("demo", "ready")
    role, binding = await seen.get(ROLES, "demo"), await seen.get(ROLEBINDINGS, "demo")
    assert role is not None
    assert binding is not None
    await api.patch(
        ROLES, seen.namespace, "demo", {"rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]}
    )
    await seen.until(ROLES, "demo", lambda it: it["rules"] == role["rules"], "the rules are back")
    await api.patch(ROLEBINDINGS, seen.namespace, "demo", {"subjects": None})
    await seen.until(ROLEBINDINGS, "demo", lambda it: it.get("subjects") == binding["subjects"], "the subject is back")
    for resource in ACCESS:
        found = await seen.get(resource, "demo")
        assert found is not None
        await api.delete(resource, seen.namespace, "demo")

        async def another(resource: Resource = resource, old: str = found["metadata"]["uid"]) -> bool:
            try:
                now = await api.get(resource, seen.namespace, "demo")
            except NotFound:
                return False
            return bool(now["metadata"]["uid"] != old)

        await eventually(another, f"another {resource.kind}")


async def test_a_head_from_before_is_told_of(seen: Observed) -> None:
    await create(seen, enableInTreeAutoscaling=False)
    await seen.cluster_state("demo", "ready")
    (head,) = await seen.pods("headgroup")
    await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", {"spec": {"enableInTreeAutoscaling": True}})
    await seen.event("AutoscalerNotRunning", head["metadata"]["name"])
    # Not the account that the head runs as: there is no autoscaler in it.
    await seen.until(
        ROLEBINDINGS, "demo", lambda it: [one["name"] for one in it["subjects"]] == ["demo"], "the next head has it"
    )


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"env": [{"nam": "A"}]}, "spec.autoscalerOptions.env[0].nam"),
        ({"imagePullPolicy": "Sometimes"}, "spec.autoscalerOptions.imagePullPolicy"),
        ({"securityContext": {"runAsUser": "root"}}, "spec.autoscalerOptions"),
    ],
)
async def test_options_that_the_api_server_would_refuse_are_refused_by_their_field(
    seen: Observed, options: dict[str, Any], field: str
) -> None:
    await create(seen, autoscalerOptions=options)
    await seen.event("InvalidRayClusterSpec", field)
    assert await seen.pods() == []
    await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", {"spec": {"autoscalerOptions": None}})
    await seen.cluster_state("demo", "ready")
