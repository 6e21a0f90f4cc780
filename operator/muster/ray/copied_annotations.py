"""The annotations of a RayCluster or RayJob on what is made for it, with room left for those that are added there.

An object may have 256 KiB of annotations. A copy of nearly as many would be refused for one more, or could not be told
later why it waits. So the largest are left out of a copy that would grow too large: first those that nobody reads
there, for all that is known, and last those that Ray, Volcano or Muster do.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

LARGEST: Final = 256 * 1024
"""Bytes that keys and values of all annotations of an object may have together: the API server's rule."""
_READ_DOMAINS: Final = ("ray.io", "volcano.sh", "muster.dev")
_READ_KEYS: Final = ("sla-waiting-time",)


def copied_annotations(
    owner: Mapping[str, str], *, without: Collection[str], beside: Mapping[str, str] | None = None, room: int
) -> dict[str, str]:
    """The owner's annotations but for `without`, so few that `room` (bytes) is left with those that come `beside`."""
    copied = {key: value for key, value in owner.items() if key not in without}
    over = _size(copied) + _size(beside or {}) + room - LARGEST
    for key in sorted(copied, key=lambda key: (_is_read(key), -_size({key: copied[key]}))) if over > 0 else ():
        if over <= 0:
            break
        over -= _size({key: copied.pop(key)})
    return copied


def _is_read(key: str) -> bool:
    domain = key.partition("/")[0]
    return key in _READ_KEYS or any(domain == each or domain.endswith(f".{each}") for each in _READ_DOMAINS)


def _size(annotations: Mapping[str, str]) -> int:
    return sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
