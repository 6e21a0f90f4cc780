"""What was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """Of one process since its start: seconds of processor, seconds for which its threads waited for one, and MiB of
    memory, resident now and at most.
    """

    cpu: float
    waited: float = 0.0
    resident_mib: float
    peak_mib: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """One start. Seconds are from the start of the process to the first binding and to that of the whole gang;
    `at_first` is what had been used at the first binding, `later` some seconds after it.
    """

    components: str
    run: int
    first: float | None = None
    gang: float | None = None
    at_first: Used | None = None
    later: Used | None = None
    trouble: Sequence[str] = field(default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Some time of rest. `end` is seconds from the beginning of the rest, `writes` are by verb and resource, Leases
    included, `used` is since the start of the process, in the end of the interval.
    """

    seconds: float
    end: float
    cpu_percent: float
    used: Used
    writes: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """All of a rest: what had been used when it began, its intervals, all of them together, and what went wrong."""

    beginning: Used | None = None
    intervals: Sequence[Interval] = field(default=())
    whole: Interval | None = None
    trouble: Sequence[str] = field(default=())
