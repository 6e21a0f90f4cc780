"""The operator's parts are tested with the permissions that it is installed with, and a missing one fails a test."""

from __future__ import annotations

import pytest

from muster.app import Operator, OwnPod
from muster.kube.client import ApiClient
from muster.kube.config import Connection
from muster.kube.errors import Forbidden
from muster.kube.events import ObjectReference
from muster.kube.resource import PODS, SECRETS
from tests.cluster.control_plane import ControlPlane
from tests.integration.permissions import may
from tests.operator_options import operator_options


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


@pytest.mark.usefixtures("account")
async def test_all_that_the_operator_watches_it_may_list_and_watch(
    control_plane: ControlPlane, connection: Connection
) -> None:
    options = operator_options(submitter_image=None)
    async with ApiClient(connection) as client:
        operator = Operator(options, connection, client)
        operator._parts(OwnPod("muster:1", ObjectReference("v1", "Pod", "muster-system", "muster", "u")))
    watched = [informer.resource for informer in operator._informers]
    assert len(watched) > 10
    assert [one.plural for one in watched for verb in ("list", "watch") if not may(control_plane, verb, one)] == []
