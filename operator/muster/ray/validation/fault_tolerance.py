"""Fault tolerance of Ray's control service (GCS): asked for in one place only."""

from __future__ import annotations

from muster.api.errors import FieldProblem
from muster.ray import labels
from muster.ray.validation.unsupported import NOT_YET
from muster.ray.validation.view import ClusterView, Problems

_REDIS_ADDRESS = "RAY_REDIS_ADDRESS"
_REDIS_USERNAME = "REDIS_USERNAME"


def annotation(view: ClusterView) -> Problems:
    """The older way to ask for it."""
    if view.annotations.get(labels.FT_ENABLED, "").lower() == "true":
        yield FieldProblem(f"metadata.annotations[{labels.FT_ENABLED}]", NOT_YET)


def redis(view: ClusterView) -> Problems:
    """Redis is configured by gcsFaultToleranceOptions, or Ray and the operator disagree about where the state is."""
    env = view.head.template.first_container_env()
    path = f"{view.head.template.path}.spec.containers[0].env"
    if _REDIS_ADDRESS in env and view.spec.gcs_fault_tolerance_options is None:
        yield FieldProblem(path, f"{_REDIS_ADDRESS} is not allowed without gcsFaultToleranceOptions; remove it")
    if _REDIS_USERNAME in env:
        yield FieldProblem(path, f"{_REDIS_USERNAME} is not allowed; remove it")
    if "redis-username" in (view.spec.head_group_spec.ray_start_params or {}):
        yield FieldProblem(f"{view.head.path}.rayStartParams[redis-username]", "is not allowed; remove it")
