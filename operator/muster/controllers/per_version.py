"""What was worked out from an object, kept for as long as the object stays as it is.

Most looks at an object are for the sake of its pods: the object itself is as it was, and need not be parsed and judged
again. It is the same while UID and resourceVersion are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from muster.controllers.primaries import Raw

V = TypeVar("V")


class PerVersion(Generic[V]):
    """The latest result for each key "namespace/name". Results are shared: whoever gets one must not change it."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[str, str, V]] = {}

    def of(self, key: str, raw: Raw, work_out: Callable[[], V | None]) -> V | None:
        """The result for this version, worked out unless it is known; None is not kept."""
        uid, version = raw["metadata"]["uid"], raw["metadata"]["resourceVersion"]
        kept = self._kept.get(key)
        if kept is not None and kept[:2] == (uid, version):
            return kept[2]
        result = work_out()
        if result is None:
            self._kept.pop(key, None)
        else:
            self._kept[key] = (uid, version, result)
        return result

    def forget(self, key: str) -> None:
        """The object is gone."""
        self._kept.pop(key, None)
