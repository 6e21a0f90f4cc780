"""Pods as an informer would show them, in one line each."""

from __future__ import annotations

from typing import Any

import msgspec

from muster.controllers.clock import timestamp
from muster.kube.objects import Pod
from muster.ray import labels

NOW = 1_800_000_000.0


def pod(
    name: str,
    *,
    group: str = "workers",
    phase: str = "Running",
    ready: bool = True,
    age: float = 600.0,
    node: str | None = "node-1",
    leaving: float | None = None,
    restart: str = "Always",
    exited: int | None = None,
    replica: int = 0,
    replica_name: str | None = None,
    host: int = 0,
    template: str | None = None,
) -> Pod:
    """A pod of `age` seconds. `leaving`: seconds until its grace period ends; `exited`: exit code of its container;
    `template`: the hash of the template that it was made from."""
    pod_labels = {
        labels.GROUP: group,
        labels.NODE_TYPE: labels.HEAD if group == labels.HEAD_GROUP else labels.WORKER,
        labels.REPLICA_INDEX: str(replica),
    }
    if replica_name is not None:
        pod_labels |= {labels.REPLICA_NAME: replica_name, labels.HOST_INDEX: str(host)}
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "labels": pod_labels,
        "creationTimestamp": timestamp(NOW - age),
    }
    if template is not None:
        metadata["annotations"] = {labels.TEMPLATE_HASH: template}
    if leaving is not None:
        metadata["deletionTimestamp"] = timestamp(NOW + leaving)
    status: dict[str, Any] = {"phase": phase}
    if phase == "Running":
        status["conditions"] = [{"type": "Ready", "status": str(ready)}]
    if exited is not None:
        state = {"terminated": {"exitCode": exited, "reason": "Error"}}
        status["containerStatuses"] = [{"name": "ray", "state": state}]
    spec = {"containers": [{"name": "ray"}], "restartPolicy": restart, "nodeName": node}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, Pod)


def waiting(name: str, **changes: Any) -> Pod:
    """A pod that has no node yet."""
    return pod(name, **{"phase": "Pending", "node": None, **changes})
