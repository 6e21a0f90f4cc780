"""What was worked out from an object, kept for as long as what it was worked out from stays as it is.

Most looks at an object are for the sake of its pods: the object itself is as it was, and need not be parsed and judged
again. A version is whatever the result depends on and can be compared: all that is stored, or what users write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, Protocol, TypeVar

from muster.controllers.primaries import Raw

V = TypeVar("V")


class _Metadata(Protocol):
    """Of an object as the informers have it, or as its model does."""

    @property
    def uid(self) -> str: ...

    @property
    def generation(self) -> int | None: ...

    @property
    def labels(self) -> Mapping[str, str]: ...

    @property
    def annotations(self) -> Mapping[str, str]: ...


def stored_version(raw: Raw) -> object:
    """The same while the object is as it is, its status too."""
    return raw["metadata"]["uid"], raw["metadata"]["resourceVersion"]


def written_version(meta: _Metadata) -> object:
    """The same while spec, labels and annotations are as they are; a written status makes no difference."""
    return meta.uid, meta.generation, meta.labels, meta.annotations


class PerVersion(Generic[V]):
    """The latest result for each key "namespace/name". Results are shared: whoever gets one must not change it."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[object, V]] = {}

    def of(self, key: str, version: object, work_out: Callable[[], V | None]) -> V | None:
        """The result for this version, worked out unless it is known; None is not kept."""
        kept = self._kept.get(key)
        if kept is not None and kept[0] == version:
            return kept[1]
        result = work_out()
        if result is None:
            self._kept.pop(key, None)
        else:
            self._kept[key] = (version, result)
        return result

    def forget(self, key: str) -> None:
        """The object is gone."""
        self._kept.pop(key, None)
