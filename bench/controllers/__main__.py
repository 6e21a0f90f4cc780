"""The command line: `python -m bench.controllers`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from bench import controllers
from bench.controllers.measurement import Settings, measure
from bench.controllers.plane import Crds
from bench.controllers.result import Result
from bench.controllers.scenario import Kind, Scenario
from bench.controllers.systems import BUILT_IN, CEILING, System, UnknownSystem, chosen_systems
from bench.controllers.table import HEADER, medians, row

_DEFAULT: Final = Settings()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; the exit status is 1 if a run failed."""
    parser = _parser()
    options = parser.parse_args(arguments)
    settings = Settings(options.nodes, options.crds, options.patience, options.settle, options.quiet)
    try:
        systems = chosen_systems(filter(None, options.systems.split(",")), options.system)
    except UnknownSystem as error:
        parser.error(str(error))
    scenarios = [Scenario(kind, options.count, options.job_seconds) for kind in options.scenario or list(Kind)]
    results: list[Result] = []
    print(HEADER, flush=True)
    for scenario, system, run in turns(scenarios, systems, options.runs):
        result = measure(system, scenario, settings, run)
        results.append(result)
        print(row(result), flush=True)
        if options.json is not None:
            _append(options.json, result, settings)
    print("", *medians(results), sep="\n")
    return int(any(result.trouble for result in results))


def turns(
    scenarios: Sequence[Scenario], systems: Sequence[System], runs: int
) -> Iterator[tuple[Scenario, System, int]]:
    """All runs: scenario by scenario, the systems one after the other, every second time in the opposite order."""
    for scenario in scenarios:
        able = [system for system in systems if scenario.kind is Kind.CLUSTERS or system is not CEILING]
        for run in range(runs):
            yield from ((scenario, system, run) for system in (able if run % 2 == 0 else able[::-1]))


def _append(path: Path, result: Result, settings: Settings) -> None:
    line = {"at": datetime.now(UTC), **msgspec.to_builtins(result), "settings": msgspec.to_builtins(settings)}
    with path.open("ab") as file:
        file.write(msgspec.json.encode(line) + b"\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m bench.controllers",
        description=controllers.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("scenario", nargs="*", type=Kind, metavar="SCENARIO", help="clusters, jobs; both if none is named")
    add("--count", type=_positive, default=1000, help="RayClusters or RayJobs; %(default)s")
    add("--nodes", type=_positive, default=_DEFAULT.nodes, help="fake nodes, each with room for 32 pods; %(default)s")
    add("--runs", type=_positive, default=3, help="of each system; %(default)s")
    add("--systems", default=",".join(BUILT_IN), help="the built-in ones to run, with commas; %(default)s")
    add("--system", action="append", default=[], metavar="NAME=COMMAND", help="one more; {kubeconfig} is replaced")
    add("--crds", type=Crds, default=_DEFAULT.crds, help="own, or kuberay: KubeRay's for all; %(default)s")
    add("--job-seconds", type=float, default=10.0, help="for which a job runs; %(default)s")
    add("--patience", type=float, default=_DEFAULT.patience, help="seconds without progress; %(default)s")
    add("--settle", type=float, default=_DEFAULT.settle, help="seconds of pause after the last one; %(default)s")
    add("--quiet", type=float, default=_DEFAULT.quiet, help="seconds in which writes are counted; %(default)s")
    add("--json", type=Path, metavar="FILE", help="append a line of JSON for each run")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


if __name__ == "__main__":
    sys.exit(main())
