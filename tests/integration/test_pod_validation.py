"""Our own judgement of where pods may want to run is the API server's."""

from __future__ import annotations

from typing import Any

import pytest

from muster.kube.client import ApiClient
from muster.kube.errors import Invalid
from muster.kube.resource import PODS
from tests.engine.placements import ALLOWED, REFUSED

CONTAINER = {"name": "c", "image": "i"}


def _compares(spec: dict[str, Any]) -> bool:
    """Whether it asks what servers know only behind a feature gate (KEP-5471)."""
    return any(each.get("operator") in ("Gt", "Lt") for each in spec.get("tolerations", ()))


async def _try(api: ApiClient, namespace: str, spec: dict[str, Any]) -> None:
    containers = [{**CONTAINER, **each} for each in spec.get("containers", [{}])]
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": namespace},
        "spec": {**spec, "containers": containers},
    }
    await api.create(PODS, namespace, body, dry_run=True)


async def test_the_server_refuses_what_we_refuse(api: ApiClient, namespace: str) -> None:
    for spec, path in REFUSED:
        with pytest.raises(Invalid) as caught:
            await _try(api, namespace, spec)
        assert path.split("[")[0] in str(caught.value), (spec, str(caught.value))


async def test_the_server_allows_what_we_allow(api: ApiClient, namespace: str) -> None:
    for spec in ALLOWED:
        if not _compares(spec):
            await _try(api, namespace, spec)
