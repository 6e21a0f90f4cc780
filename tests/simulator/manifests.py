"""Manifests for simulations, one line an object. CPU in cores, memory in GiB."""

from __future__ import annotations

from typing import Any

import yaml

Manifest = dict[str, Any]
VOLCANO = "scheduling.volcano.sh/v1beta1"


def node(name: str, cpu: float = 4, memory: int = 8, **spec: Any) -> Manifest:
    offered = {"cpu": f"{cpu}", "memory": f"{memory}Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "spec": spec,
        "status": {"allocatable": offered},
    }


def pod(
    name: str,
    group: str | None = None,
    cpu: Any = 1,
    *,
    node: str | None = None,
    phase: str | None = None,
    deleted: bool = False,
    runtime: str | None = None,
    annotations: dict[str, str] | None = None,
    metadata: Manifest | None = None,
    status: Manifest | None = None,
    scheduler: str = "muster",
    **spec: Any,
) -> Manifest:
    notes = dict(annotations or {})
    if group is not None:
        notes["scheduling.k8s.io/group-name"] = group
    if runtime is not None:
        notes["muster.dev/expected-runtime"] = runtime
    meta: Manifest = {"name": name, "namespace": "default", "annotations": notes, **(metadata or {})}
    if deleted:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    body: Manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {
            "schedulerName": scheduler,
            "containers": [{"name": "main", "resources": {"requests": {"cpu": f"{cpu}"}}}],
            **spec,
        },
        "status": {**(status or {})},
    }
    if node is not None:
        body["spec"]["nodeName"] = node
        body["status"]["phase"] = phase or "Running"
    elif phase is not None:
        body["status"]["phase"] = phase
    return body


def pod_group(name: str, members: int = 1, *, queue: str = "default", phase: str = "Inqueue", **spec: Any) -> Manifest:
    return {
        "apiVersion": VOLCANO,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minMember": members, "queue": queue, **spec},
        "status": {"phase": phase},
    }


def gang(name: str, count: int, cpu: Any = 1, **options: Any) -> list[Manifest]:
    """A PodGroup of `count` members and the pods `name-w-0`, `name-w-1`, …; `options` are the pods'."""
    return [pod_group(name, count), *[pod(f"{name}-w-{index}", name, cpu, **options) for index in range(count)]]


def queue(name: str, **spec: Any) -> Manifest:
    return {"apiVersion": VOLCANO, "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def priority_class(name: str, value: int, *, default: bool = False, policy: str | None = None) -> Manifest:
    body: Manifest = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "globalDefault": default,
    }
    return {**body, "preemptionPolicy": policy} if policy else body


def text(*manifests: Manifest | list[Manifest]) -> bytes:
    """All of them as one YAML stream."""
    flat = [each for part in manifests for each in (part if isinstance(part, list) else [part])]
    return yaml.safe_dump_all(flat, sort_keys=False).encode()
