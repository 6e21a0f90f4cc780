"""Pods as the API server shows them, one screen a case."""

from __future__ import annotations

from typing import Any

import msgspec

from muster.kube.objects import Pod


def pod(
    name: str = "p",
    *,
    namespace: str = "default",
    uid: str | None = None,
    requests: dict[str, Any] | None = None,
    group: str | None = None,
    role: str | None = None,
    gates: tuple[str, ...] = (),
    node: str | None = None,
    phase: str = "Pending",
    scheduler: str = "muster",
    annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    deleted: bool = False,
    status: dict[str, Any] | None = None,
    version: int = 1,
    owner: dict[str, Any] | None = None,
    **spec: Any,
) -> Pod:
    notes = dict(annotations or {})
    if group is not None:
        notes["scheduling.k8s.io/group-name"] = group
    if role is not None:
        notes["volcano.sh/task-spec"] = role
    manifest = {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid or f"uid-{name}",
            "resourceVersion": str(version),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "annotations": notes,
            "labels": labels or {},
            "ownerReferences": [owner] if owner else [],
            **({"deletionTimestamp": "2026-01-01T00:01:00Z"} if deleted else {}),
        },
        "spec": {
            "schedulerName": scheduler,
            "containers": [{"name": "c", "resources": {"requests": requests or {"cpu": "1"}}}],
            "schedulingGates": [{"name": gate} for gate in gates],
            **({"nodeName": node} if node else {}),
            **spec,
        },
        "status": {"phase": phase, **(status or {})},
    }
    return msgspec.json.decode(msgspec.json.encode(manifest), type=Pod)
