"""A token that Muster can't show to a dashboard is told with the Secret that should have it, and what to do."""

from __future__ import annotations

from typing import Any

import pytest

from muster.api.raycluster import RayCluster
from muster.controllers.tokens import Tokens
from muster.kube.errors import NotFound
from muster.kube.objects import ObjectMeta
from muster.kube.secret_objects import Secret
from muster.ray.jobs_api import DashboardUnreachable
from tests.controllers.fake_clock import FakeClock
from tests.integration.ray_manifests import cluster_spec


class _Secrets:
    def __init__(self, secret: Secret | None) -> None:
        self.secret = secret

    async def get(self, *_: Any, **__: Any) -> Secret:
        if self.secret is None:
            raise NotFound(404, "NotFound", "no such Secret")
        return self.secret


@pytest.mark.parametrize(
    ("secret", "what"),
    [
        pytest.param(None, "Secret demo, with the token of the dashboard, does not exist; make it again", id="gone"),
        pytest.param(
            Secret(metadata=ObjectMeta(name="demo")),
            "Secret demo has lost the token of the dashboard: its key auth_token is not there; edit it",
            id="emptied",
        ),
        pytest.param(
            Secret(metadata=ObjectMeta(name="demo"), data={"auth_token": "/wAKgIE="}),
            "Secret demo has lost the token of the dashboard: its key auth_token is not UTF-8; edit it",
            id="not UTF-8",
        ),
        pytest.param(
            Secret(metadata=ObjectMeta(name="demo"), data={"auth_token": "YQpi"}),
            "Secret demo has lost the token of the dashboard: its key auth_token has several lines; edit it",
            id="two lines",
        ),
    ],
)
async def test_a_token_that_is_missing_is_told_with_its_secret_and_where_the_token_still_is(
    secret: Secret | None, what: str
) -> None:
    spec = cluster_spec(authOptions={"mode": "token", "secretName": "demo"})
    cluster = RayCluster.parse({"metadata": {"name": "demo", "namespace": "team"}, "spec": spec})
    tokens = Tokens(_Secrets(secret), FakeClock())  # type: ignore[arg-type]
    with pytest.raises(DashboardUnreachable) as told:
        await tokens.of(cluster)
    assert what in str(told.value)
    assert "with what the head pod has in RAY_AUTH_TOKEN under the key auth_token" in str(told.value)
