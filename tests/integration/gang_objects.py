"""What an engine test puts into the API server: nodes, queues, PodGroups and pods, each in one line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from muster.kube.client import ApiClient
from muster.kube.objects import Node, Pod, PodGroup, Queue
from muster.kube.resource import EVENTS, NODES, PODGROUPS, PODS, QUEUES

GATE = "muster.dev/gang"


class Gangs:
    """Writes and reads of a test, in its namespace, straight to the API server.

    `scheduler` is the schedulerName of this test's pods, so that what other tests left is none of its business; names
    of what has no namespace begin with the namespace.
    """

    def __init__(self, api: ApiClient, namespace: str) -> None:
        self.api = api
        self.namespace = namespace
        self.scheduler = f"muster-{namespace}"
        self.queue_name = f"{namespace}-q"

    def node_name(self, name: str) -> str:
        return f"{self.namespace}-{name}"

    async def clear_cluster(self) -> None:
        """Take away what earlier tests left and a decision would count: nodes, and gangs that reserve room."""
        for node in await self.api.list(NODES, decode=Node):
            await self.api.delete(NODES, None, node.metadata.name)
        for group in await self.api.list(PODGROUPS, decode=PodGroup):
            await self.api.delete(PODGROUPS, group.metadata.namespace, group.metadata.name)

    async def node(self, name: str, *, cpu: str = "4", pods: str = "110") -> str:
        full = self.node_name(name)
        await self.api.create(NODES, None, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": full}})
        amounts = {"cpu": cpu, "memory": "16Gi", "pods": pods}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
        # Without this the API server's admission would keep a taint on a node that no kubelet has spoken for.
        await self.api.patch(NODES, None, full, {"status": status}, subresource="status")
        await self.api.patch(NODES, None, full, {"spec": {"taints": None}})
        return full

    async def queue(self, **spec: Any) -> None:
        meta = {"name": self.queue_name}
        body = {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": meta, "spec": {"weight": 1, **spec}}
        await self.api.create(QUEUES, None, body)

    async def pod_group(
        self, name: str, min_member: int, *, annotations: dict[str, str] | None = None, **spec: Any
    ) -> None:
        body = {
            "apiVersion": PODGROUPS.api_version,
            "kind": "PodGroup",
            "metadata": {"name": name, "annotations": annotations or {}},
            "spec": {"minMember": min_member, "queue": self.queue_name, **spec},
            "status": {"phase": "Pending"},
        }
        await self.api.create(PODGROUPS, self.namespace, body)

    async def pod(
        self,
        name: str,
        group: str | None = None,
        *,
        cpu: str = "1",
        gates: tuple[str, ...] = (GATE,),
        owner: dict[str, Any] | None = None,
        **spec: Any,
    ) -> Pod:
        notes = {} if group is None else {"scheduling.k8s.io/group-name": group}
        container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "annotations": {**notes, **spec.pop("annotations", {})},
                "ownerReferences": [owner] if owner else None,
            },
            "spec": {
                "schedulerName": self.scheduler,
                "containers": [container],
                "schedulingGates": [{"name": gate} for gate in gates],
                "automountServiceAccountToken": False,
                "terminationGracePeriodSeconds": 0,
                **spec,
            },
        }
        return await self.api.create(PODS, self.namespace, body, decode=Pod)

    async def gang(self, name: str, size: int, *, cpu: str = "1", **spec: Any) -> list[str]:
        """Make a PodGroup and all its pods; returns the pods' names."""
        await self.pod_group(name, size, **spec)
        names = [f"{name}-{index}" for index in range(size)]
        for each in names:
            await self.pod(each, name, cpu=cpu)
        return names

    async def read_pod(self, name: str) -> Pod:
        return await self.api.get(PODS, self.namespace, name, decode=Pod)

    async def read_group(self, name: str) -> PodGroup:
        return await self.api.get(PODGROUPS, self.namespace, name, decode=PodGroup)

    async def read_queue(self) -> Queue:
        return await self.api.get(QUEUES, None, self.queue_name, decode=Queue)

    async def pods(self) -> list[str]:
        """The pods of the namespace."""
        return [pod.metadata.name for pod in await self.api.list(PODS, self.namespace, decode=Pod)]

    async def bound(self) -> dict[str, str]:
        """Pods of the namespace that have a node."""
        pods = await self.api.list(PODS, self.namespace, decode=Pod)
        return {pod.metadata.name: pod.spec.node_name for pod in pods if pod.spec.node_name}

    async def wait_bound(self, names: Iterable[str], deadline: float = 60.0) -> None:
        """Wait until all of these have a node."""

        async def holds() -> bool:
            return set(names) <= set(await self.bound())

        await eventually(holds, f"{list(names)} are bound", deadline)

    async def wait_phase(self, group: str, phase: str) -> None:
        """Wait until the PodGroup has this phase."""

        async def holds() -> bool:
            return (await self.read_group(group)).status.phase == phase

        await eventually(holds, f"{group} is {phase}")

    async def wait_reason(self, group: str, **fields: Any) -> dict[str, Any]:
        """Wait until the PodGroup says that it waits for a reason with these fields; returns all of them."""
        found: dict[str, Any] = {}

        async def holds() -> bool:
            nonlocal found
            notes = (await self.read_group(group)).metadata.annotations
            found = json.loads(notes.get("muster.dev/reason", "{}"))
            return bool(found) and fields.items() <= found.items()

        await eventually(holds, f"{group} says that it waits for {fields}")
        return found

    async def play(self, *names: str, phase: str = "Running") -> None:
        """Do a kubelet's work: say what became of bound pods."""
        for name in names:
            await self.api.patch(PODS, self.namespace, name, {"status": {"phase": phase}}, subresource="status")

    async def events(self, kind: str, name: str) -> list[tuple[str, str]]:
        """Reasons and notes of the events about an object, oldest first."""
        found = await self.api.list(EVENTS, self.namespace)
        about = [each for each in found if (each["regarding"]["kind"], each["regarding"]["name"]) == (kind, name)]
        about.sort(key=lambda each: each["eventTime"])
        return [(each["reason"], each.get("note", "")) for each in about]


async def eventually(holds: Callable[[], Awaitable[bool] | bool], what: str, deadline: float = 60.0) -> None:
    """Wait until `holds()`; AssertionError naming `what` at the deadline (seconds)."""
    try:
        async with asyncio.timeout(deadline):
            while True:
                found = holds()
                if found if isinstance(found, bool) else await found:
                    return
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"not within {deadline:g} s: {what}") from None
