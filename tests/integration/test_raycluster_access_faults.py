"""Writes of an autoscaler's rights and of an Ingress that go wrong: all is there in the end, and is made once."""

from __future__ import annotations

from typing import Any

import pytest

from muster.kube.resource import INGRESSES, RAYCLUSTERS, ROLEBINDINGS, ROLES, SERVICEACCOUNTS
from tests.integration.fault_proxy import Answer, Drop, FaultProxy, LoseAnswer, SpoilAnswer, matching
from tests.integration.faults import Fault
from tests.integration.observed import Observed
from tests.integration.operators import Operator
from tests.integration.ray_dashboard import RayDashboards
from tests.integration.ray_manifests import ray_cluster, template

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
