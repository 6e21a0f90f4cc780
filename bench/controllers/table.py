"""Results as lines of a table, and the medians of the runs of a system."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence

from bench.controllers.result import Figures, Result, Used

_COLUMNS: Mapping[str, Callable[[Figures], float]] = {
    "per s": lambda figures: figures.per_second,
    "p50 s": lambda figures: figures.p50,
    "p99 s": lambda figures: figures.p99,
    "ms": lambda figures: figures.system_ms,
    "API ms": lambda figures: _ms(figures, "kube-apiserver"),
    "etcd ms": lambda figures: _ms(figures, "etcd"),
    "peak MiB": lambda figures: figures.system_mib,
    "writes": lambda figures: figures.writes,
    "after": lambda figures: figures.writes_after,
}
HEADER = f"{'scenario':9} {'system':12} " + " ".join(f"{name:>8}" for name in _COLUMNS) + "  each process"


def row(result: Result) -> str:
    """A line for a run: its figures and what each process used, then what went wrong."""
    parts = [_names(result.scenario, result.system)]
    if result.figures is not None:
        figures = result.figures
        parts += [_cells([column(figures) for column in _COLUMNS.values()]), _processes(figures.system)]
    if result.trouble:
        parts.append(f"FAILED: {'; '.join(result.trouble)}")
    return " ".join(parts)


def medians(results: Iterable[Result]) -> list[str]:
    """A line for each scenario and system: the medians of its runs that went well, and how many those are."""
    runs: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        runs.setdefault((result.scenario, result.system), []).append(result)
    return [_median(names, of_one) for names, of_one in runs.items()]


def _median(names: tuple[str, str], results: Sequence[Result]) -> str:
    good = [result.figures for result in results if result.figures is not None and not result.trouble]
    runs = f"median of {len(good)}" + (f"; {len(results) - len(good)} failed" if len(good) < len(results) else "")
    if not good:
        return f"{_names(*names)} all {len(results)} failed"
    cells = _cells([statistics.median(map(column, good)) for column in _COLUMNS.values()])
    programs = {
        name: Used(
            ms_each=statistics.median(figures.system[name].ms_each for figures in good),
            peak_mib=statistics.median(figures.system[name].peak_mib for figures in good),
        )
        for name in good[0].system
    }
    return f"{_names(*names)} {cells} {_processes(programs)} ({runs})"


def _names(scenario: str, system: str) -> str:
    return f"{scenario:9} {system:12}"


def _cells(values: Iterable[float]) -> str:
    return " ".join(f"{value:8.1f}" for value in values)


def _processes(programs: Mapping[str, Used]) -> str:
    return " " + ", ".join(f"{name} {used.ms_each:.1f} ms {used.peak_mib:.0f} MiB" for name, used in programs.items())


def _ms(figures: Figures, program: str) -> float:
    return figures.plane[program].ms_each
