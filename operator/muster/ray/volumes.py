"""Shared memory for Ray's object store: without a volume, a container's /dev/shm has 64 MiB."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from muster.ray.ray_node import RayNode

_NAME: Final = "shared-mem"
_PATH: Final = "/dev/shm"  # noqa: S108 - the kernel's own name for it


def add_shared_memory(spec: dict[str, Any], node: RayNode) -> None:
    """Mount a memory volume at /dev/shm in the pod's Ray container, as large as the container's memory.

    Left alone: a node whose object store lives elsewhere (`plasma-directory`), a template that mounts the path itself.
    """
    container = spec["containers"][0]
    mounts = container.get("volumeMounts") or []
    if "plasma-directory" in node.start_params or any(mount.get("mountPath") == _PATH for mount in mounts):
        return
    volumes = spec.get("volumes") or []
    if not any(volume.get("name") == _NAME for volume in volumes):
        spec["volumes"] = [*volumes, {"name": _NAME, "emptyDir": _memory(container.get("resources") or {})}]
    container["volumeMounts"] = [*mounts, {"name": _NAME, "mountPath": _PATH}]


def _memory(resources: Mapping[str, Any]) -> dict[str, Any]:
    limit = (resources.get("limits") or {}).get("memory") or (resources.get("requests") or {}).get("memory")
    return {"medium": "Memory"} | ({"sizeLimit": limit} if limit else {})
