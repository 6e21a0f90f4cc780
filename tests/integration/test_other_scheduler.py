"""The controllers under a scheduler that is not Muster's."""

from __future__ import annotations

import pytest

from muster.kube.config import Connection
from muster.kube.errors import NotFound
from muster.kube.resource import JOBS, PODGROUPS, QUEUES, RAYJOBS
from tests.integration.observed import Observed
from tests.integration.operators import Operator
from tests.integration.ray_dashboard import RayDashboards
from tests.integration.ray_manifests import ray_job
from tests.integration.stand_ins import StandIns

pytest_plugins = ("tests.integration.controller_fixtures",)


async def test_pods_are_members_of_the_gang_and_wait_for_nobody_to_take_a_gate_away(
    connection: Connection, seen: Observed, stand_ins: StandIns, dashboards: RayDashboards
) -> None:
    async with Operator(connection, seen.namespace, dashboards, gate=None, scheduler_name="volcano"):
        await seen.api.create(RAYJOBS, seen.namespace, ray_job("demo"))
        await seen.job_state("demo", "Complete")
    (submitter,) = await seen.all(JOBS)
    pods = [*await seen.pods(), submitter["spec"]["template"]]
    assert len(pods) == 4
    assert not any(pod["spec"].get("schedulingGates") for pod in pods)
    assert {pod["spec"]["schedulerName"] for pod in pods} == {"volcano"}
    assert {pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] for pod in pods} == {"ray-demo-pg"}
    assert await seen.names(PODGROUPS) == {"ray-demo-pg"}
    assert await seen.events("NotGangScheduled") == []


async def test_without_gangs_pods_are_nobodys_members_and_no_group_or_queue_is_made(
    connection: Connection, seen: Observed, stand_ins: StandIns, dashboards: RayDashboards
) -> None:
    job = ray_job("demo", labels={"volcano.sh/queue-name": f"{seen.namespace}-q"})
    async with Operator(connection, seen.namespace, dashboards, gate=None, scheduler_name="none", gangs=False):
        await seen.api.create(RAYJOBS, seen.namespace, job)
        await seen.job_state("demo", "Complete")
    (submitter,) = await seen.all(JOBS)
    pods = [*await seen.pods(), submitter["spec"]["template"]]
    assert len(pods) == 4
    for pod in pods:
        assert not pod["spec"].get("schedulingGates")
        assert pod["spec"]["schedulerName"] == "default-scheduler"
        assert "scheduling.k8s.io/group-name" not in (pod["metadata"].get("annotations") or {})
    assert await seen.names(PODGROUPS) == set()
    with pytest.raises(NotFound):
        await seen.api.get(QUEUES, None, f"{seen.namespace}-q")
