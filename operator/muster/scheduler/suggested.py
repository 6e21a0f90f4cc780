"""What a waiting gang could ask for instead, as a value; `suggestion` finds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class AtMost:
    """With how many members, in words and as fields, the gang's queue could hold it at all.

    `fewer` says besides how many it has. `others` hold some of that now.
    """

    members: str
    fewer: str
    change: Mapping[str, Any]
    others: bool


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What the gang could ask for to be placed now: in words, and as the fields that would change. Empty: nothing."""

    text: str
    change: Mapping[str, Any]
    at_most: AtMost | None = None

    @property
    def words(self) -> str:
        """All of it in one sentence."""
        most = self.at_most
        if most is None:
            return self.text
        once = " once others give back what they hold" if most.others else ""
        if not self.text:
            return f"with {most.fewer} its queue could hold it{once}"
        if self.change.get("minMember") == most.change["minMember"]:
            return f"{self.text}; more its queue can never hold"
        return f"{self.text}; with {most.members} its queue could hold it{once}"
