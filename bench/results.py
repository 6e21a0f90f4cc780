"""What one run came to, and what several runs of one kind come to together."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bench.census import Census
from bench.processes import Usage

SYSTEM, API_SERVER, ETCD = "system", "kube-apiserver", "etcd"
PROCESSES = (SYSTEM, API_SERVER, ETCD)
"""Whose usage is told."""

QUANTILES = (50, 90, 99)


@dataclass(frozen=True, slots=True)
class Result:
    """One run of a system on a scenario in one mode.

    `expected` pods have room. `seconds` is from the beginning to the last binding, None when nothing was bound;
    `during` counts the pods bound in that time, those that have ended since included. `latencies` are of the gangs that
    were bound whole, in seconds. `writes` are the system's, by verb and resource. `faults` are sentences, none when all
    went as it should.
    """

    expected: int
    census: Census = field(default_factory=Census)
    during: int = 0
    seconds: float | None = None
    latencies: tuple[float, ...] = ()
    usage: dict[str, Usage] = field(default_factory=dict)
    writes: Mapping[str, int] = field(default_factory=dict)
    faults: tuple[str, ...] = ()

    @property
    def rate(self) -> float | None:
        """Bound pods a second."""
        return self.during / self.seconds if self.seconds else None

    @property
    def writes_a_pod(self) -> float | None:
        """Writes at the API server for each bound pod, the benchmark's own not counted."""
        return sum(self.writes.values()) / self.during if self.during else None

    def quantile(self, percent: int) -> float | None:
        """The latency within which so many percent of the gangs were bound, in seconds."""
        if not self.latencies:
            return None
        return sorted(self.latencies)[max(0, -(-len(self.latencies) * percent // 100) - 1)]

    def cpu_a_pod(self, process: str) -> float | None:
        """Seconds of processor for each bound pod."""
        return self.usage[process].cpu / self.during if self.during and process in self.usage else None

    def peak(self, process: str) -> float | None:
        """MiB; None where it is not known."""
        return (self.usage[process].peak or None) if process in self.usage else None


@dataclass(frozen=True, slots=True)
class Summary:
    """The median of each figure over some runs; of what must not happen, the worst."""

    runs: int
    expected: int
    bound: int
    partial: int
    rate: float | None
    quantiles: dict[int, float | None]
    cpu_a_pod: dict[str, float | None]
    peak: dict[str, float | None]
    writes_a_pod: float | None
    faults: tuple[str, ...]


def summary(results: Sequence[Result]) -> Summary:
    """What these runs come to; there is at least one."""
    return Summary(
        runs=len(results),
        expected=results[0].expected,
        bound=min(each.census.bound for each in results),
        partial=max(each.census.partial for each in results),
        rate=_median(each.rate for each in results),
        quantiles={percent: _median(each.quantile(percent) for each in results) for percent in QUANTILES},
        cpu_a_pod={process: _median(each.cpu_a_pod(process) for each in results) for process in PROCESSES},
        peak={process: _median(each.peak(process) for each in results) for process in PROCESSES},
        writes_a_pod=_median(each.writes_a_pod for each in results),
        faults=_faults(results),
    )


def _median(figures: Iterable[float | None]) -> float | None:
    """The median of those that there are."""
    found = [figure for figure in figures if figure is not None]
    return statistics.median(found) if found else None


def _faults(results: Sequence[Result]) -> tuple[str, ...]:
    """Each fault once; with the number of the run where there are several."""
    if len(results) == 1:
        return results[0].faults
    return tuple(f"run {number}: {fault}" for number, result in enumerate(results, 1) for fault in result.faults)
