"""The operator's parts are tested with the permissions that it is installed with, and a missing one fails a test."""

from __future__ import annotations

import pytest

from muster.kube.client import ApiClient
from muster.kube.config import Connection
from muster.kube.errors import Forbidden
from muster.kube.resource import PODS, SECRETS


async def test_a_verb_that_the_cluster_role_lacks_is_noticed(
    connection: Connection, namespace: str, refused: list[str]
) -> None:
    async with ApiClient(connection) as client:
        assert await client.list(PODS, namespace) == []
        with pytest.raises(Forbidden):
            await client.list(SECRETS, namespace)
    (message,) = refused
    refused.clear()
    assert 'cannot list resource "secrets"' in message
