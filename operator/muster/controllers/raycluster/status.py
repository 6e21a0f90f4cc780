"""The status of a cluster, written when it has changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from muster.api.errors import FieldProblem
from muster.api.raycluster import RayCluster
from muster.controllers.clock import timestamp
from muster.controllers.context import Context
from muster.controllers.excerpt import excerpt
from muster.controllers.primaries import Raw
from muster.controllers.primary import in_words, invalid_reason, write_status
from muster.controllers.raycluster.place import not_stuck
from muster.controllers.raycluster.services import observed_head_service
from muster.kube.resource import RAYCLUSTERS
from muster.ray.cluster_conditions import REPLICA_FAILURE, ReplicaFailure
from muster.ray.cluster_status import cluster_status


async def report(context: Context, raw: Raw, cluster: RayCluster, failure: ReplicaFailure | None = None) -> bool:
    """Write what the cluster's pods and service amount to; whether that was something new."""
    if failure is not None:
        failure = replace(failure, message=excerpt(failure.message))
    status = cluster_status(
        cluster,
        not_stuck(context.pods_of(cluster), context.clock.now()),
        observed_head_service(context, cluster),
        now=datetime.fromtimestamp(context.clock.now(), UTC),
        failure=failure,
    )
    return await write_status(context, RAYCLUSTERS, raw, status) is not raw


def wanting_nothing(cluster: RayCluster) -> RayCluster:
    """The cluster as if it wanted no pods, for the status of one whose spec says nothing that could be counted."""
    head = cluster.spec.head_group_spec.model_copy(update={"template": {"spec": {"containers": []}}})
    spec = cluster.spec.model_copy(update={"head_group_spec": head, "worker_group_specs": []})
    return cluster.model_copy(update={"spec": spec})


async def report_refusal(context: Context, raw: Raw, problems: Sequence[FieldProblem]) -> None:
    """Say in the status why nothing is done for this spec. What runs already is left as it is, and so is its status."""
    status: dict[str, Any] = dict(raw.get("status") or {})
    refused = {
        "type": REPLICA_FAILURE,
        "status": "True",
        "reason": invalid_reason("RayCluster", problems[0]),
        "message": excerpt(in_words(problems)),
    }
    conditions: list[dict[str, Any]] = list(status.get("conditions") or [])
    before = next((entry for entry in conditions if entry.get("type") == REPLICA_FAILURE), {})
    since = before.get("lastTransitionTime") or timestamp(context.clock.now())
    status["conditions"] = [entry for entry in conditions if entry is not before]
    status["conditions"].append({**refused, "lastTransitionTime": since})
    status["reason"] = refused["message"]
    status["observedGeneration"] = raw["metadata"].get("generation")
    await write_status(context, RAYCLUSTERS, raw, status)
