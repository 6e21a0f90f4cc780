"""Results as lines of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bench.standing.audit import without_leases
from bench.standing.result import Interval, Rest, Start, Used

_START: Mapping[str, int] = {
    "components": -32,
    "run": 3,
    "first s": 8,
    "gang s": 8,
    "waited s": 8,
    "CPU s": 8,
    "peak MiB": 8,
    "CPU s +": 8,
    "peak +": 8,
    "MiB +": 8,
}
_REST: Mapping[str, int] = {"until s": 8, "CPU %": 8, "MiB": 8, "peak MiB": 8, "leases": 8, "writes": 8}
"""The columns and their widths; of negative width is what begins on the left."""


def start_header() -> str:
    """The names of the columns of starts."""
    return _line(_START, _START)


def start_row(start: Start) -> str:
    """A line for a start: its figures, as far as there are any, then what went wrong."""
    _, peak, cpu = _used(start.at_first)
    resident_later, peak_later, cpu_later = _used(start.later)
    moments = [_number(start.first, 2), _number(start.gang, 2)]
    moments.append(_number(None if start.at_first is None else start.at_first.waited, 2))
    cells = [start.components, str(start.run + 1), *moments, cpu, peak, cpu_later, peak_later, resident_later]
    return " ".join([_line(_START, cells), *_failed(start.trouble)])


def rest_header() -> str:
    """The names of the columns of a rest."""
    return _line(_REST, _REST)


def rest_row(part: Used | Interval) -> str:
    """A line for the beginning of a rest, or for an interval, with the kinds of its writes other than Leases."""
    if isinstance(part, Used):
        return _line(_REST, [_number(0.0), "-", *_used(part)[:2], "-", "-"])
    others = without_leases(part.writes)
    leases = sum(part.writes.values()) - others.total()
    cells = [_number(part.end), _number(part.cpu_percent, 2), *_used(part.used)[:2], str(leases), str(others.total())]
    kinds = ", ".join(f"{number} {kind}" for kind, number in others.most_common())
    return f"{_line(_REST, cells)}  {kinds}".rstrip()


def rest_summary(rest: Rest) -> list[str]:
    """The last lines for a rest: all of it, and what went wrong."""
    whole = [] if rest.whole is None else [f"{rest_row(rest.whole)}  (all)"]
    return [*whole, *_failed(rest.trouble)]


def _used(used: Used | None) -> tuple[str, str, str]:
    """MiB resident, MiB at most, seconds of processor."""
    if used is None:
        return "-", "-", "-"
    return _number(used.resident_mib), _number(used.peak_mib), _number(used.cpu, 2)


def _failed(trouble: Iterable[str]) -> list[str]:
    words = "; ".join(trouble)
    return [f"FAILED: {words}"] if words else []


def _number(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _line(columns: Mapping[str, int], cells: Iterable[str]) -> str:
    pairs = zip(cells, columns.values(), strict=True)
    return " ".join(f"{cell:<{-width}}" if width < 0 else f"{cell:>{width}}" for cell, width in pairs).rstrip()
