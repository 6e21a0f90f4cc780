"""Fault tolerance of Ray's control service (GCS): its state is in a Redis, so that a new head goes on with it.

It is asked for by `gcsFaultToleranceOptions`, or in the older style by the annotation `ray.io/ft-enabled: "true"`,
where the address of the Redis is a variable of the head's own. Passwords go to Ray by variables; the command line only
names them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from muster.api.raycluster import RayCluster
from muster.api.raycluster_options import RedisCredential
from muster.ray import labels

RECONNECT_SECONDS: Final = 600
"""How long workers go on without a control service; Ray's own minute is too short for a new head pod."""

_PASSWORD: Final = "REDIS_PASSWORD"  # noqa: S105 - the name of a variable
_USERNAME: Final = "REDIS_USERNAME"

Env = dict[str, Any]


def outlives_its_head(cluster: RayCluster) -> bool:
    """Whether the state of the control service is kept in a Redis."""
    return cluster.spec.gcs_fault_tolerance_options is not None or annotation_asks(cluster.metadata.annotations)


def annotation_asks(annotations: Mapping[str, str]) -> bool:
    """Whether the older style asks for it."""
    return annotations.get(labels.FT_ENABLED, "").lower() == "true"


def storage_namespace(cluster: RayCluster) -> str:
    """Under which name the state of this cluster is kept in the Redis: its UID, unless the user has said another."""
    options = cluster.spec.gcs_fault_tolerance_options
    said = options.external_storage_namespace if options is not None else None
    return said or cluster.metadata.annotations.get(labels.EXTERNAL_STORAGE_NAMESPACE) or cluster.metadata.uid or ""


def head_annotations(cluster: RayCluster) -> dict[str, str]:
    """What the head pod says about it."""
    if not outlives_its_head(cluster):
        return {labels.FT_ENABLED: "false"}
    return {labels.FT_ENABLED: "true", labels.EXTERNAL_STORAGE_NAMESPACE: storage_namespace(cluster)}


def head_env(cluster: RayCluster) -> list[Env]:
    """The variables by which the head finds its Redis."""
    if not outlives_its_head(cluster):
        return []
    namespace = {"name": "RAY_external_storage_namespace", "value": storage_namespace(cluster)}
    options = cluster.spec.gcs_fault_tolerance_options
    if options is None:
        # A password that stands in the parameters in clear: whoever clears up needs it as a variable.
        password = (cluster.spec.head_group_spec.ray_start_params or {}).get("redis-password")
        return [namespace] if password is None else [namespace, {"name": _PASSWORD, "value": password}]
    address = {"name": "RAY_REDIS_ADDRESS", "value": options.redis_address or ""}
    credentials = ((_USERNAME, options.redis_username), (_PASSWORD, options.redis_password))
    return [namespace, address, *(_variable(name, given) for name, given in credentials if given is not None)]


def head_start_params(cluster: RayCluster) -> dict[str, str]:
    """The head's rayStartParams with those that name the variables of the Redis."""
    params = dict(cluster.spec.head_group_spec.ray_start_params or {})
    options = cluster.spec.gcs_fault_tolerance_options
    if options is not None and options.redis_username is not None:
        params["redis-username"] = f'"${_USERNAME}"'
    if options is not None and options.redis_password is not None:
        params["redis-password"] = f'"${_PASSWORD}"'
    return params


def worker_env(cluster: RayCluster) -> list[Env]:
    """The variables by which workers bear that the head is away."""
    if not outlives_its_head(cluster):
        return []
    return [{"name": "RAY_gcs_rpc_server_reconnect_timeout_s", "value": str(RECONNECT_SECONDS)}]


def _variable(name: str, given: RedisCredential) -> Env:
    if given.value_from is not None:
        return {"name": name, "valueFrom": dict(given.value_from)}
    return {"name": name, "value": given.value or ""}
