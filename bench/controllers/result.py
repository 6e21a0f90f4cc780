"""What one run of one system came to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bench.processes import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """Milliseconds of processor for each object, and the largest resident memory in MiB."""

    ms_each: float
    peak_mib: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What was measured; `writes` and milliseconds are for each object, latencies in seconds."""

    per_second: float
    p50: float
    p99: float
    system: Mapping[str, Used]
    plane: Mapping[str, Used]
    writes: float
    writes_by_kind: Mapping[str, float]
    writes_after: int
    writes_after_by_kind: Mapping[str, int]
    questions: float = 0.0
    """To the dashboards, for each job."""

    @property
    def system_ms(self) -> float:
        """Of all processes of the system together."""
        return sum(used.ms_each for used in self.system.values())

    @property
    def system_mib(self) -> float:
        """Of all processes of the system together."""
        return sum(used.peak_mib for used in self.system.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A run: its figures, or what went wrong (then there may be none)."""

    scenario: str
    system: str
    run: int
    count: int
    figures: Figures | None = None
    trouble: Sequence[str] = field(default=())


def percentile(ascending: Sequence[float], share: float) -> float:
    """The smallest value that this share of all values does not exceed."""
    return ascending[max(0, math.ceil(share * len(ascending)) - 1)]


def used_since(before: Mapping[str, Usage], after: Mapping[str, Usage], count: int) -> dict[str, Used]:
    """What each process used between two looks, for each of `count` objects; the peak is that of its whole life."""
    since = {name: now.since(before.get(name, Usage())) for name, now in after.items()}
    return {name: Used(ms_each=used.cpu * 1000 / count, peak_mib=used.peak) for name, used in since.items()}
