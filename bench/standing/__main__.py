"""The command line: `python -m bench.standing`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from bench import report, standing
from bench.controllers.manifests import PODS_EACH
from bench.standing import rest, start
from bench.standing.program import WHOLE
from bench.standing.table import rest_header, rest_row, rest_summary, start_header, start_row
from tests.cluster.termination import end_as_if_interrupted, remember_interrupts

_MOST_PODS: Final = 25
"""For each node, so that there is room for gangs, too."""
_START: Final = start.Settings()
_REST: Final = rest.Settings()


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; the exit status is 0 if all went well, 1 if something did not, 130 when interrupted."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.pods > _MOST_PODS * options.nodes:
        parser.error(f"--pods: a node has room for {_MOST_PODS}")
    end_as_if_interrupted()
    remember_interrupts()
    conditions = report.conditions(sys.argv[1:] if arguments is None else arguments)
    report.say(report.conditions_text(conditions))
    try:
        return _start(options, conditions) if options.measurement == "start" else _rest(options, conditions, parser)
    except KeyboardInterrupt:
        return 130


def _start(options: argparse.Namespace, conditions: dict[str, Any]) -> int:
    settings = start.Settings(options.nodes, options.pods, options.after, options.patience)
    report.say(start_header())
    failed = False
    for result in start.measure_starts(settings, options.components or [WHOLE], options.runs):
        report.say(start_row(result))
        _append(options, conditions, settings, result)
        failed = failed or bool(result.trouble)
    return int(failed)


def _rest(options: argparse.Namespace, conditions: dict[str, Any], parser: argparse.ArgumentParser) -> int:
    if options.pods < options.gangs * PODS_EACH:
        parser.error(f"--pods: {options.gangs} gangs have {options.gangs * PODS_EACH}")
    settings = rest.Settings(
        options.nodes,
        options.pods,
        options.gangs,
        options.seconds,
        options.intervals,
        options.settle,
        options.patience,
    )
    report.say(rest_header())
    result = rest.measure_rest(settings, lambda part: report.say(rest_row(part)))
    for line in rest_summary(result):
        report.say(line)
    _append(options, conditions, settings, result)
    return int(bool(result.trouble))


def _append(options: argparse.Namespace, conditions: dict[str, Any], settings: object, result: object) -> None:
    if options.json is None:
        return
    head = {"at": datetime.now(UTC), "measurement": options.measurement, **msgspec.to_builtins(result)}
    line = {**head, "settings": msgspec.to_builtins(settings), "conditions": conditions}
    with options.json.open("ab") as file:
        file.write(msgspec.json.encode(line) + b"\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m bench.standing",
        description=standing.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    kinds = parser.add_subparsers(dest="measurement", required=True, metavar="{start,rest}")
    starting = kinds.add_parser("start", help="from the start of the process to its first decision")
    _add_common(starting, _START.nodes, _START.pods, _START.patience)
    starting.add_argument(
        "--components",
        action="append",
        metavar="NAMES",
        help=f"what runs in the process, with commas; repeatable; {WHOLE}",
    )
    starting.add_argument("--runs", type=_positive, default=1, help="starts with each; %(default)s")
    _add_seconds(starting, "--after", _START.after, "from the first binding to the second look")
    resting = kinds.add_parser("rest", help="processor, memory and writes while nothing happens")
    _add_common(resting, _REST.nodes, _REST.pods, _REST.patience)
    add = resting.add_argument
    add("--gangs", type=_positive, default=_REST.gangs, help="RayClusters, whose pods are among all pods; %(default)s")
    _add_seconds(resting, "--seconds", _REST.seconds, "of rest")
    add("--intervals", type=_positive, default=_REST.intervals, help="into which they are split; %(default)s")
    _add_seconds(resting, "--settle", _REST.settle, "without a write before the rest begins")
    return parser


def _add_common(parser: argparse.ArgumentParser, nodes: int, pods: int, patience: float) -> None:
    parser.add_argument("--nodes", type=_positive, default=nodes, help="fake nodes; %(default)s")
    parser.add_argument("--pods", type=_positive, default=pods, help=f"at most {_MOST_PODS} a node; %(default)s")
    _add_seconds(parser, "--patience", patience, "without progress, after which a run is given up")
    parser.add_argument("--json", type=Path, metavar="FILE", help="append a line of JSON for each run")


def _add_seconds(parser: argparse.ArgumentParser, name: str, default: float, what: str) -> None:
    parser.add_argument(name, type=_seconds, default=default, metavar="SECONDS", help=f"seconds {what}; {default:g}")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def _seconds(text: str) -> float:
    number = float(text)
    if not 0 < number < 1e9:
        raise ValueError
    return number


if __name__ == "__main__":
    sys.exit(main())
