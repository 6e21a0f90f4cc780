"""Queues on a real API server: the two that always exist, and the states of the others."""

from __future__ import annotations

import pytest

from muster.kube.config import Connection
from muster.kube.resource import EVENTS, PODGROUPS, QUEUES, RAYCLUSTERS, RAYJOBS
from tests.integration.observed import Observed
from tests.integration.operators import Operator, eventually
from tests.integration.ray_dashboard import RayDashboards
from tests.integration.ray_manifests import pod_group, queue, ray_cluster, ray_job
from tests.integration.stand_ins import StandIns

pytest_plugins = ("tests.integration.controller_fixtures",)


async def state(seen: Observed, name: str, wanted: str) -> None:
    await seen.until(QUEUES, name, lambda queue: (queue.get("status") or {}).get("state") == wanted, f"{name} {wanted}")


async def told(seen: Observed, name: str, reason: str, words: str) -> None:
    """Wait for an event on the queue; those on cluster-scoped objects are in the default namespace."""

    async def found() -> bool:
        events = await seen.api.list(EVENTS, "default")
        return any(
            each["regarding"].get("name") == name and each["reason"] == reason and words in each["note"]
            for each in events
        )

    await eventually(found, f"an event {reason} on {name} with {words!r}")


@pytest.mark.usefixtures("operator")
async def test_root_and_default_exist_and_are_open(seen: Observed) -> None:
    await state(seen, "root", "Open")
    await state(seen, "default", "Open")
    default = await seen.get(QUEUES, "default")
    assert default is not None
    assert default["spec"]["parent"] == "root"


@pytest.mark.usefixtures("operator")
async def test_a_new_queue_opens_under_the_root(seen: Observed) -> None:
    name = f"{seen.namespace}-q"
    await seen.api.create(QUEUES, None, queue(name, weight=2))
    await state(seen, name, "Open")
    await seen.until(QUEUES, name, lambda queue: queue["spec"].get("parent") == "root", "its parent is the root")


@pytest.mark.usefixtures("operator")
async def test_a_closing_queue_closes_with_its_last_pod_group(seen: Observed) -> None:
    name = f"{seen.namespace}-q"
    await seen.api.create(QUEUES, None, queue(name))
    await state(seen, name, "Open")
    await seen.api.create(PODGROUPS, seen.namespace, pod_group("pg", queue=name))
    await seen.api.patch(QUEUES, None, name, {"status": {"state": "Closing"}}, subresource="status")
    # Another queue opens meanwhile, so the controller has had its turn and left this one Closing.
    await seen.api.create(QUEUES, None, queue(f"{name}-2"))
    await state(seen, f"{name}-2", "Open")
    await state(seen, name, "Closing")
    await told(seen, name, "CloseQueue", "PodGroups that name it and keep it from Closed: 1")
    await seen.api.delete(PODGROUPS, seen.namespace, "pg")
    await state(seen, name, "Closed")
    await told(seen, name, "CloseQueue", "is closed")
    await seen.api.patch(QUEUES, None, name, {"status": {"state": "Open"}}, subresource="status")
    await told(seen, name, "OpenQueue", "is open")


@pytest.mark.usefixtures("operator")
async def test_a_state_that_nobody_knows_is_told(seen: Observed) -> None:
    name = f"{seen.namespace}-q"
    await seen.api.create(QUEUES, None, queue(name))
    await state(seen, name, "Open")
    await seen.api.patch(QUEUES, None, name, {"status": {"state": "Shut"}}, subresource="status")
    await state(seen, name, "Unknown")
    await told(seen, name, "UnknownQueueState", 'status.state: "Shut" is none of')


async def test_no_queue_is_created_by_naming_it_where_that_is_not_wanted(
    connection: Connection, seen: Observed, stand_ins: StandIns, dashboards: RayDashboards
) -> None:
    stand_ins.holds_back = lambda _: True
    named = {"volcano.sh/queue-name": f"{seen.namespace}-q"}
    cluster = ray_cluster("alone")
    cluster["metadata"]["labels"] = named
    async with Operator(connection, seen.namespace, dashboards, create_queues=False):
        await seen.api.create(RAYJOBS, seen.namespace, ray_job("demo", labels=named))
        await seen.api.create(RAYCLUSTERS, seen.namespace, cluster)
        for owner in ("demo", "alone"):
            await seen.until(PODGROUPS, f"ray-{owner}-pg", lambda _: True, f"the gang of {owner} waits")
        assert "told not to create queues" in await seen.event("QueueNotFound", named["volcano.sh/queue-name"])
        await state(seen, "default", "Open")
        assert await seen.get(QUEUES, named["volcano.sh/queue-name"]) is None
