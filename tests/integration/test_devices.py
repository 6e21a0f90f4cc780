"""Gangs that claim devices (DRA), on a real control plane with kube-scheduler, which allocates and binds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from muster.app import Operator
from muster.engine.delegation import delegation_patch, pinned_node
from muster.kube.client import ApiClient, PatchKind
from muster.kube.config import Connection
from muster.kube.errors import ApiError, Invalid
from muster.kube.objects import Pod
from muster.kube.resource import PODS, RAYCLUSTERS
from tests.cluster.control_plane import ControlPlane
from tests.integration.device_objects import DRIVER, Devices
from tests.integration.fault_proxy import FaultProxy, Hold, LoseAnswer, matching
from tests.integration.gang_objects import GATE, Gangs, eventually
from tests.integration.permissions import account_of_muster
from tests.integration.running_engine import RunningEngine, engine, gangs
from tests.operator_options import operator_options

__all__ = ["engine", "gangs"]

PATCH = matching("PATCH", "/pods/[^/]+$")


@pytest.fixture(scope="session")
def control_plane(scheduling_control_plane: ControlPlane) -> ControlPlane:
    """All that comes with the usual control plane is given by the one with kube-scheduler here."""
    return scheduling_control_plane


@pytest.fixture(scope="session")
def account(control_plane: ControlPlane) -> Path:
    """Give the kubeconfig of Muster's account on this control plane, not on the usual one."""
    return account_of_muster(control_plane)


@pytest.fixture
async def devices(gangs: Gangs) -> Devices:
    made = Devices(gangs)
    await made.clear_cluster()
    await made.make_class()
    return made


async def test_a_gang_with_a_device_for_each_is_started_as_a_whole(
    engine: RunningEngine, gangs: Gangs, devices: Devices
) -> None:
    for name in ("n1", "n2"):
        await devices.publish(await gangs.node(name), 1)
    await engine.start()
    names = await devices.gang("pg", 2)
    await gangs.wait_bound(names)
    assert set((await gangs.bound()).values()) == {gangs.node_name("n1"), gangs.node_name("n2")}
    for name in names:
        allocation = (await devices.read_claim(name)).status.allocation
        assert allocation is not None
        assert [each.pool for each in allocation.devices.results] == [(await gangs.bound())[name]]
    await gangs.play(*names)
    await gangs.wait_phase("pg", "Running")
    await engine.idle()
    assert (await gangs.read_group("pg")).status.running == 2

    async def told() -> bool:
        places = ", ".join(f"{pod} -> {node}" for pod, node in sorted((await gangs.bound()).items()))
        told = ("Delegated", f"2 pods are for default-scheduler to bind: {places}")
        return told in await gangs.events("PodGroup", "pg")

    await eventually(told, "an event tells who binds them")


async def test_a_gang_that_needs_more_devices_than_there_are_stays_gated_and_says_of_which_and_how_many(
    engine: RunningEngine, gangs: Gangs, devices: Devices
) -> None:
    for name in ("n1", "n2"):
        await devices.publish(await gangs.node(name), 1)
    await engine.start()
    names = await devices.gang("pg", 3)
    found = await gangs.wait_reason("pg", resource=f"deviceclass/{devices.device_class}")
    assert (found["code"], found["have"], found["need"]) == ("NotEnoughNodes", 2, 3)
    assert (found["requested"], found["free"], found["limit"]) == ("1", "0", "1")
    assert f"class {devices.device_class} (1 asked, 0 free of 1)" in found["message"]
    await engine.idle()
    assert await gangs.bound() == {}
    for name in names:
        assert [each.name for each in (await gangs.read_pod(name)).spec.scheduling_gates] == [GATE]
    await devices.publish(await gangs.node("n3"), 1)
    await gangs.wait_bound(names)


