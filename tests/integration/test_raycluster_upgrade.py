"""`upgradeStrategy: Recreate` on a real API server."""

from __future__ import annotations

from typing import Any

import pytest

from muster.kube.resource import PODGROUPS, PODS, RAYCLUSTERS
from tests.integration.fault_proxy import Answer, Drop, FaultProxy, LoseAnswer, matching
from tests.integration.faults import Fault
from tests.integration.observed import Observed
from tests.integration.operators import Operator, eventually
from tests.integration.ray_dashboard import RayDashboards
from tests.integration.ray_manifests import ray_cluster, template, worker_group
from tests.integration.stand_ins import StandIns

pytest_plugins = ("tests.integration.controller_fixtures",)

RECREATE = {"type": "Recreate"}
HASH = "muster.dev/recreate-hash"


async def create(seen: Observed, *groups: dict[str, Any], **spec: Any) -> set[str]:
    """Make a cluster of a head and two workers and wait until it is ready; the UIDs of its pods."""
    manifest = ray_cluster("demo", *groups, **{"upgradeStrategy": RECREATE, **spec})
    await seen.api.create(RAYCLUSTERS, seen.namespace, manifest)
    await seen.cluster_state("demo", "ready")
    return await uids(seen)


async def uids(seen: Observed) -> set[str]:
    return {pod["metadata"]["uid"] for pod in await seen.pods()}


async def change(seen: Observed, **spec: Any) -> None:
    await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", {"spec": spec})


async def all_anew(seen: Observed, old: set[str], number: int = 3) -> None:
    async def replaced() -> bool:
        now = await uids(seen)
        return len(now) == number and not now & old

    await eventually(replaced, f"{number} pods, none of them an old one")


def image(name: str) -> dict[str, Any]:
    changed = template()
    changed["spec"]["containers"][0]["image"] = name
    return changed


@pytest.mark.usefixtures("operator")
async def test_a_changed_image_replaces_all_pods(seen: Observed) -> None:
    old = await create(seen)
    await change(seen, headGroupSpec={"template": image("rayproject/ray:2.53.0")})
    await all_anew(seen, old)
    assert {pod["spec"]["containers"][0]["image"] for pod in await seen.pods("headgroup")} == {"rayproject/ray:2.53.0"}
    note = await seen.event("DeletedPod", "upgradeStrategy is Recreate")
    assert "3" in note
    await seen.cluster_state("demo", "ready")
    group = await seen.get(PODGROUPS, "ray-demo-pg")
    assert group is not None
    assert group["spec"]["minMember"] == 3


@pytest.mark.usefixtures("operator")
async def test_nothing_new_is_made_while_something_old_is_there(seen: Observed) -> None:
    old = await create(seen)
    (head,) = await seen.pods("headgroup")
    name = head["metadata"]["name"]
    finalizers = {"metadata": {"finalizers": ["example.org/stays"]}}
    await seen.api.patch(PODS, seen.namespace, name, finalizers)
    await change(seen, rayVersion="2.53.0")
    await seen.event("DeletedPod")

    async def only_the_old_head() -> bool:
        return [pod["metadata"]["name"] for pod in await seen.all(PODS)] == [name]

    await eventually(only_the_old_head, "the old head alone")
    await seen.api.patch(PODS, seen.namespace, name, {"metadata": {"finalizers": None}})
    await all_anew(seen, old)


@pytest.mark.usefixtures("operator")
async def test_scaling_and_another_strategy_replace_nothing(seen: Observed) -> None:
    old = await create(seen, worker_group(replicas=1))
    await change(seen, workerGroupSpecs=[worker_group(replicas=2)])

    async def grown() -> bool:
        return len(await uids(seen)) == 3

    await eventually(grown, "one worker more")
    assert await uids(seen) > old
    before = await uids(seen)
    await change(seen, upgradeStrategy={"type": "None"}, rayVersion="2.53.0")
    cluster = await seen.get(RAYCLUSTERS, "demo")
    assert cluster is not None
    generation = cluster["metadata"]["generation"]
    await seen.until(
        RAYCLUSTERS, "demo", lambda it: it["status"]["observedGeneration"] == generation, "the change was looked at"
    )
    assert await uids(seen) == before
    # The change that was let pass is made up for when the strategy is set.
    await change(seen, upgradeStrategy=RECREATE)
    await all_anew(seen, before)


@pytest.mark.usefixtures("operator")
async def test_pods_that_do_not_tell_their_generation_are_taken_as_they_are(seen: Observed) -> None:
    old = await create(seen, upgradeStrategy=None)
    for pod in await seen.pods():
        strange = {HASH: None, "ray.io/upgrade-strategy-recreate-hash": "KUBERAYS", "ray.io/kuberay-version": "v1.7.0"}
        await seen.api.patch(PODS, seen.namespace, pod["metadata"]["name"], {"metadata": {"annotations": strange}})
    await change(seen, upgradeStrategy=RECREATE)

    async def told() -> bool:
        return all(HASH in pod["metadata"]["annotations"] for pod in await seen.pods())

    await eventually(told, "all pods tell their generation")
    assert await uids(seen) == old
    (head,) = await seen.pods("headgroup")
    assert head["metadata"]["annotations"]["ray.io/upgrade-strategy-recreate-hash"] != "KUBERAYS"
    await change(seen, rayVersion="2.53.0")
    await all_anew(seen, old)


async def test_an_upgrade_that_was_cut_short_after_the_head_is_finished(seen: Observed, operator: Operator) -> None:
    old = await create(seen)
    await operator.kill()
    await change(seen, rayVersion="2.53.0")
    (head,) = await seen.pods("headgroup")
    await seen.api.delete(PODS, seen.namespace, head["metadata"]["name"], grace_seconds=0)
    await operator.start()
    await all_anew(seen, old)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(LoseAnswer(), id="it lands and nobody is told"),
        pytest.param(Drop(), id="it never arrives"),
        pytest.param(Answer(500, "InternalError"), id="500"),
        pytest.param(Answer(409, "Conflict"), id="409"),
    ],
)
async def test_an_upgrade_whose_deletes_go_wrong_makes_one_new_generation(
    proxy: FaultProxy, seen: Observed, stand_ins: StandIns, dashboards: RayDashboards, fault: Fault
) -> None:
    injection = proxy.inject(fault, when=matching("DELETE", "/pods/"), times=2)
    async with Operator(proxy.connection(), seen.namespace, dashboards):
        old = await create(seen)
        await change(seen, rayVersion="2.53.0")
        await all_anew(seen, old)
        await seen.cluster_state("demo", "ready")
        await seen.until(RAYCLUSTERS, "demo", lambda it: not it["status"].get("reason"), "nothing is amiss any more")
    assert injection.hits == 2
    assert len(await stand_ins.all_that_ever_were(PODS)) == 6
