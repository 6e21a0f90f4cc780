"""Fault tolerance of Ray's control service (GCS): asked for in one place only, and with all that it needs."""

from __future__ import annotations

from muster.api.errors import FieldProblem
from muster.api.raycluster_options import GcsFaultToleranceOptions
from muster.ray import labels
from muster.ray.fault_tolerance import annotation_asks
from muster.ray.validation.unsupported import NOT_YET
from muster.ray.validation.view import ClusterView, Problems

_REDIS_ADDRESS = "RAY_REDIS_ADDRESS"
_REDIS_USERNAME = "REDIS_USERNAME"
_REDIS_PASSWORD = "REDIS_PASSWORD"  # noqa: S105 - the name of a variable


def annotation(view: ClusterView) -> Problems:
    """The older way to ask for it does not go together with the newer one."""
    if view.spec.gcs_fault_tolerance_options is None:
        return
    for key in (labels.FT_ENABLED, labels.EXTERNAL_STORAGE_NAMESPACE):
        if view.annotations.get(key):
            text = "says the same thing as gcsFaultToleranceOptions; remove the annotation"
            yield FieldProblem(f"metadata.annotations[{key}]", text)


def redis(view: ClusterView) -> Problems:
    """Redis is configured in one place, or Ray and the operator disagree about where the state is."""
    options = view.spec.gcs_fault_tolerance_options
    env = view.head.template.first_container_env()
    params = view.spec.head_group_spec.ray_start_params or {}
    path = f"{view.head.template.path}.spec.containers[0].env"
    if _REDIS_ADDRESS in env and options is None and not annotation_asks(view.annotations):
        yield FieldProblem(path, f"{_REDIS_ADDRESS} is not allowed without gcsFaultToleranceOptions; remove it")
    if _REDIS_USERNAME in env:
        yield FieldProblem(path, f"{_REDIS_USERNAME} is not allowed; remove it")
    if "redis-username" in params:
        yield FieldProblem(f"{view.head.path}.rayStartParams[redis-username]", "is not allowed; remove it")
    if options is None:
        return
    for name, field in ((_REDIS_ADDRESS, "redisAddress"), (_REDIS_PASSWORD, "redisPassword")):
        if name in env:
            yield FieldProblem(path, f"{name} is said by gcsFaultToleranceOptions.{field}; remove the variable")
    if "redis-password" in params:
        text = "is said by gcsFaultToleranceOptions.redisPassword; remove it"
        yield FieldProblem(f"{view.head.path}.rayStartParams[redis-password]", text)


def redis_options(view: ClusterView) -> Problems:
    """The options say where the Redis is, and nothing of another store."""
    options = view.spec.gcs_fault_tolerance_options
    if options is None:
        return
    path = f"{view.path}.gcsFaultToleranceOptions"
    if options.backend == "rocksdb":
        yield FieldProblem(f"{path}.backend", f"rocksdb {NOT_YET}, and name a Redis")
        return
    if not (options.redis_address or "").strip():
        yield FieldProblem(f"{path}.redisAddress", "is required; write the address of the Redis, such as redis:6379")
    if options.storage is not None:
        yield FieldProblem(f"{path}.storage", "is for backend rocksdb only; remove it")
    yield from _credentials(options, path)


def _credentials(options: GcsFaultToleranceOptions, path: str) -> Problems:
    given = (("redisUsername", options.redis_username), ("redisPassword", options.redis_password))
    for field, credential in given:
        if credential is not None and credential.value and credential.value_from is not None:
            yield FieldProblem(f"{path}.{field}", "has value and valueFrom; leave one of the two out")