async def test_what_a_selector_does_not_select_is_no_place(
    engine: RunningEngine, gangs: Gangs, devices: Devices
) -> None:
    await devices.publish(await gangs.node("n1"), 4, model="t4", memory="16Gi")
    await devices.publish(await gangs.node("n2"), 4, model="a100", memory="80Gi")
    domain = f'["{DRIVER}"]'
    await devices.claim(
        "picky",
        2,
        f'device.attributes{domain}.model == "a100"',
        f'device.capacity{domain}.memory.compareTo(quantity("40Gi")) >= 0',
        f'device.attributes{domain}.driverVersion.isGreaterThan(semver("1.0.0"))',
    )
    await engine.start()
    await gangs.pod_group("pg", 1)
    await devices.pod("picky", "pg")
    await gangs.wait_bound(["picky"])
    assert await gangs.bound() == {"picky": gangs.node_name("n2")}


async def test_a_delegated_pod_that_kube_scheduler_can_not_place_is_rolled_back_with_its_gang(
    proxied: ApiClient, gangs: Gangs, devices: Devices
) -> None:
    """What ties devices together is kube-scheduler's business alone: here nothing can be tied."""
    for name in ("n1", "n2"):
        await devices.publish(await gangs.node(name), 2)
    await devices.claim("plain")
    await devices.claim_tied("tied", 2, "gpu.example.com/nosuch")
    engine = RunningEngine(proxied, gangs, repair_timeout=600.0)
    await engine.start()
    await gangs.pod_group("pg", 2)
    await devices.pod("plain", "pg")
    await devices.pod("tied", "pg")
    await gangs.wait_bound(["plain"])
    await eventually(lambda: told_of(gangs, "tied", "FailedScheduling"), "kube-scheduler refuses it")
    assert pinned_node(await gangs.read_pod("tied")) is not None
    engine.clock.wind(300)
    await engine.idle()
    assert set(await gangs.pods()) == {"plain", "tied"}
    engine.clock.wind(301)
    await eventually(lambda: are_gone(gangs, "plain", "tied"), "the whole gang is taken down")
    await gangs.wait_reason("pg", code="NotEnoughPods")
    await eventually(lambda: told_of(gangs, "tied", "Evict"), "an event tells why")
    await engine.kill()


async def told_of(gangs: Gangs, pod: str, reason: str) -> bool:
    return any(each == reason for each, _ in await gangs.events("Pod", pod))


async def are_gone(gangs: Gangs, *names: str) -> bool:
    return set(names).isdisjoint(await gangs.pods())


async def test_after_a_restart_a_pinned_pod_is_known_and_its_time_runs_on(
    engine: RunningEngine, gangs: Gangs, devices: Devices
) -> None:
    await devices.publish(await gangs.node("n1"), 2)
    await devices.claim_tied("tied", 2, "gpu.example.com/nosuch")
    await engine.start()
    await gangs.pod_group("pg", 1)
    await devices.pod("tied", "pg")
    await eventually(lambda: told_of(gangs, "tied", "FailedScheduling"), "kube-scheduler refuses it")
    await engine.kill()
    await engine.start()
    others = await devices.gang("others", 2)
    await gangs.wait_reason("others", resource=f"deviceclass/{devices.device_class}")
    engine.clock.wind(61)
    await eventually(lambda: are_gone(gangs, "tied"), "the pod is taken down")
    await gangs.wait_bound(others)


async def test_a_pod_that_a_tenant_makes_as_if_it_had_been_delegated_takes_no_room_and_has_to_be_made_anew(
    engine: RunningEngine, gangs: Gangs, devices: Devices
) -> None:
    node = await devices.gangs.node("n1", cpu="4")
    await engine.start()
    await gangs.pod_group("forged", 1)
    pin = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [pin]}}
    await devices.pod(
        "forged",
        "forged",
        claim="nowhere",
        gates=(),
        cpu="4",
        affinity={"nodeAffinity": required},
        annotations={"muster.dev/delegated-at": "2099-01-01T00:00:00Z"},
    )
    await gangs.wait_reason("forged", code="PodsGated")
    await gangs.wait_bound(await gangs.gang("honest", 2, cpu="2"))
    engine.clock.wind(61)
    await eventually(lambda: are_gone(gangs, "forged"), "the pod is taken away")
    assert set(await gangs.bound()) == {"honest-0", "honest-1"}


