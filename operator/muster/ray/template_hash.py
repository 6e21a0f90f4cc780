"""Tells whether a pod was made from what the spec says of its group now.

Clients in Go write back more than they have read: `creationTimestamp: null` into each template, `resources: {}` into
each container. That says nothing, and makes no pod an outdated one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from muster.ray.ray_node import RayNode

_WRITTEN_EMPTY: Final = frozenset({"metadata", "resources", "status", "scaleStrategy"})
"""Fields that Go writes though there is nothing in them; an empty map under another name may well say something."""


def template_hash(node: RayNode) -> str:
    """A digest of all that the user's spec says of the pods of a group; how many there are is no part of it.

    What Muster itself adds is left out: a newer Muster must not take its own pods for outdated.
    """
    said: dict[str, Any] = {
        "template": node.template,
        "rayStartParams": node.start_params,
        "resources": node.group_resources,
        "labels": node.group_labels,
        "rayVersion": node.ray_version,
        "port": node.gcs_port,
    }
    if node.option_env:  # only where there are some: the pods of other clusters are not outdated by a newer Muster
        said["optionEnv"] = list(node.option_env)
    if node.autoscaler is not None:  # only then, so that pods of clusters without one are not outdated by a new key
        said["autoscaler"] = node.autoscaler
    return content_hash(said)


def content_hash(said: Any) -> str:
    """A digest of a JSON value, the same in whatever order its maps are, and whatever in them says nothing."""
    return hashlib.sha256(json.dumps(_said(said), sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:16]


def _said(value: Any) -> Any:
    if isinstance(value, Mapping):
        parts = {key: _said(part) for key, part in value.items() if part is not None}
        return {key: part for key, part in parts.items() if part != {} or key not in _WRITTEN_EMPTY}
    if isinstance(value, list | tuple):
        return [_said(part) for part in value]
    return value
