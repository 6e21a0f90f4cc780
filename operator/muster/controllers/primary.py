"""The custom resource that a reconciler looks after: read, understood or refused, its status written on change."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

from muster.api.errors import FieldProblem, MalformedResource
from muster.api.raycluster import RayCluster
from muster.api.rayjob import RayJob
from muster.controllers.context import Context
from muster.controllers.primaries import Raw
from muster.kube.events import ObjectReference
from muster.kube.resource import Resource
from muster.ray.labels import MANAGED_BY_KUBERAY

_STEP: Final = re.compile(r"[.[]")
"""What ends the first field of a path."""

M = TypeVar("M", RayCluster, RayJob)


def being_deleted(raw: Raw) -> bool:
    """Whether the object is on its way out."""
    return bool(raw["metadata"].get("deletionTimestamp"))


def managed_elsewhere(raw: Raw) -> bool:
    """Whether `spec.managedBy` gives the object to another controller: then it is not ours to touch."""
    spec = raw.get("spec")
    managed_by = spec.get("managedBy") if isinstance(spec, Mapping) else None
    return managed_by not in (None, "", MANAGED_BY_KUBERAY)


def understand(context: Context, model: type[M], raw: Raw) -> M | None:
    """The typed object; None for one with wrong types, which its user is told about and nobody touches."""
    try:
        return model.parse(raw)
    except MalformedResource as malformed:
        kind = model.definition.kind
        meta = raw["metadata"]
        reference = ObjectReference(raw["apiVersion"], kind, meta.get("namespace"), meta["name"], meta["uid"])
        generation = str(meta.get("generation"))
        for reason, message in invalid_events(kind, malformed.problems):
            context.recorder.event(reference, "Warning", reason, message, "Validate", change=generation)
        return None


def spec_problems(model: type[M], raw: Raw) -> list[FieldProblem]:
    """What is wrong with the types in the spec of an object that can't be understood.

    Empty where more than the spec can't be read: then nobody knows what state the object is in.
    """
    try:
        model.parse(raw)
    except MalformedResource as malformed:
        if all(_STEP.split(problem.path, maxsplit=1)[0] == "spec" for problem in malformed.problems):
            return malformed.problems
    return []


def say_invalid(context: Context, about: RayCluster | RayJob, problems: Iterable[FieldProblem]) -> None:
    """Tell the object's user what is wrong with it."""
    for reason, message in invalid_events(about.definition.kind, problems):
        context.say(about, "Warning", reason, message, "Validate")


def invalid_events(kind: str, problems: Iterable[FieldProblem]) -> list[tuple[str, str]]:
    """Reason and message of the events for these problems: one a reason, since all stand at the same time."""
    by_reason: dict[str, list[FieldProblem]] = {}
    for problem in problems:
        by_reason.setdefault(invalid_reason(kind, problem), []).append(problem)
    return [(reason, in_words(some)) for reason, some in by_reason.items()]


def invalid_reason(kind: str, problem: FieldProblem) -> str:
    """The event reason for a problem: InvalidRayJobSpec, InvalidRayClusterMetadata, …, by the part that it is in."""
    part = problem.path.partition(".")[0].partition("[")[0]
    return f"Invalid{kind}{part.capitalize() if part in ('metadata', 'status') else 'Spec'}"


def in_words(problems: Iterable[FieldProblem]) -> str:
    """All problems as one message; each names its field."""
    return "; ".join(str(problem) for problem in problems)


async def write_status(context: Context, resource: Resource, raw: Raw, status: Mapping[str, Any]) -> Raw:
    """Make `status` the object's status; nothing is sent when it is that already. Returns the object as it is then.

    Raises Conflict when the object has changed since `raw` was read: its decision would rest on old facts.
    """
    change = merge_patch(raw.get("status") or {}, status)
    if not change:
        return raw
    return await context.primaries[resource].patch(raw, {"status": change}, subresource="status")


def merge_patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON merge patch that turns `old` into `new`; None in `new` counts as absent."""
    change: dict[str, Any] = {key: None for key in old if new.get(key) is None and old[key] is not None}
    for key, value in new.items():
        if value is None or (key in old and old[key] == value):
            continue
        before = old.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            nested = merge_patch(before, value)
            if nested:
                change[key] = nested
        else:
            change[key] = value
    return change