async def test_claims_are_waited_for_until_they_are_made_from_their_template(
    engine: RunningEngine, gangs: Gangs, devices: Devices
) -> None:
    await devices.publish(await gangs.node("n1"), 1)
    await engine.start()
    await gangs.pod_group("pg", 1)
    await devices.pod("p", "pg", template="later")
    await gangs.wait_reason("pg", message='p can\'t be placed yet: no ResourceClaim has been made for "gpu" yet')
    await devices.template("later")
    await gangs.wait_bound(["p"])


async def test_a_pod_of_our_own_scheduler_that_claims_devices_is_never_bound_and_says_what_to_do(
    engine: RunningEngine, gangs: Gangs, devices: Devices
) -> None:
    await devices.publish(await gangs.node("n1"), 1)
    await engine.start()
    await devices.gang("pg", 1, schedulerName=gangs.scheduler)
    found = await gangs.wait_reason("pg", code="NeedsDefaultScheduler")
    assert "make the pod with schedulerName default-scheduler" in found["message"]
    await engine.idle()
    assert await gangs.bound() == {}


async def test_a_patch_whose_answer_is_lost_is_not_sent_twice(
    engine: RunningEngine, gangs: Gangs, devices: Devices, proxy: FaultProxy
) -> None:
    await devices.publish(await gangs.node("n1"), 1)
    await engine.start()
    proxy.inject(LoseAnswer(), when=PATCH)
    names = await devices.gang("pg", 1)
    await gangs.wait_bound(names)
    await engine.idle()
    terms = (await gangs.read_pod("pg-0")).spec.affinity
    assert terms is not None
    assert terms.node_affinity is not None
    assert terms.node_affinity.required is not None
    assert [len(term.match_fields) for term in terms.node_affinity.required.node_selector_terms] == [1]


def in_zone(*values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "zone", "operator": "In", "values": list(values)}]}


AFFINITIES: dict[str, dict[str, Any] | None] = {
    "none": None,
    "a preference": {
        "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": in_zone("a")}]}
    },
    "pods only": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}
            ]
        }
    },
    "two terms": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [in_zone("a"), in_zone("b")]}
        }
    },
    "by name already, or a term that matches nothing": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n9"]}]},
                    {},
                ]
            }
        }
    },
}


@pytest.mark.parametrize("affinity", AFFINITIES.values(), ids=AFFINITIES.keys())
async def test_the_api_server_takes_the_patch_whatever_affinity_the_pod_has(
    api: ApiClient, gangs: Gangs, devices: Devices, affinity: dict[str, Any] | None
) -> None:
    spec: dict[str, Any] = {} if affinity is None else {"affinity": affinity}
    pod = await devices.pod("p", "pg", claim="missing", **spec)
    patch = delegation_patch(pod, GATE, "n1", 0.0)
    assert patch is not None
    patched = await api.patch(PODS, gangs.namespace, "p", patch, kind=PatchKind.JSON, decode=Pod)
    assert pinned_node(patched) == "n1"
    assert patched.spec.scheduling_gates == []


async def test_the_api_server_lets_a_pin_be_neither_taken_back_nor_put_on_another_pod(
    api: ApiClient, gangs: Gangs, devices: Devices
) -> None:
    pod = await devices.pod("p", "pg", claim="missing")
    patch = delegation_patch(pod, GATE, "n1", 0.0)
    assert patch is not None
    other = [{"op": "test", "path": "/metadata/uid", "value": "another"}, *patch[1:]]
    with pytest.raises(ApiError):
        await api.patch(PODS, gangs.namespace, "p", other, kind=PatchKind.JSON)
    await api.patch(PODS, gangs.namespace, "p", patch, kind=PatchKind.JSON)
    with pytest.raises(Invalid):
        await api.patch(PODS, gangs.namespace, "p", {"spec": {"schedulingGates": [{"name": GATE}]}})
    with pytest.raises(Invalid):
        await api.patch(PODS, gangs.namespace, "p", {"spec": {"affinity": None}})


