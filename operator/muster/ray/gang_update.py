"""Bringing an existing PodGroup up to date with as little as possible.

Patches are JSON merge patches of the size of the gang only: queue, priority and status belong to others by then. A map
in a merge patch adds and changes keys, so those that go are named with null.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from muster.quantities import QuantityError, parse_quantity
from muster.ray import labels

Patch = dict[str, Any]


def desired_update(existing: Mapping[str, Any], wanted: Mapping[str, Any]) -> Patch | None:
    """The merge patch that gives `existing` the size of `wanted`; None when it has it, however its quantities read.

    Both are PodGroups as the API server's JSON has them. minMember, minTaskMember, minResources and the companions
    are compared and nothing else.
    """
    now, then = existing.get("spec") or {}, wanted.get("spec") or {}
    spec: Patch = {}
    if (now.get("minMember") or 0) != (then.get("minMember") or 0):
        spec["minMember"] = then.get("minMember") or 0
    if members := _map_patch(now.get("minTaskMember"), then.get("minTaskMember"), lambda a, b: bool(a == b)):
        spec["minTaskMember"] = members
    if resources := _map_patch(now.get("minResources"), then.get("minResources"), _same_quantity):
        spec["minResources"] = resources
    return _patch(spec, _companions_patch(_annotations(existing), _annotations(wanted)))


def released(existing: Mapping[str, Any]) -> Patch | None:
    """The merge patch after which a PodGroup holds nothing: no members, no resources, no companions.

    For suspended and finished gangs. None when it holds nothing already.
    """
    nothing = {"spec": {"minMember": 0, "minTaskMember": {}, "minResources": {}}}
    patch = desired_update(existing, nothing) or {}
    if labels.COMPANION_NODES in _annotations(existing):
        annotations = patch.setdefault("metadata", {}).setdefault("annotations", {})
        annotations[labels.COMPANION_NODES] = None
    return patch or None


def _patch(spec: Patch, annotations: Patch) -> Patch | None:
    patch: Patch = {}
    if spec:
        patch["spec"] = spec
    if annotations:
        patch["metadata"] = {"annotations": annotations}
    return patch or None


def _map_patch(
    now: Mapping[str, Any] | None, then: Mapping[str, Any] | None, same: Callable[[Any, Any], bool]
) -> Patch:
    now, then = now or {}, then or {}
    changed = {key: value for key, value in then.items() if key not in now or not same(now[key], value)}
    return changed | {key: None for key in now if key not in then}


def _same_quantity(one: Any, other: Any) -> bool:
    try:
        return parse_quantity(one) == parse_quantity(other)
    except QuantityError:
        return bool(one == other)


def _annotations(pod_group: Mapping[str, Any]) -> Mapping[str, str]:
    return (pod_group.get("metadata") or {}).get("annotations") or {}


def _companions_patch(now: Mapping[str, str], then: Mapping[str, str]) -> Patch:
    before, after = now.get(labels.COMPANIONS), then.get(labels.COMPANIONS)
    return {} if _same_json(before, after) else {labels.COMPANIONS: after}


def _same_json(one: str | None, other: str | None) -> bool:
    if one is None or other is None:
        return one is other
    try:
        return bool(json.loads(one) == json.loads(other))
    except (ValueError, RecursionError):  # anybody may have written the one that is stored
        return one == other
