"""The status of a cluster, written when it has changed."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from muster.api.errors import FieldProblem
from muster.api.raycluster import RayCluster
from muster.controllers.clock import timestamp
from muster.controllers.context import Context
from muster.controllers.excerpt import excerpt
from muster.controllers.primaries import Raw
from muster.controllers.primary import in_words, invalid_reason, spec_problems, write_status
from muster.controllers.raycluster.place import not_stuck
from muster.controllers.raycluster.services import observed_head_service
from muster.kube.errors import Invalid
from muster.kube.resource import RAYCLUSTERS
from muster.ray.cluster_conditions import REPLICA_FAILURE, ReplicaFailure
from muster.ray.cluster_status import cluster_status

logger = logging.getLogger(__name__)


async def report(context: Context, raw: Raw, cluster: RayCluster, failure: ReplicaFailure | None = None) -> bool:
    """Write what the cluster's pods and service amount to; whether that was something new."""
    status = _status(context, cluster, failure)
    return await write_status(context, RAYCLUSTERS, raw, status) is not raw


async def report_once_settled(
    context: Context, raw: Raw, cluster: RayCluster, failure: ReplicaFailure | None
) -> float | None:
    """As `report`, but what a cluster that comes to be is like is not written before it has been so for a moment.

    A state and a failure are written at once. In how many seconds to look again, if something was not written.
    """
    status, old = _status(context, cluster, failure), raw.get("status") or {}
    key = f"{cluster.metadata.namespace}/{cluster.metadata.name}"
    if failure is None and status.get("state") == old.get("state") and _said(status) != _said(old):
        rest = context.cluster_settling.rest(key, _said(status))
        if rest > 0:
            return rest
    await write_status(context, RAYCLUSTERS, raw, status)
    context.cluster_settling.over(key)
    return None


def _status(context: Context, cluster: RayCluster, failure: ReplicaFailure | None) -> dict[str, Any]:
    if failure is not None:
        failure = replace(failure, message=excerpt(failure.message))
    return cluster_status(
        cluster,
        not_stuck(context.pods_of(cluster), context.clock.now()),
        observed_head_service(context, cluster),
        now=datetime.fromtimestamp(context.clock.now(), UTC),
        failure=failure,
    )


def _said(status: Mapping[str, Any]) -> dict[str, Any]:
    """All of a status but its times, which are new at each look until they are written."""
    conditions = [_without(condition, "lastTransitionTime") for condition in status.get("conditions") or []]
    return {**_without(status, "lastUpdateTime"), "conditions": conditions}


def _without(fields: Mapping[str, Any], left_out: str) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key != left_out and value is not None}


def wanting_nothing(cluster: RayCluster) -> RayCluster:
    """The cluster as if it wanted no pods, for the status of one whose spec says nothing that could be counted."""
    head = cluster.spec.head_group_spec.model_copy(update={"template": {"spec": {"containers": []}}})
    spec = cluster.spec.model_copy(update={"head_group_spec": head, "worker_group_specs": []})
    return cluster.model_copy(update={"spec": spec})


async def report_malformed(context: Context, raw: Raw) -> None:
    """Say in the status which fields of the spec have wrong types, if there is nothing else that can't be read."""
    problems = spec_problems(RayCluster, raw)
    if not problems:
        return
    try:
        await report_refusal(context, raw, problems)
    except Invalid as refusal:  # an API server that judges the whole object at each write of its status
        meta = raw["metadata"]
        logger.warning("the status of RayCluster %s/%s can't be written: %s", meta["namespace"], meta["name"], refusal)


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
