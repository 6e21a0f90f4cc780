"""Writes of an autoscaler's rights and of an Ingress that go wrong: all is there in the end, and is made once."""

from __future__ import annotations

from typing import Any

import pytest

from muster.controllers import setbacks
from muster.kube.resource import INGRESSES, RAYCLUSTERS, RAYJOBS, ROLEBINDINGS, ROLES, SERVICEACCOUNTS
from tests.integration.fault_proxy import Answer, Drop, FaultProxy, LoseAnswer, ProxiedRequest, SpoilAnswer, matching
from tests.integration.faults import Fault
from tests.integration.observed import Observed, conditions
from tests.integration.operators import Operator
from tests.integration.ray_dashboard import RayDashboards
from tests.integration.ray_manifests import ray_cluster, ray_job, template

pytest_plugins = ("tests.integration.controller_fixtures",)

MADE = (SERVICEACCOUNTS, ROLES, ROLEBINDINGS)


def cluster() -> dict[str, Any]:
    head = {"rayStartParams": {}, "template": template(), "enableIngress": True}
    return ray_cluster("demo", headGroupSpec=head, enableInTreeAutoscaling=True)


async def all_there(seen: Observed) -> None:
    await seen.cluster_state("demo", "ready")
    for resource in MADE:
        assert await seen.get(resource, "demo") is not None
    await seen.until(INGRESSES, "demo-head-ingress", lambda it: True, "an Ingress")
    (head,) = await seen.pods("headgroup")
    assert head["spec"]["serviceAccountName"] == "demo"


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(LoseAnswer(), id="it lands and nobody is told"),
        pytest.param(SpoilAnswer(), id="it lands and is denied"),
        pytest.param(Drop(), id="it never arrives"),
        pytest.param(Answer(500, "InternalError"), id="500"),
        pytest.param(Answer(409, "Conflict"), id="409"),
    ],
)
@pytest.mark.parametrize("what", ["serviceaccounts", "roles", "rolebindings", "ingresses"])
@pytest.mark.usefixtures("stand_ins")
async def test_a_create_that_goes_wrong_is_made_up_for(
    proxy: FaultProxy, seen: Observed, dashboards: RayDashboards, fault: Fault, what: str
) -> None:
    injection = proxy.inject(fault, when=matching("POST", f"/{what}$"), times=2)
    async with Operator(proxy.connection(), seen.namespace, dashboards):
        await seen.api.create(RAYCLUSTERS, seen.namespace, cluster())
        await all_there(seen)
    assert injection.hits == 2 or isinstance(fault, LoseAnswer | SpoilAnswer)


@pytest.mark.parametrize("what", ["podgroups", "services", "serviceaccounts", "roles", "rolebindings", "podtemplates"])
@pytest.mark.usefixtures("stand_ins")
async def test_a_failure_of_the_api_server_that_lasts_is_told_in_the_status(
    proxy: FaultProxy, seen: Observed, dashboards: RayDashboards, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setbacks, "LASTING_SECONDS", 1.0)
    failing = proxy.inject(Answer(500, "InternalError", "no webhook"), when=matching("POST", f"/{what}$"), times=None)
    async with Operator(proxy.connection(), seen.namespace, dashboards):
        await seen.api.create(RAYCLUSTERS, seen.namespace, cluster())
        told = await seen.until(
            RAYCLUSTERS, "demo", lambda it: "no webhook" in (it.get("status") or {}).get("reason", ""), "it is told"
        )
        assert conditions(told["status"])["ReplicaFailure"] == "True"
        await seen.event("FailedToReconcile", "no webhook")
        failing.remove()
        status = await seen.cluster_state("demo", "ready")
        assert "ReplicaFailure" not in conditions(status)


@pytest.mark.parametrize("what", ["podgroups", "rayclusters", "podtemplates"])
@pytest.mark.usefixtures("stand_ins")
async def test_a_failure_that_lasts_is_told_in_the_status_of_a_job(
    proxy: FaultProxy, seen: Observed, dashboards: RayDashboards, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setbacks, "LASTING_SECONDS", 1.0)
    failing = proxy.inject(Answer(500, "InternalError", "no webhook"), when=matching("POST", f"/{what}$"), times=None)
    async with Operator(proxy.connection(), seen.namespace, dashboards):
        await seen.api.create(RAYJOBS, seen.namespace, ray_job("demo"))
        await seen.until(
            RAYJOBS, "demo", lambda it: "no webhook" in (it.get("status") or {}).get("message", ""), "it is told"
        )
        failing.remove()
        await seen.job_state("demo", "Complete")


async def test_a_binding_of_ours_that_leads_to_another_role_is_told_and_made_anew_once_it_is_gone(
    seen: Observed, operator: Operator
) -> None:
    manifest = cluster()
    manifest["spec"]["suspend"] = True
    made = await seen.api.create(RAYCLUSTERS, seen.namespace, manifest)
    owner = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "demo", "uid": made["metadata"]["uid"]}
    labels = {"app.kubernetes.io/created-by": "kuberay-operator"}
    binding = {
        "metadata": {"name": "demo", "labels": labels, "ownerReferences": [{**owner, "controller": True}]},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "another"},
        "subjects": [{"kind": "ServiceAccount", "name": "demo", "namespace": seen.namespace}],
    }
    await seen.api.create(ROLEBINDINGS, seen.namespace, binding)
    await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", {"spec": {"suspend": False}})
    assert "leads to Role another" in await seen.event("RoleOfAnother")
    assert await seen.pods() == []
    await seen.api.delete(ROLEBINDINGS, seen.namespace, "demo")
    await all_there(seen)


@pytest.mark.usefixtures("stand_ins")
async def test_a_look_at_a_cluster_that_has_all_writes_nothing_but_the_status(
    proxy: FaultProxy, seen: Observed, dashboards: RayDashboards
) -> None:
    manifest = cluster()
    manifest["spec"]["upgradeStrategy"] = {"type": "Recreate"}
    async with Operator(proxy.connection(), seen.namespace, dashboards) as operator:
        await seen.api.create(RAYCLUSTERS, seen.namespace, manifest)
        await all_there(seen)
        await operator.kill()
        written: list[str] = []
        proxy.on_write(lambda write: written.append(f"{write.request.method} {write.request.path}"), when=of_objects)
        await operator.start()
        change = {"spec": {"headServiceAnnotations": {"seen": "by nobody"}}}
        changed = await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", change)
        generation = changed["metadata"]["generation"]
        await seen.until(
            RAYCLUSTERS, "demo", lambda it: it["status"]["observedGeneration"] == generation, "the change was looked at"
        )
    assert set(written) == {f"PATCH /apis/ray.io/v1/namespaces/{seen.namespace}/rayclusters/demo/status"}


def of_objects(request: ProxiedRequest) -> bool:
    """Events and dry runs change nothing that anybody depends on; the two queues that are always there are shared."""
    beside = ("/events", "/queues")
    tried_out = "dryRun" in request.query
    return request.is_write and not tried_out and not any(kind in request.path for kind in beside)
