"""`python -m bench`: schedulers side by side on a real API server with fake nodes.

Each run has a control plane of its own. Systems take turns, in alternating order; figures are medians. A system that
does not do what it should gets a remark, and the next one its turn.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import math
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TextIO, TypeVar

from bench import report
from bench.measuring import Patience, measure
from bench.results import Result, summary
from bench.scenarios import SCENARIOS, Mode, Scenario, scenario
from bench.systems import SYSTEMS, System, parse
from bench.unlimited_plane import unlimited_plane
from tests.cluster.control_plane import build
from tests.cluster.control_plane_commands import Options
from tests.cluster.prerequisites import PrerequisiteError
from tests.cluster.process import CommandFailedError
from tests.cluster.progress import Steps
from tests.cluster.termination import end_as_if_interrupted, remember_interrupts

T = TypeVar("T")
Number = TypeVar("Number", int, float)

_EXAMPLES = """
A system of your own is described by words, quoted as in a shell; {kubeconfig} and {folder} (for files) are filled in:
  --system "name=volcano schedulerName=volcano groupAnnotation=scheduling.k8s.io/group-name
            command='vc-scheduler --kubeconfig={kubeconfig} --leader-elect=false' crds=volcano/crds"
More words: groupLabel=LABEL instead of groupAnnotation, podGroups=GROUP/VERSION (scheduling.volcano.sh/v1beta1 if not
given), gate=NAME of a scheduling gate that its pods get. Without a group word its pods belong to no PodGroup.

  python -m bench                                             everything: hours
  python -m bench --scenario 1000x3 --mode stream             one table
  python -m bench --scale 0.05 --runs 1                       a small look at everything
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; 0 when all was measured, whatever the systems did, 1 when nothing could be, 130 when interrupted."""
    options = _parser().parse_args(arguments)
    end_as_if_interrupted()
    remember_interrupts()
    steps = Steps()
    try:
        build(Options())
        with _opened(options.output) as lines:
            _measure_all(options, steps, lines, sys.argv[1:] if arguments is None else arguments)
    except (PrerequisiteError, CommandFailedError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _measure_all(options: argparse.Namespace, steps: Steps, lines: TextIO | None, arguments: Sequence[str]) -> None:
    found = report.conditions(arguments)
    report.say(report.conditions_text(found))
    _write(lines, json.dumps(found))
    for each in options.scenario or SCENARIOS:
        scaled = each.scaled(options.scale)
        systems = [one for one in _systems(options) if scaled.all_fit or not one.bare]
        for mode in [mode for mode in each.modes if mode in (options.mode or Mode)]:
            _measure_table(scaled, mode, systems, options, steps, lines)


def _measure_table(
    scenario: Scenario,
    mode: Mode,
    systems: Sequence[System],
    options: argparse.Namespace,
    steps: Steps,
    lines: TextIO | None,
) -> None:
    """All runs of all systems on one scenario, in one mode, and their table."""
    results: dict[str, list[Result]] = {system.name: [] for system in systems}
    for number, system in _turns(systems, options.runs):
        with steps.step(f"{scenario.name} {mode.value}: {system.name}, run {number}"):
            result = _run(scenario, mode, system, options)
        results[system.name].append(result)
        _write(lines, report.run_line(scenario, mode, system.name, number, result))
    summaries = {name: summary(found) for name, found in results.items() if found}
    for name, each in summaries.items():
        _write(lines, report.summary_line(scenario, mode, name, each))
    report.say(f"\n{scenario.name}, {mode.value}: {_size(scenario.in_mode(mode))}\n")
    report.say(report.table(summaries, _ceilings(systems), mode))


def _turns(systems: Sequence[System], runs: int) -> Iterator[tuple[int, System]]:
    """Each system once a run, in one order and then the other: what changes with time favours nobody."""
    for number in range(1, runs + 1):
        for system in systems if number % 2 else reversed(systems):
            yield number, system


def _run(scenario: Scenario, mode: Mode, system: System, options: argparse.Namespace) -> Result:
    try:
        with unlimited_plane() as plane:
            patience = Patience(start=options.start, stall=options.stall)
            return asyncio.run(measure(plane, scenario, mode, system, pace=options.pace, patience=patience))
    except Exception as error:  # whatever it is, the others are measured
        traceback.print_exc()
        expected = scenario.in_mode(mode).fitting * scenario.size
        return Result(expected, faults=(f"could not be measured: {type(error).__name__}: {error}",))


def _ceilings(systems: Sequence[System]) -> dict[str, str]:
    """Which bare client makes the requests that each of the others cannot do without."""
    bare = {bool(system.gate): system.name for system in systems if system.bare}
    return {system.name: bare.get(bool(system.gate), "") for system in systems if not system.bare}


def _systems(options: argparse.Namespace) -> list[System]:
    """Those that were asked for, else all; the bare clients with them, unless they are not wanted."""
    chosen = list(options.system or SYSTEMS)
    bare = [system for system in SYSTEMS if system.bare and system not in chosen]
    systems = [*bare, *chosen]
    return [system for system in systems if options.ceiling or not system.bare]


def _size(scenario: Scenario) -> str:
    return (
        f"{scenario.title} (here {scenario.gangs} gangs of {scenario.size} on {scenario.nodes} nodes"
        f"{f', {scenario.parked} parked' if scenario.parked else ''})"
    )


def _opened(path: Path | None) -> contextlib.AbstractContextManager[TextIO | None]:
    return path.open("a") if path is not None else contextlib.nullcontext()


def _write(lines: TextIO | None, line: str) -> None:
    if lines is not None:
        print(line, file=lines, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description=(__doc__ or "").partition("\n\n")[2],
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = ", ".join(each.name for each in SCENARIOS)
    parser.add_argument(
        "--scenario", action="append", type=_checked(scenario), metavar="NAME", help=f"one of {names}; repeatable [all]"
    )
    parser.add_argument(
        "--mode",
        action="append",
        type=Mode,
        choices=[*Mode],
        help="drain: all pods exist before the scheduler starts; stream: they come at full speed while it runs; "
        "paced: so many gangs a second; repeatable [all that the scenario has]",
    )
    systems = ", ".join(each.name for each in SYSTEMS)
    parser.add_argument(
        "--system",
        action="append",
        type=_checked(parse),
        metavar="SYSTEM",
        help=f"one of {systems}, or one of your own (see below); repeatable [all]",
    )
    parser.add_argument(
        "--no-ceiling", dest="ceiling", action="store_false", help="without the bare clients that show what is possible"
    )
    parser.add_argument("--runs", type=_positive(int), default=3, help="of each; medians are shown [%(default)s]")
    parser.add_argument(
        "--scale", type=_positive(float), default=1.0, help="so many times the nodes and pods [%(default)s]"
    )
    parser.add_argument("--pace", type=_positive(float), default=10.0, help="gangs a second when paced [%(default)s]")
    for name, default, what in (
        ("--start", 120.0, "that a system has for its first binding"),
        ("--stall", 60.0, "without a further binding, after which a run is over"),
    ):
        parser.add_argument(
            name, type=_positive(float), default=default, metavar="SECONDS", help=f"{what} [%(default)s]"
        )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="append a line of JSON for each run and each median"
    )
    return parser


def _checked(read: Callable[[str], T]) -> Callable[[str], T]:
    """Have argparse say what is wrong in the words of the error."""

    def checked(text: str) -> T:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return checked


def _positive(kind: type[Number]) -> Callable[[str], Number]:
    def read(text: str) -> Number:
        try:
            value = kind(text)
        except ValueError:
            value = kind(0)
        if not 0 < value < math.inf:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
        return value

    return read


if __name__ == "__main__":
    sys.exit(main())
