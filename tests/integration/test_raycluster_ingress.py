"""The Ingress of a cluster on a real API server."""

from __future__ import annotations

from typing import Any

import pytest

from muster.kube.resource import INGRESSES, RAYCLUSTERS
from tests.integration.observed import Observed
from tests.integration.ray_manifests import ray_cluster, template

pytest_plugins = ("tests.integration.controller_fixtures",)
pytestmark = pytest.mark.usefixtures("operator")

NAME = "demo-head-ingress"


async def create(seen: Observed, **head: Any) -> None:
    group = {"rayStartParams": {}, "template": template(), "enableIngress": True, **head}
    await seen.api.create(RAYCLUSTERS, seen.namespace, ray_cluster("demo", headGroupSpec=group))


async def change(seen: Observed, **head: Any) -> None:
    await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", {"spec": {"headGroupSpec": head}})


def host(ingress: dict[str, Any]) -> str | None:
    value: str | None = ingress["spec"]["rules"][0].get("host")
    return value


async def test_it_is_made_changed_and_taken_away_as_the_spec_says(seen: Observed) -> None:
    await create(seen)
    made = await seen.until(INGRESSES, NAME, lambda it: True, "an Ingress")
    assert made["spec"]["rules"][0]["http"]["paths"][0]["path"] == "/demo/(.*)"
    cluster = await seen.get(RAYCLUSTERS, "demo")
    assert cluster is not None
    assert made["metadata"]["ownerReferences"][0]["uid"] == cluster["metadata"]["uid"]
    await seen.event("CreatedIngress", NAME)

    # What others note on it stays.
    note = {"metadata": {"annotations": {"controller": "was here"}}}
    await seen.api.patch(INGRESSES, seen.namespace, NAME, note)
    await change(seen, ingressOptions={"host": "ray.example.org"})
    changed = await seen.until(INGRESSES, NAME, lambda it: host(it) == "ray.example.org", "the host")
    assert changed["metadata"]["uid"] == made["metadata"]["uid"]
    assert changed["metadata"]["annotations"]["controller"] == "was here"
    await seen.event("UpdatedIngress", NAME)

    await change(seen, enableIngress=None)
    await seen.gone(INGRESSES)
    await seen.event("DeletedIngress", NAME)


async def test_one_of_somebody_else_is_left_alone_and_the_cluster_comes_up_without(seen: Observed) -> None:
    foreign = {
        "metadata": {"name": NAME},
        "spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 1}}}},
    }
    before = await seen.api.create(INGRESSES, seen.namespace, foreign)
    await create(seen)
    await seen.event("NameTaken", f"Ingress {NAME} exists already")
    await seen.cluster_state("demo", "ready")
    assert await seen.get(INGRESSES, NAME) == before
    await change(seen, enableIngress=False)
    await seen.api.delete(INGRESSES, seen.namespace, NAME)
    await change(seen, enableIngress=True)
    await seen.event("CreatedIngress", NAME)


async def test_one_that_the_api_server_refuses_is_told_and_holds_up_nobody(seen: Observed) -> None:
    await create(seen, ingressOptions={"path": "//"})
    await seen.event("FailedToCreateIngress", "//")
    await seen.cluster_state("demo", "ready")
    await change(seen, ingressOptions={"path": "/ray"})
    await seen.until(INGRESSES, NAME, lambda it: True, "an Ingress")
    await change(seen, ingressOptions={"path": "//"})
    await seen.event("FailedToUpdateIngress", "//")


async def test_one_that_vanishes_is_made_again(seen: Observed) -> None:
    await create(seen)
    made = await seen.until(INGRESSES, NAME, lambda it: True, "an Ingress")
    await seen.api.delete(INGRESSES, seen.namespace, NAME)
    await seen.until(INGRESSES, NAME, lambda it: it["metadata"]["uid"] != made["metadata"]["uid"], "another Ingress")
