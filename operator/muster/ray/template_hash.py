"""Tells whether a pod was made from what the spec says of its group now."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from muster.ray.ray_node import RayNode


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
    """A digest of a JSON value, the same in whatever order its maps are."""
    return hashlib.sha256(json.dumps(said, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:16]
