"""`muster simulate`: what the scheduler would do with these manifests, without a cluster."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

if TYPE_CHECKING:
    from collections import Counter

    from muster.scheduler.conf import SchedulerConfiguration
    from muster.simulator.simulation import Simulation
    from muster.simulator.sources import Sources

BAD_INPUT = 2


class Output(StrEnum):
    """How the answer is written."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def simulate(
    manifests: Annotated[
        list[str],
        # Hidden from the list of arguments, where its type would stand beside it as Python has it.
        typer.Argument(metavar="MANIFEST", hidden=True),
    ],
    conf: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The scheduler's configuration, in Volcano's format, or its ConfigMap's manifest.",
            show_default=False,
        ),
    ] = None,
    cycles: Annotated[int, typer.Option(min=1, metavar="N", help="How many cycles to run.")] = 1,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to write the answer.")] = Output.TABLE,
    now: Annotated[
        str | None, typer.Option(metavar="RFC3339", help="The time of the first cycle.", show_default="now")
    ] = None,
    step: Annotated[float, typer.Option(min=0, metavar="SECONDS", help="Time between two cycles.")] = 1.0,
    grace: Annotated[int, typer.Option(min=0, metavar="CYCLES", help="Leaving pods are gone after so many.")] = 1,
    scheduler_name: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Pods with this schedulerName are ours; repeatable. [as in the snapshot; muster, volcano]",
        ),
    ] = None,
    gang_repair_timeout: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Seconds in which a gang that lost members is completed, else rolled back.",
            show_default="as in the snapshot, else 60",
        ),
    ] = None,
    admission_timeout: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Seconds after which an admitted gang without a place gives its reservation back, and a pod that "
            "should leave is not waited for any more.",
            show_default="as in the snapshot, else 300",
        ),
    ] = None,
    starvation_timeout: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Seconds after which room is held for a gang that waits; 0: never. A Queue may differ.",
            show_default="as in the snapshot, else 600",
        ),
    ] = None,
) -> None:
    """Run the scheduler on manifests, no cluster needed.

    A MANIFEST is a file of YAML or JSON (several documents, Lists), or a snapshot (zip); - is stdin. Of RayJobs and
    RayClusters nothing is made: it takes PodGroups and pods.

    Between cycles bound pods run, evicted and deleted ones go, and nothing else changes. Exit status: 0 the cycles ran,
    whatever was placed; 2 the input or the configuration can't be used.
    """
    import gc

    from muster.scheduler.conf import ConfigurationError
    from muster.simulator.command_line import DEFAULT_NAMES, CommandLine
    from muster.simulator.input_error import InputError
    from muster.simulator.manifests import read_manifests
    from muster.simulator.model import build_model
    from muster.simulator.outside import left_unasked
    from muster.simulator.simulation import Pace, Simulation
    from muster.simulator.sources import read_sources

    start = _time(now)
    gc.disable()  # nothing of what is read is garbage before the end: looking for some takes a tenth of the time
    try:
        sources = read_sources(manifests)
        said = CommandLine(gang_repair_timeout, admission_timeout, starvation_timeout)
        configuration = said.lay_over(sources.command_line.lay_over(_configuration(conf, sources)))
        found = read_manifests(sources.documents)
        model = build_model(found, scheduler_name or sources.command_line.scheduler_names or DEFAULT_NAMES)
    except (InputError, ConfigurationError) as error:
        _refuse(str(error))
    finally:
        gc.enable()
    _say_passed_over(found.passed_over)
    for each in (*model.left_out, *left_unasked(configuration)):
        typer.echo(f"muster: left out {each}", err=True)
    _run(Simulation(model, configuration, Pace(start, step, grace)), cycles, output)


def _time(text: str | None) -> float:
    import time

    from muster.engine.times import unix_seconds

    try:
        return time.time() if text is None else unix_seconds(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no RFC 3339 time", param_hint="--now") from None


def _configuration(path: Path | None, sources: Sources) -> SchedulerConfiguration:
    from muster.engine.configuration_source import parse_configuration, read_configuration
    from muster.scheduler.conf import DEFAULT, ConfigurationError

    if path is None:
        found = sources.configuration
        return DEFAULT if found is None else parse_configuration(found[1], found[0])
    try:
        return read_configuration(path)
    except OSError as error:
        raise ConfigurationError(str(path), error.strerror or str(error)) from error


def _say_passed_over(passed_over: Counter[str]) -> None:
    if passed_over:
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(passed_over.items()))
        typer.echo(f"muster: passed over {passed_over.total()} objects of other kinds ({kinds})", err=True)


def _run(simulation: Simulation, cycles: int, output: Output) -> None:
    from muster.engine.times import rfc3339
    from muster.simulator.report import cycle_document
    from muster.simulator.table import cycle_tables

    documents: list[dict[str, Any]] = []
    for number in range(1, cycles + 1):
        if number > 1:
            simulation.advance()
        document = cycle_document(simulation.cycle(), simulation.model.cache, simulation.inquiry())
        if output is Output.TABLE:
            heading = f"cycle {number}, {rfc3339(simulation.now)}"
            typer.echo("\n\n".join(part for part in (heading, cycle_tables(document)) if part) + "\n")
        else:
            documents.append(document)
    if output is not Output.TABLE:
        _write({"cycles": documents}, output)


def _write(document: dict[str, Any], output: Output) -> None:
    if output is Output.JSON:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
        return
    import yaml

    typer.echo(yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True), nl=False)


def _refuse(problem: str) -> NoReturn:
    typer.echo(f"muster: {problem}", err=True)
    raise typer.Exit(BAD_INPUT)
