"""What a configuration says of an extender."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any
from urllib.parse import urlsplit

from muster.scheduler.plugins.arguments import boolean, duration, names

_PREFIX, _TIMEOUT = "extender.urlPrefix", "extender.httpTimeout"
_IGNORABLE, _MANAGED = "extender.ignorable", "extender.managedResources"


class Point(Enum):
    """Where an extender has a say; the value is Volcano's name for it."""

    SESSION_OPEN = "onSessionOpen"
    SESSION_CLOSE = "onSessionClose"
    PREDICATE = "predicate"
    PRIORITIZE = "prioritize"
    PREEMPTABLE = "preemptable"
    RECLAIMABLE = "reclaimable"
    QUEUE_OVERUSED = "queueOverused"
    JOB_ENQUEUEABLE = "jobEnqueueable"
    JOB_READY = "jobReady"
    ALLOCATE = "allocateFunc"
    DEALLOCATE = "deallocateFunc"

    @property
    def argument(self) -> str:
        """The argument that names the point's verb."""
        return f"extender.{self.value}Verb"


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"must be text, not {value!r}")
    return value


def _address(value: object) -> str:
    if not isinstance(value, str) or not _is_address(value):
        raise ValueError(f"must be an address such as http://extender.example:8080, not {value!r}")
    return value


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _timeout(value: object) -> float:
    seconds = duration(value)
    if seconds <= 0:
        raise ValueError(f"must be longer than nothing, not {value!r}")
    return seconds


ARGUMENTS: dict[str, Callable[[object], Any]] = {
    _PREFIX: _address,
    _TIMEOUT: _timeout,
    _IGNORABLE: boolean,
    _MANAGED: names,
    **{point.argument: _text for point in Point},
}


@dataclass(frozen=True, slots=True)
class ExtenderOptions:
    """The arguments, understood. `timeout` is in seconds; a point without a verb is not the extender's business.

    `managed`: only tasks that ask for one of these resources are, all without any.
    """

    prefix: str = ""
    timeout: float = 1.0
    ignorable: bool = False
    managed: frozenset[str] = frozenset()
    verbs: Mapping[Point, str] = field(default_factory=dict)

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> ExtenderOptions:
        """Out of parsed arguments. Raises ValueError when there are verbs but nobody to send them to."""
        verbs = {point: verb for point in Point if (verb := arguments.get(point.argument, ""))}
        if verbs and _PREFIX not in arguments:
            raise ValueError(f"{_PREFIX} is missing: who is to be asked?")
        return cls(
            arguments.get(_PREFIX, ""),
            arguments.get(_TIMEOUT, 1.0),
            arguments.get(_IGNORABLE, False),
            frozenset(arguments.get(_MANAGED, ())),
            verbs,
        )

    def url(self, point: Point) -> str:
        """Where the point is asked."""
        return f"{self.prefix.rstrip('/')}/{self.verbs[point]}"
