"""What is on the API server in the end: pods bound, gangs whole and in part, nodes that hold too much.

It is read from the API server, not from what the watch told, so that no binding is missed and none counted that is not
there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from bench.api_client import ApiClient
from bench.manifests import GANG


class _Metadata(msgspec.Struct):
    namespace: str
    labels: dict[str, str] = {}


class _Resources(msgspec.Struct):
    requests: dict[str, str] = {}


class _Container(msgspec.Struct):
    resources: _Resources = msgspec.field(default_factory=_Resources)


class _Spec(msgspec.Struct, rename="camel"):
    containers: list[_Container]
    node_name: str = ""


class Pod(msgspec.Struct):
    """A pod, as far as it is counted."""

    metadata: _Metadata
    spec: _Spec


decode_pod = msgspec.json.Decoder(Pod).decode


@dataclass(frozen=True, slots=True)
class Census:
    """Pods of gangs with and without a node, gangs with all and with some of their pods bound, and nodes on which pods
    ask for more CPU than there is.
    """

    bound: int = 0
    unbound: int = 0
    whole: int = 0
    partial: int = 0
    overcommitted: int = 0


def count(pods: Iterable[Pod], *, namespace: str, size: int, node_cpu: int) -> Census:
    """Count the gangs of a namespace, of `size` pods each, and what all pods hold of nodes with `node_cpu` CPU."""
    bound: Counter[str] = Counter()
    held: Counter[str] = Counter()
    unbound = 0
    for pod in pods:
        if pod.spec.node_name:
            held[pod.spec.node_name] += sum(_milli(one.resources.requests["cpu"]) for one in pod.spec.containers)
        if pod.metadata.namespace == namespace and GANG in pod.metadata.labels:
            bound[pod.metadata.labels[GANG]] += bool(pod.spec.node_name)
            unbound += not pod.spec.node_name
    return Census(
        bound=bound.total(),
        unbound=unbound,
        whole=sum(number >= size for number in bound.values()),
        partial=sum(0 < number < size for number in bound.values()),
        overcommitted=sum(amount > node_cpu * 1000 for amount in held.values()),
    )


async def take_census(client: ApiClient, *, namespace: str, size: int, node_cpu: int) -> Census:
    """Count what the API server has: see `count`."""
    items, _ = await client.list("/api/v1/pods")
    return count((decode_pod(raw) for raw in items), namespace=namespace, size=size, node_cpu=node_cpu)


def _milli(cpu: str) -> int:
    """Thousandths of a CPU; the benchmark writes whole ones, or thousandths."""
    return int(cpu[:-1]) if cpu.endswith("m") else int(cpu) * 1000
