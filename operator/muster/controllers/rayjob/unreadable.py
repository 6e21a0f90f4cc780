"""What was made for the job and can't be read any more: told, and the job goes on as well as it can."""

from __future__ import annotations

import math
from dataclasses import dataclass

from muster.controllers.context import UNREADABLE_OBJECT
from muster.controllers.rayjob.look import Look


@dataclass(frozen=True, slots=True)
class Unreadable:
    """`pod` is the object that can't be read. Whoever spoilt it may correct it: no job is failed for it."""

    pod: str
    sentence: str
    role: str = "Object"
    reason: str = UNREADABLE_OBJECT
    hopeless_from: float = math.inf

    @property
    def stem(self) -> str:
        """The whole sentence: another fault is another sentence."""
        return self.sentence


def unreadable_objects(look: Look) -> list[Unreadable]:
    """The troubles of all kinds of objects that the job controls."""
    return [Unreadable(one.key, str(one)) for one in look.context.unreadable_children(look.job)]
