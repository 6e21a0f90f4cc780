"""The ceiling: a client that takes the gate off each pod and binds it to the next node in turn, and thinks nothing.

    python -m bench.bare_client --kubeconfig FILE

It takes the pods whose schedulerName is `bench`. No scheduler in Python that makes the same requests can be faster than
this, as far as the API server and aiohttp go. It never looks at room.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
from collections.abc import Iterable
from pathlib import Path

import msgspec

from bench.api_client import ApiClient

PODS = "/api/v1/pods"
SCHEDULER = "bench"
UNBOUND = {"fieldSelector": f"spec.schedulerName={SCHEDULER},spec.nodeName="}


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    uid: str = ""
    namespace: str = ""
    resource_version: str = ""


class _Gate(msgspec.Struct):
    name: str


class _Spec(msgspec.Struct, rename="camel"):
    scheduling_gates: list[_Gate] = []


class Pod(msgspec.Struct):
    """What it has to know of a pod."""

    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)


_decode = msgspec.json.Decoder(Pod).decode


class BareClient:
    """Binds what it is told of, each pod once."""

    def __init__(self, client: ApiClient, nodes: Iterable[str]) -> None:
        self._client = client
        self._nodes = itertools.cycle(nodes)
        self._taken: set[str] = set()
        self._under_way: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Bind the pods there are and all that come, until cancelled. A watch that ends is begun anew, with a list."""
        while True:
            items, version = await self._client.list(PODS, UNBOUND)
            for raw in items:
                self.take(_decode(raw))
            async for batch in self._client.watch(PODS, version, UNBOUND):
                for change in batch:
                    if change.type == "ADDED":
                        self.take(_decode(change.object))

    def take(self, pod: Pod) -> None:
        """Have this pod bound, unless it has been taken before."""
        if pod.metadata.uid not in self._taken:
            self._taken.add(pod.metadata.uid)
            task = asyncio.create_task(self.bind(pod, next(self._nodes)))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def bind(self, pod: Pod, node: str) -> None:
        """Take the gates off a pod, if it has any, and bind it; both with its UID as a precondition."""
        meta = pod.metadata
        path = f"/api/v1/namespaces/{meta.namespace}/pods/{meta.name}"
        if pod.spec.scheduling_gates:
            await self._client.merge(path, {"metadata": {"uid": meta.uid}, "spec": {"schedulingGates": None}})
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"metadata": {"name": meta.name, "uid": meta.uid}, "target": target}
        await self._client.create(f"{path}/binding", {"apiVersion": "v1", "kind": "Binding", **body})


async def node_names(client: ApiClient) -> list[str]:
    """The names of all nodes."""
    items, _ = await client.list("/api/v1/nodes")
    return [_decode(raw).metadata.name for raw in items]


async def _main(kubeconfig: Path) -> None:
    async with ApiClient(kubeconfig) as client:
        await BareClient(client, await node_names(client)).run()


def main() -> None:
    """Run until it is stopped."""
    parser = argparse.ArgumentParser(prog="python -m bench.bare_client", description="Binds pods without a thought.")
    parser.add_argument("--kubeconfig", type=Path, required=True)
    asyncio.run(_main(parser.parse_args().kubeconfig))


if __name__ == "__main__":
    main()
