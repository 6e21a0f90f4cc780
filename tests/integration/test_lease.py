"""Leader election on a real API server."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from muster.kube.client import ApiClient
from muster.kube.config import Connection
from muster.kube.lease import LeaderElector, Lease
from muster.kube.resource import LEASES
from tests.integration.fault_proxy import Drop, FaultProxy, LoseAnswer, matching
from tests.integration.informers import eventually


@pytest.fixture
def connection(administrator: Connection) -> Connection:
    """Give an administrator's: the lease is tested in a namespace that is not the operator's."""
    return administrator


class Candidate:
    """A process that competes for the lease and counts how often it has begun and ended to lead."""

    def __init__(self, client: ApiClient, namespace: str, identity: str) -> None:
        self.elector = LeaderElector(
            client, namespace, "muster", identity, lease_seconds=5, margin=2.0, retry_seconds=0.2
        )
        self.begun = 0
        self.ended = 0
        self.task = asyncio.create_task(self.elector.run(self._lead))

    @property
    def leads(self) -> bool:
        return self.begun > self.ended

    async def _lead(self) -> None:
        self.begun += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.ended += 1

    async def stop(self) -> None:
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task


async def test_one_of_two_leads_and_the_other_follows_when_it_stops(api: ApiClient, namespace: str) -> None:
    first = Candidate(api, namespace, "first")
    await eventually(lambda: first.leads)
    second = Candidate(api, namespace, "second")
    lease = await api.get(LEASES, namespace, "muster", decode=Lease)
    assert lease.spec.holder_identity == "first"
    assert not second.leads

    await first.stop()
    released = await api.get(LEASES, namespace, "muster", decode=Lease)
    assert released.spec.holder_identity in ("", "second", None)
    await eventually(lambda: second.leads)
    lease = await api.get(LEASES, namespace, "muster", decode=Lease)
    assert (lease.spec.holder_identity, lease.spec.lease_duration_seconds) == ("second", 5)
    await second.stop()


async def test_a_leader_that_is_cut_off_stops_before_another_starts(
    proxied: ApiClient, proxy: FaultProxy, api: ApiClient, namespace: str
) -> None:
    cut_off = Candidate(proxied, namespace, "cut-off")
    await eventually(lambda: cut_off.leads)
    other = Candidate(api, namespace, "other")
    both: list[bool] = []
    blocked = proxy.inject(Drop(), when=matching(path="/leases"), times=None)

    def other_leads() -> bool:
        both.append(cut_off.leads and other.leads)
        return other.leads

    await eventually(other_leads)
    assert not any(both)
    assert not cut_off.leads
    blocked.remove()
    await other.stop()
    await eventually(lambda: cut_off.leads)
    assert cut_off.begun == 2
    await cut_off.stop()


async def test_a_renewal_whose_answer_is_lost_does_not_cost_the_lead(
    proxied: ApiClient, proxy: FaultProxy, namespace: str
) -> None:
    candidate = Candidate(proxied, namespace, "only")
    await eventually(lambda: candidate.leads)
    proxy.inject(LoseAnswer(), when=matching("PUT", "/leases/"))
    renewed = proxy.writes
    await eventually(lambda: proxy.writes >= renewed + 4)
    assert (candidate.begun, candidate.ended) == (1, 0)
    await candidate.stop()


async def test_a_lease_that_somebody_deletes_is_made_again(api: ApiClient, namespace: str) -> None:
    candidate = Candidate(api, namespace, "only")
    await eventually(lambda: candidate.leads)
    before = await api.get(LEASES, namespace, "muster", decode=Lease)
    await api.delete(LEASES, namespace, "muster")

    async def made_again() -> bool:
        found = await api.list(LEASES, namespace, decode=Lease)
        return bool(found) and found[0].metadata.uid != before.metadata.uid

    async with asyncio.timeout(20):
        while not await made_again():  # noqa: ASYNC110 - what is waited for happens in the API server
            await asyncio.sleep(0.05)
    assert (candidate.begun, candidate.ended) == (1, 0)
    await candidate.stop()


async def test_work_that_fails_ends_the_election_with_its_error_and_frees_the_lease(
    api: ApiClient, namespace: str
) -> None:
    async def fail() -> None:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        await LeaderElector(api, namespace, "muster", "me").run(fail)
    lease = await api.get(LEASES, namespace, "muster", decode=Lease)
    assert lease.spec.holder_identity in ("", None)
