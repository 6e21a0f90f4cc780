"""A sort key in reverse, for use beside others that are not."""

from __future__ import annotations

from functools import total_ordering
from typing import Any


@total_ordering
class Descending:
    """Sorts what is larger first."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descending) and self.value == other.value

    def __lt__(self, other: Descending) -> bool:
        return bool(other.value < self.value)

    __hash__ = None  # type: ignore[assignment]  # for sorting only
