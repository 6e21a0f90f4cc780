"""The webhook's certificate: one for all processes, renewed, and trusted before it is shown."""

from __future__ import annotations

import asyncio
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from muster.admission.certificate_files import CertificateFiles
from muster.admission.certificate_keeper import CONFIGURATION, SECRET, CertificateKeeper
from muster.admission.certificates import LIFETIME, RENEWAL
from muster.controllers.clock import SystemClock
from muster.kube.client import ApiClient, PatchKind
from muster.kube.config import Connection
from muster.kube.errors import ApiError, NotFound
from muster.kube.resource import SECRETS, VALIDATINGWEBHOOKCONFIGURATIONS
from tests.integration.fault_proxy import Drop, FaultProxy, LoseAnswer, matching
from tests.integration.permissions import NAMESPACE
from tests.integration.webhooks import LOCAL, configured


class ShiftedClock(SystemClock):
    """The machine's clock, some seconds ahead."""

    ahead = 0.0

    def now(self) -> float:
        """Unix time in seconds."""
        return super().now() + self.ahead


@pytest.fixture
async def installed(api: ApiClient, namespace: str, account: Path) -> AsyncIterator[None]:
    async with configured(api, namespace, 9):
        yield
    with suppress(NotFound):
        await api.delete(SECRETS, NAMESPACE, SECRET)


def keeper(client: ApiClient, folder: Path, clock: SystemClock | None = None) -> CertificateKeeper:
    folder.mkdir(exist_ok=True)
    return CertificateKeeper(client, clock or SystemClock(), NAMESPACE, (LOCAL,), CertificateFiles(folder))


async def secret(api: ApiClient) -> dict[str, bytes]:
    data = (await api.get(SECRETS, NAMESPACE, SECRET))["data"]
    return {name: b64decode(value) for name, value in data.items()}


async def trusted(api: ApiClient) -> list[bytes]:
    configuration = await api.get(VALIDATINGWEBHOOKCONFIGURATIONS, None, CONFIGURATION)
    return [b64decode(webhook["clientConfig"]["caBundle"]) for webhook in configuration["webhooks"]]


async def look_until_done(*keepers: CertificateKeeper) -> None:
    """Let each look until it has nothing to do any more, all at once."""

    async def one(each: CertificateKeeper) -> None:
        for _ in range(10):
            try:
                if await each.look():
                    return
            except ApiError:
                continue
        raise AssertionError("ten looks were not enough")

    await asyncio.gather(*(one(each) for each in keepers))


@pytest.mark.usefixtures("installed")
async def test_processes_that_start_together_show_one_certificate_that_is_trusted(
    api: ApiClient, connection: Connection, tmp_path: Path
) -> None:
    async with ApiClient(connection) as client:
        keepers = [keeper(client, tmp_path / str(number)) for number in range(3)]
        await look_until_done(*keepers)
        stored = await secret(api)
        assert {each.files.certificate.read_bytes() for each in keepers} == {stored["tls.crt"]}
        assert {each.files.key.read_bytes() for each in keepers} == {stored["tls.key"]}
        assert await trusted(api) == [stored["ca.crt"]] * 2
        assert all(each.files.key.stat().st_mode & 0o077 == 0 for each in keepers)


@pytest.mark.usefixtures("installed")
async def test_a_look_that_finds_all_well_writes_nothing(
    api: ApiClient, connection: Connection, tmp_path: Path
) -> None:
    async with ApiClient(connection) as client:
        one = keeper(client, tmp_path)
        await look_until_done(one)
        before = [
            await api.get(SECRETS, NAMESPACE, SECRET),
            await api.get(VALIDATINGWEBHOOKCONFIGURATIONS, None, CONFIGURATION),
        ]
        assert await one.look()
        after = [
            await api.get(SECRETS, NAMESPACE, SECRET),
            await api.get(VALIDATINGWEBHOOKCONFIGURATIONS, None, CONFIGURATION),
        ]
        assert after == before


@pytest.mark.usefixtures("installed")
async def test_a_certificate_near_its_end_is_renewed_and_the_one_before_is_trusted_on(
    api: ApiClient, connection: Connection, tmp_path: Path
) -> None:
    clock = ShiftedClock()
    async with ApiClient(connection) as client:
        one = keeper(client, tmp_path, clock)
        await look_until_done(one)
        first = await secret(api)
        clock.ahead = (LIFETIME - RENEWAL - timedelta(hours=3)).total_seconds()
        await look_until_done(one)
        assert await secret(api) == first

        clock.ahead += timedelta(hours=3).total_seconds()
        await look_until_done(one)
        second = await secret(api)
        assert second["tls.crt"] != first["tls.crt"]
        assert second["ca.crt"].endswith(first["ca.crt"])
        assert one.files.certificate.read_bytes() == second["tls.crt"]

        clock.ahead += (LIFETIME - RENEWAL).total_seconds()
        await look_until_done(one)
        third = await secret(api)
        assert third["ca.crt"].count(b"BEGIN CERTIFICATE") == 2
        assert first["ca.crt"] not in third["ca.crt"]
        assert await trusted(api) == [third["ca.crt"]] * 2


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    "damage",
    [
        {"tls.crt": b64encode(b"nonsense").decode()},
        {"ca.crt": ""},
        {"ca.crt": None},
        {"tls.key": b64encode(b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n").decode()},
    ],
)
async def test_a_damaged_secret_is_replaced(
    api: ApiClient, connection: Connection, tmp_path: Path, damage: dict[str, Any]
) -> None:
    async with ApiClient(connection) as client:
        one = keeper(client, tmp_path)
        await look_until_done(one)
        first = await secret(api)
        await api.patch(SECRETS, NAMESPACE, SECRET, {"data": damage})
        await look_until_done(one)
        second = await secret(api)
        assert second["tls.crt"] != first["tls.crt"]
        assert await trusted(api) == [second["ca.crt"]] * 2


@pytest.mark.usefixtures("installed")
async def test_a_bundle_that_somebody_took_away_is_put_back(
    api: ApiClient, connection: Connection, tmp_path: Path
) -> None:
    async with ApiClient(connection) as client:
        one = keeper(client, tmp_path)
        await look_until_done(one)
        change = [{"op": "remove", "path": "/webhooks/1/clientConfig/caBundle"}]
        await api.patch(VALIDATINGWEBHOOKCONFIGURATIONS, None, CONFIGURATION, change, kind=PatchKind.JSON)
        await look_until_done(one)
        assert await trusted(api) == [(await secret(api))["ca.crt"]] * 2


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("fault", [Drop(), LoseAnswer()], ids=["lost", "landed unseen"])
@pytest.mark.parametrize("method", ["POST", "PATCH"])
async def test_a_write_that_is_lost_or_lands_unseen_ends_in_the_same_place(
    api: ApiClient, proxy: FaultProxy, proxied: ApiClient, tmp_path: Path, fault: Any, method: str
) -> None:
    proxy.inject(fault, when=matching(method=method))
    one = keeper(proxied, tmp_path)
    await look_until_done(one)
    stored = await secret(api)
    assert one.files.certificate.read_bytes() == stored["tls.crt"]
    assert await trusted(api) == [stored["ca.crt"]] * 2


async def test_where_the_webhook_is_not_installed_nothing_is_made(
    api: ApiClient, connection: Connection, tmp_path: Path
) -> None:
    async with ApiClient(connection) as client:
        assert not await keeper(client, tmp_path).look()
        with pytest.raises(NotFound):
            await api.get(SECRETS, NAMESPACE, SECRET)
