"""Volumes that are there already, kept for claims by a real API server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from muster.engine.clock import SystemClock
from muster.engine.late_volumes import LateVolumes
from muster.kube.client import ApiClient
from muster.kube.resource import PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES
from muster.kube.storage_objects import PersistentVolume, PersistentVolumeClaim
from muster.scheduler.outcome import Binding
from tests.integration.fault_proxy import FaultProxy, LoseAnswer, matching

CAPACITY = {"storage": "1Gi"}
NO_CONTROLLER = "got no volume within"
"""What the claim that the volume is kept for comes to here: nobody binds the two."""


class Shelf:
    """One volume and some claims of a test's namespace."""

    def __init__(self, api: ApiClient, namespace: str) -> None:
        self.api = api
        self.namespace = namespace
        self.volume = f"{namespace}-v"

    async def fill(self, claims: list[str]) -> None:
        spec = {"storageClassName": self.namespace, "accessModes": ["ReadWriteOnce"]}
        source = {"capacity": CAPACITY, "nfs": {"server": "nfs.example", "path": "/"}}
        body: dict[str, Any] = {"apiVersion": "v1", "metadata": {"name": self.volume}, "spec": {**spec, **source}}
        await self.api.create(PERSISTENTVOLUMES, None, {**body, "kind": "PersistentVolume"})
        for name in claims:
            body = {
                "apiVersion": "v1",
                "metadata": {"name": name},
                "spec": {**spec, "resources": {"requests": CAPACITY}},
            }
            await self.api.create(PERSISTENTVOLUMECLAIMS, self.namespace, {**body, "kind": "PersistentVolumeClaim"})

    async def ask(self, client: ApiClient, claim: str) -> str:
        binding = Binding("uid", self.namespace, "p", "n", "", ((f"{self.namespace}/{claim}", self.volume),))
        return await LateVolumes(client, SystemClock(), patience=0.0).bind(binding)

    async def owner(self) -> str:
        """The claim that the volume is kept for, checked to be the very one."""
        found = (await self.api.get(PERSISTENTVOLUMES, None, self.volume, decode=PersistentVolume)).spec.claim_ref
        assert found is not None
        assert found.namespace == self.namespace
        claim = await self.api.get(PERSISTENTVOLUMECLAIMS, self.namespace, found.name, decode=PersistentVolumeClaim)
        assert found.uid == claim.metadata.uid
        return found.name


@pytest.fixture
def shelf(api: ApiClient, namespace: str) -> Shelf:
    return Shelf(api, namespace)


async def test_a_volume_that_is_kept_for_one_claim_is_not_given_to_another(api: ApiClient, shelf: Shelf) -> None:
    await shelf.fill(["x", "y"])
    assert NO_CONTROLLER in await shelf.ask(api, "x")
    assert f"is kept for {shelf.namespace}/x" in await shelf.ask(api, "y")
    assert NO_CONTROLLER in await shelf.ask(api, "x"), "saying it twice is harmless"
    assert await shelf.owner() == "x"


async def test_of_many_who_ask_at_once_one_gets_the_volume_and_all_others_are_told(
    api: ApiClient, shelf: Shelf
) -> None:
    names = [f"c{index}" for index in range(8)]
    await shelf.fill(names)
    answers = dict(zip(names, await asyncio.gather(*(shelf.ask(api, name) for name in names)), strict=True))
    winners = [name for name, answer in answers.items() if NO_CONTROLLER in answer]
    assert winners == [await shelf.owner()], answers
    assert all(answers.values())


async def test_a_claim_whose_write_landed_unheard_is_not_robbed(
    api: ApiClient, proxied: ApiClient, proxy: FaultProxy, shelf: Shelf
) -> None:
    await shelf.fill(["x", "y"])
    proxy.inject(LoseAnswer(), when=matching("PATCH", "/persistentvolumes/"))
    assert await shelf.ask(proxied, "x")
    assert "is kept for" in await shelf.ask(api, "y")
    assert NO_CONTROLLER in await shelf.ask(api, "x")
    assert await shelf.owner() == "x"
