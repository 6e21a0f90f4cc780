"""What Ray is asked to run: the runtime environment and the needs of the entrypoint."""

from __future__ import annotations

import json
import math

import yaml

from muster.api.errors import FieldProblem
from muster.api.rayjob import RayJob
from muster.ray.validation.view import Problems

_LONGEST_RUNTIME_ENV = 100_000
"""The submitter gets it in one environment variable, which Linux cuts off at 128 KiB."""


def runtime_environment(job: RayJob) -> Problems:
    """runtimeEnvYAML is a YAML mapping that JSON can carry."""
    text = job.spec.runtime_env_yaml
    if text is None or not text.strip():
        return
    path = "spec.runtimeEnvYAML"
    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        yield FieldProblem(path, f"is not YAML: {_one_line(error)}")
        return
    if document is not None and not isinstance(document, dict):
        yield FieldProblem(path, f"must be a YAML mapping such as `pip: [requests]`, not a {_yaml_kind(document)}")
    elif _characters(document, _LONGEST_RUNTIME_ENV) > _LONGEST_RUNTIME_ENV:
        text = f"has more than {_LONGEST_RUNTIME_ENV} characters when its aliases are written out; shorten it"
        yield FieldProblem(path, text)
    else:
        yield from _not_json(document, path)


def _characters(document: object, limit: int) -> int:
    """About how long the document is in full, counted up to `limit`: a few aliases can stand for gigabytes."""
    total, rest = 0, [document]
    while rest and total <= limit:
        match rest.pop():
            case dict() as mapping:
                rest += [*mapping.keys(), *mapping.values()]
                total += 1
            case list() | tuple() | set() as items:
                rest += items
                total += 1
            case scalar:
                total += len(str(scalar))
    return total


def _not_json(document: object, path: str) -> Problems:
    try:
        json.dumps(document)
    except (TypeError, ValueError, RecursionError) as error:
        yield FieldProblem(path, f"can't be sent to Ray as JSON: {_one_line(error)}")


def entrypoint_amounts(job: RayJob) -> Problems:
    """What the entrypoint needs on its node: amounts from 0 up."""
    for field, amount in (
        ("entrypointNumCpus", job.spec.entrypoint_num_cpus),
        ("entrypointNumGpus", job.spec.entrypoint_num_gpus),
    ):
        if amount is not None and not (math.isfinite(amount) and amount >= 0):
            yield FieldProblem(f"spec.{field}", f"must be a number from 0 up, got {amount}")


def entrypoint_resources(job: RayJob) -> Problems:
    """entrypointResources is a JSON object of amounts."""
    text = job.spec.entrypoint_resources
    if text is None or not text.strip():
        return
    try:
        document = json.loads(text)
    except ValueError as error:
        yield FieldProblem("spec.entrypointResources", f'is not JSON: {error}; write {{"name": amount}}')
        return
    if not isinstance(document, dict):
        yield FieldProblem("spec.entrypointResources", 'must be a JSON object such as {"name": 1}')
        return
    for resource, amount in document.items():
        if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 <= amount < math.inf:
            path = f"spec.entrypointResources[{resource}]"
            yield FieldProblem(path, f"must be a number from 0 up, got {json.dumps(amount)}")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _yaml_kind(document: object) -> str:
    kinds = {str: "string", list: "list", bool: "boolean", int: "number", float: "number"}
    return kinds.get(type(document), type(document).__name__)
