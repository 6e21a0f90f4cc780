"""Volumes that wait for the node of their pod."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import msgspec
import pytest

from muster.engine.late_volumes import LateVolumes
from muster.engine.storage_specs import SELECTED_NODE
from muster.kube.errors import NotFound, ServerError
from muster.scheduler.outcome import Binding
from tests.engine.manual_clock import ManualClock, settle

CLAIM: dict[str, Any] = {
    "metadata": {"name": "data", "namespace": "default", "uid": "u", "annotations": {}},
    "spec": {},
    "status": {"phase": "Pending"},
}
VOLUME: dict[str, Any] = {"metadata": {"name": "v", "uid": "w", "resourceVersion": "7"}, "spec": {}}


class Api:
    """Objects as JSON; a patch is merged, and `react` plays the controllers."""

    def __init__(self, claim: dict[str, Any] | None = CLAIM) -> None:
        text = msgspec.json.encode({"data": claim, "v": VOLUME})
        self.objects: dict[str, Any] = msgspec.json.decode(text)
        self.patches: list[Any] = []
        self.binds = True
        self.failures = 0

    async def get(self, resource: Any, namespace: str | None, name: str, *, decode: Any) -> Any:
        if self.failures:
            self.failures -= 1
            raise ServerError(500, "InternalError", "")
        if self.objects.get(name) is None:
            raise NotFound(404, "NotFound", name)
        return msgspec.convert(self.objects[name], decode)

    async def patch(self, resource: Any, namespace: str | None, name: str, patch: Any) -> Any:
        self.patches.append(patch)
        notes = patch["metadata"].get("annotations", {})
        self.objects[name]["metadata"].setdefault("annotations", {}).update(notes)
        if self.binds:
            self.objects["data"]["spec"]["volumeName"] = "v"
            self.objects["data"]["status"]["phase"] = "Bound"


def binding(volume: str = "") -> Binding:
    return Binding("uid", "default", "p", "n1", "default/pg", (("default/data", volume),))


async def test_a_volume_is_asked_for_on_the_node_and_waited_for() -> None:
    api, clock = Api(), ManualClock()
    api.binds = False
    task = asyncio.create_task(LateVolumes(cast(Any, api), clock).bind(binding()))
    await clock.advance(5)
    assert not task.done()
    assert api.patches == [{"metadata": {"uid": "u", "annotations": {SELECTED_NODE: "n1"}}}]
    api.objects["data"]["spec"]["volumeName"] = "v"
    api.objects["data"]["status"]["phase"] = "Bound"
    await clock.advance(10)
    assert await task == ""


async def test_a_volume_that_is_there_is_kept_for_the_claim_as_it_was_read() -> None:
    api = Api()
    assert await LateVolumes(cast(Any, api), ManualClock()).bind(binding("v")) == ""
    [patch] = api.patches
    assert patch["metadata"]["resourceVersion"] == "7"
    assert patch["spec"]["claimRef"] == {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": "default",
        "name": "data",
        "uid": "u",
    }


KEPT: dict[str, tuple[dict[str, str], bool]] = {
    "another's": ({"namespace": "default", "name": "other", "uid": "x"}, False),
    "one of the name in another namespace": ({"namespace": "ns", "name": "data", "uid": "u"}, False),
    "one that had the name before": ({"namespace": "default", "name": "data", "uid": "old"}, False),
    "this one's": ({"namespace": "default", "name": "data", "uid": "u"}, True),
}


@pytest.mark.parametrize("case", KEPT)
async def test_a_volume_that_is_kept_for_somebody_is_left_to_them(case: str) -> None:
    """Writing over it would take the data of one claim for another."""
    kept_for, ours = KEPT[case]
    api, clock = Api(), ManualClock()
    api.objects["v"]["spec"]["claimRef"] = kept_for
    task = asyncio.create_task(LateVolumes(cast(Any, api), clock, patience=60).bind(binding("v")))
    for _ in range(20):
        await clock.advance(5)
    assert ("is kept for" in await task) is not ours
    assert not api.patches


async def test_a_volume_that_is_kept_for_the_claims_name_is_kept_for_the_claim() -> None:
    api = Api()
    api.objects["v"]["spec"]["claimRef"] = {"namespace": "default", "name": "data"}
    assert await LateVolumes(cast(Any, api), ManualClock()).bind(binding("v")) == ""
    assert [patch["spec"]["claimRef"]["uid"] for patch in api.patches] == ["u"]


async def test_what_is_bound_already_is_not_written_again() -> None:
    api = Api({**CLAIM, "spec": {"volumeName": "v"}, "status": {"phase": "Bound"}})
    assert await LateVolumes(cast(Any, api), ManualClock()).bind(binding()) == ""
    assert not api.patches


async def test_a_claim_that_was_told_the_node_before_a_restart_is_only_waited_for() -> None:
    claim = msgspec.json.decode(msgspec.json.encode(CLAIM))
    claim["metadata"]["annotations"][SELECTED_NODE] = "n1"
    api, clock = Api(claim), ManualClock()
    task = asyncio.create_task(LateVolumes(cast(Any, api), clock).bind(binding()))
    await settle()
    assert not task.done()
    assert not api.patches
    task.cancel()


ENDS: dict[str, str] = {"refused": "no volume could be made", "never": "got no volume within 60 s", "gone": "data"}


@pytest.mark.parametrize("end", ENDS)
async def test_what_does_not_come_is_said_and_the_pod_handed_back(end: str) -> None:
    api, clock = Api(None if end == "gone" else CLAIM), ManualClock()
    api.binds = False
    task = asyncio.create_task(LateVolumes(cast(Any, api), clock, patience=60).bind(binding()))
    await settle()
    if end == "refused":
        api.objects["data"]["metadata"]["annotations"] = {}
    for _ in range(20):
        await clock.advance(5)
    assert ENDS[end] in await task


async def test_a_read_that_fails_while_waiting_is_tried_again() -> None:
    api, clock = Api(), ManualClock()
    api.binds = False
    task = asyncio.create_task(LateVolumes(cast(Any, api), clock).bind(binding()))
    await settle()
    api.failures = 2
    api.objects["data"]["spec"]["volumeName"] = "v"
    api.objects["data"]["status"]["phase"] = "Bound"
    for _ in range(5):
        await clock.advance(5)
    assert await task == ""
