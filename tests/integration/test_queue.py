"""Queues on a real API server: the two that always exist, and the states of the others."""

from __future__ import annotations

import pytest

from muster.kube.resource import PODGROUPS, QUEUES
from tests.integration.observed import Observed
from tests.integration.ray_manifests import pod_group, queue

pytest_plugins = ("tests.integration.controller_fixtures",)
pytestmark = pytest.mark.usefixtures("operator")


async def state(seen: Observed, name: str, wanted: str) -> None:
    await seen.until(QUEUES, name, lambda queue: (queue.get("status") or {}).get("state") == wanted, f"{name} {wanted}")


async def test_root_and_default_exist_and_are_open(seen: Observed) -> None:
    await state(seen, "root", "Open")
    await state(seen, "default", "Open")
    default = await seen.get(QUEUES, "default")
    assert default is not None
    assert default["spec"]["parent"] == "root"


async def test_a_new_queue_opens_under_the_root(seen: Observed) -> None:
    name = f"{seen.namespace}-q"
    await seen.api.create(QUEUES, None, queue(name, weight=2))
    await state(seen, name, "Open")
    await seen.until(QUEUES, name, lambda queue: queue["spec"].get("parent") == "root", "its parent is the root")


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
    await seen.api.delete(PODGROUPS, seen.namespace, "pg")
    await state(seen, name, "Closed")