async def test_devices_are_watched_from_the_first_pod_of_ours_that_claims_any(
    engine: RunningEngine, gangs: Gangs, devices: Devices, proxy: FaultProxy
) -> None:
    await devices.publish(await gangs.node("n1"), 1)
    await devices.claim("foreign")
    await devices.pod("foreign", "pg", schedulerName="third", gates=())
    await engine.start()
    await gangs.wait_bound(await gangs.gang("without", 1))
    await engine.idle()
    assert not [each for each in proxy.requests if "/resource.k8s.io/" in each.path]
    await gangs.wait_bound(await devices.gang("with", 1))
    watched = {each.path.rpartition("/")[2] for each in proxy.requests if "/resource.k8s.io/" in each.path}
    assert watched == {"deviceclasses", "resourceslices", "resourceclaims"}


WORKERS: dict[str, Any] = {
    "groupName": "gpu",
    "replicas": 2,
    "minReplicas": 2,
    "maxReplicas": 2,
    "rayStartParams": {},
    "template": {
        "spec": {
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}],
            "containers": [{"name": "worker", "image": "ray", "resources": {"claims": [{"name": "gpu"}]}}],
        }
    },
}
HEAD: dict[str, Any] = {
    "rayStartParams": {},
    "template": {"spec": {"containers": [{"name": "head", "image": "ray"}]}},
}


@pytest.fixture
async def operator(connection: Connection) -> AsyncIterator[None]:
    """Run the whole operator under its own rights."""
    options = operator_options()
    async with ApiClient(connection, user_agent="muster") as client:
        task = asyncio.create_task(Operator(options, connection, client).run())
        yield
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_ray_cluster_whose_workers_claim_devices_is_started_by_the_whole_operator_under_its_own_rights(
    operator: None, gangs: Gangs, devices: Devices
) -> None:
    for name in ("n1", "n2"):
        await devices.publish(await gangs.node(name), 1)
    await gangs.node("n3")
    await devices.template("one-gpu")
    cluster = {"headGroupSpec": HEAD, "workerGroupSpecs": [WORKERS]}
    body = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "demo"}, "spec": cluster}
    await gangs.api.create(RAYCLUSTERS, gangs.namespace, body)

    async def all_bound() -> bool:
        return len(await gangs.bound()) == 3

    await eventually(all_bound, "head and workers are bound", 60)
    pods = await gangs.api.list(PODS, gangs.namespace, decode=Pod)
    workers = [pod for pod in pods if pod.metadata.labels["ray.io/node-type"] == "worker"]
    assert {pod.spec.node_name for pod in workers} == {gangs.node_name("n1"), gangs.node_name("n2")}
    assert {pod.spec.scheduler_name for pod in workers} == {"default-scheduler"}
    assert {pod.spec.scheduler_name for pod in pods if pod not in workers} == {"muster"}


async def test_an_engine_that_dies_between_two_patches_of_a_gang_is_followed_by_one_that_completes_it(
    engine: RunningEngine, gangs: Gangs, devices: Devices, proxy: FaultProxy
) -> None:
    for name in ("n1", "n2"):
        await devices.publish(await gangs.node(name), 1)
    held = Hold()
    proxy.inject(held, when=matching("PATCH", "/pods/pg-1$"))
    await engine.start()
    names = await devices.gang("pg", 2)
    await asyncio.wait_for(held.reached.wait(), 20)
    await gangs.wait_bound(["pg-0"])
    await engine.kill()
    assert set(await gangs.bound()) == {"pg-0"}
    await engine.start()
    held.release.set()
    await gangs.wait_bound(names)
    assert len(set((await gangs.bound()).values())) == 2
