"""The binder against a real API server: what the server says when a pod is gone, replaced, taken, gated, or slow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from muster.engine.backoff import Backoff
from muster.engine.binder import Binder, Patience
from muster.engine.clock import SystemClock
from muster.kube.client import ApiClient
from muster.kube.informer import Informer
from muster.kube.objects import Pod
from muster.kube.resource import PODS
from muster.scheduler.outcome import Binding
from tests.integration.fault_proxy import (
    Answer,
    Drop,
    FaultProxy,
    LoseAnswer,
    Phase,
    SpoilAnswer,
    StallAnswer,
    Write,
    matching,
)
from tests.integration.gang_objects import GATE, Gangs, eventually

BINDING = matching("POST", "/binding$")
GATE_REMOVAL = matching("PATCH", "/pods/")


class Bench:
    """A binder behind the proxy, and what it reported."""

    def __init__(self, client: ApiClient, gangs: Gangs) -> None:
        self.gangs = gangs
        self.bound: list[str] = []
        self.failed: list[str] = []
        self.pods = Informer(client, PODS, Pod, namespace=gangs.namespace)
        self.binder = Binder(
            client,
            self.pods,
            SystemClock(),
            gate=GATE,
            bound=lambda bindings: self.bound.extend(binding.pod for binding in bindings),
            failed=lambda binding, complaint: self.failed.append(binding.pod),
            patience=Patience(writes=3, backoff=Backoff(first=0.02, limit=0.1)),
        )

    async def bind(self, pod: Pod, node: str) -> None:
        """Have one pod bound and wait for the end of it."""
        await eventually(lambda: self.pods.get(self.gangs.namespace, pod.metadata.name) is not None, "the pod is shown")
        meta = pod.metadata
        self.binder.post([Binding(meta.uid, self.gangs.namespace, meta.name, node, "")])
        await eventually(lambda: self.binder.idle, "the binding has an end")


@pytest.fixture
async def gangs(api: ApiClient, namespace: str) -> Gangs:
    return Gangs(api, namespace)


@pytest.fixture
async def bench(proxied: ApiClient, gangs: Gangs) -> AsyncIterator[Bench]:
    made = Bench(proxied, gangs)
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(made.pods.run()), group.create_task(made.binder.run())]
        yield made
        for task in running:
            task.cancel()


async def test_a_gated_pod_is_bound_with_two_writes(bench: Bench, gangs: Gangs, proxy: FaultProxy) -> None:
    await bench.bind(await gangs.pod("p"), "n1")
    found = await gangs.read_pod("p")
    assert (found.spec.node_name, found.spec.scheduling_gates) == ("n1", [])
    assert (bench.bound, proxy.writes) == (["p"], 2)


async def test_a_pod_without_our_gate_is_bound_with_one_write(bench: Bench, gangs: Gangs, proxy: FaultProxy) -> None:
    await bench.bind(await gangs.pod("p", gates=()), "n1")
    assert (await gangs.read_pod("p")).spec.node_name == "n1"
    assert (bench.bound, proxy.writes) == (["p"], 1)


@pytest.mark.parametrize(("group", "kept"), [("ray.io", False), ("example.org", True)])
async def test_of_pods_that_we_made_nobody_keeps_who_set_which_field(
    bench: Bench, gangs: Gangs, group: str, kept: bool
) -> None:
    owner = {"apiVersion": f"{group}/v1", "kind": "RayCluster", "name": "demo", "uid": "o", "controller": True}
    await bench.bind(await gangs.pod("p", owner=owner), "n1")
    await gangs.api.patch(PODS, gangs.namespace, "p", {"status": {"phase": "Running"}}, subresource="status")
    found = await gangs.api.get(PODS, gangs.namespace, "p")
    assert found["spec"]["nodeName"] == "n1"
    assert ("managedFields" in found["metadata"]) is kept


async def test_a_gate_of_another_stays_and_keeps_the_pod_from_being_bound(bench: Bench, gangs: Gangs) -> None:
    await bench.bind(await gangs.pod("p", gates=("example.com/a", GATE, "example.com/b")), "n1")
    found = await gangs.read_pod("p")
    assert [gate.name for gate in found.spec.scheduling_gates] == ["example.com/a", "example.com/b"]
    assert (found.spec.node_name, bench.bound, bench.failed) == (None, [], ["p"])


LANDED: dict[str, tuple[Any, Any]] = {
    "the answer to the binding is lost": (LoseAnswer(), BINDING),
    "the answer to the binding comes too late": (StallAnswer(), BINDING),
    "the answer denies the binding": (SpoilAnswer(Answer(500, "InternalError")), BINDING),
    "a proxy in between says 409": (SpoilAnswer(Answer(409, "Conflict")), BINDING),
    "the answer to the gate's removal is lost": (LoseAnswer(), GATE_REMOVAL),
}


@pytest.mark.parametrize(("fault", "when"), LANDED.values(), ids=LANDED.keys())
async def test_a_write_that_landed_is_not_repeated(
    bench: Bench, gangs: Gangs, proxy: FaultProxy, fault: Any, when: Any
) -> None:
    injection = proxy.inject(fault, when=when)
    await bench.bind(await gangs.pod("p"), "n1")
    assert injection.hits == 1
    assert (await gangs.read_pod("p")).spec.node_name == "n1"
    assert (bench.bound, bench.failed, proxy.writes) == (["p"], [], 2)


NOT_LANDED: dict[str, Any] = {
    "429": Answer(429, "TooManyRequests", retry_after=0),
    "500": Answer(500, "InternalError"),
    "503": Answer(503, "ServiceUnavailable"),
    "409 out of the blue": Answer(409, "Conflict"),
    "no answer": Drop(),
}


@pytest.mark.parametrize("when", [BINDING, GATE_REMOVAL], ids=["binding", "gate"])
@pytest.mark.parametrize("fault", NOT_LANDED.values(), ids=NOT_LANDED.keys())
async def test_a_write_that_did_not_land_is_repeated(
    bench: Bench, gangs: Gangs, proxy: FaultProxy, fault: Any, when: Any
) -> None:
    proxy.inject(fault, when=when, times=2)
    await bench.bind(await gangs.pod("p"), "n1")
    assert (await gangs.read_pod("p")).spec.node_name == "n1"
    assert (bench.bound, bench.failed) == (["p"], [])


async def test_a_server_that_never_takes_the_binding_has_the_pod_handed_back(
    bench: Bench, gangs: Gangs, proxy: FaultProxy
) -> None:
    injection = proxy.inject(Answer(500, "InternalError"), when=BINDING, times=None)
    await bench.bind(await gangs.pod("p"), "n1")
    found = await gangs.read_pod("p")
    assert (bench.bound, bench.failed, injection.hits) == ([], ["p"], 3)
    assert (found.spec.node_name, found.spec.scheduling_gates) == (None, []), "ungated, and nobody's but ours"
    injection.remove()
    await bench.bind(found, "n2")
    assert ((await gangs.read_pod("p")).spec.node_name, bench.bound) == ("n2", ["p"])


Meddling = Callable[[Gangs, Pod], Awaitable[Any]]


async def delete(gangs: Gangs, pod: Pod) -> None:
    await gangs.api.delete(PODS, gangs.namespace, pod.metadata.name, grace_seconds=0)


async def replace(gangs: Gangs, pod: Pod) -> None:
    await delete(gangs, pod)
    await gangs.pod(pod.metadata.name)


async def bind_elsewhere(gangs: Gangs, pod: Pod) -> None:
    if pod.spec.scheduling_gates:
        await gangs.api.patch(PODS, gangs.namespace, pod.metadata.name, {"spec": {"schedulingGates": None}})
    await gangs.api.bind(gangs.namespace, pod.metadata.name, uid=pod.metadata.uid, node="n9")


MEDDLING = [delete, replace, bind_elsewhere]


@pytest.mark.parametrize("when", [BINDING, GATE_REMOVAL], ids=["before the binding", "before the gate's removal"])
@pytest.mark.parametrize("meddle", MEDDLING, ids=lambda function: function.__name__)
async def test_a_pod_that_another_takes_away_meanwhile_is_left_alone(
    bench: Bench, gangs: Gangs, proxy: FaultProxy, meddle: Meddling, when: Any
) -> None:
    pod = await gangs.pod("p")

    async def strike(write: Write) -> None:
        if write.phase is Phase.BEFORE and write.number == 1:
            await meddle(gangs, await gangs.read_pod("p"))

    proxy.on_write(strike, when=when)
    await bench.bind(pod, "n1")
    assert (bench.bound, bench.failed) == ([], [])
    assert "n1" not in (await gangs.bound()).values()


async def test_many_pods_are_bound_at_once_and_each_once(bench: Bench, gangs: Gangs, proxy: FaultProxy) -> None:
    pods = [await gangs.pod(f"p{index}") for index in range(30)]
    await eventually(lambda: len(bench.pods.list()) == 30, "the pods are shown")
    bench.binder.post(Binding(pod.metadata.uid, gangs.namespace, pod.metadata.name, "n1", "") for pod in pods)
    await eventually(lambda: bench.binder.idle, "all bindings have an end")
    assert len(await gangs.bound()) == 30
    # A busy machine may time out on an answer, and then it is read and written once more: never more than once bound.
    assert proxy.writes >= 60
    assert len(bench.bound) == len(set(bench.bound)) == 30
