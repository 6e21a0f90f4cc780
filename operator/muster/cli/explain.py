"""`muster explain`: why something does not run."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from muster.cli.cluster_options import DEPLOYMENT, MUSTER_NAMESPACE, Context, Deployment, Kubeconfig, MusterNamespace

if TYPE_CHECKING:
    from muster.explain.target import Target
    from muster.scheduler.conf import SchedulerConfiguration

BAD_INPUT = 2


class Output(StrEnum):
    """How the answer is written."""

    TEXT = "text"
    JSON = "json"
    YAML = "yaml"


def explain(
    target: Annotated[
        str,
        # Hidden from the list of arguments, where its type would stand beside it as Python has it.
        typer.Argument(metavar="KIND/NAME", hidden=True),
    ],
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", metavar="NAMESPACE", help="The namespace of NAME.")
    ] = "default",
    output: Annotated[Output, typer.Option("--output", "-o", help="How to write the answer.")] = Output.TEXT,
    source: Annotated[
        list[str] | None,
        typer.Option("--from", metavar="FILE", help="Manifests or a snapshot instead of a cluster; repeatable."),
    ] = None,
    conf: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The scheduler's configuration, or its ConfigMap's manifest; without it that of the snapshot, or of "
            "Muster's Deployment.",
        ),
    ] = None,
    now: Annotated[
        str | None, typer.Option(metavar="RFC3339", help="The time to answer for, with --from.", show_default="now")
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    muster_namespace: MusterNamespace = MUSTER_NAMESPACE,
    deployment: Deployment = DEPLOYMENT,
    scheduler_name: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Pods with this schedulerName are ours; repeatable. [as the scheduler was told; muster, volcano]",
        ),
    ] = None,
) -> None:
    """Say why a gang waits, who has the room, and what would help; or why a placed one does not run yet.

    KIND/NAME is podgroup/NAME, rayjob/NAME, raycluster/NAME or pod/NAME.

    The scheduler itself is asked, on what you may read of the cluster. Where that is too little, or no scheduler runs,
    you are told what stands on the PodGroup and how old that is. Exit status: 0 answered; 1 there is no such thing, or
    the cluster can't be asked; 2 bad usage or input.
    """
    import time

    from muster.engine.times import unix_seconds
    from muster.explain.target import TargetError, parse_target
    from muster.scheduler.conf import ConfigurationError
    from muster.simulator.input_error import InputError

    names = tuple(scheduler_name or ())
    try:
        wanted = parse_target(target, namespace)
        at = time.time() if now is None else unix_seconds(now)
    except TargetError as error:
        _fail(str(error), status=BAD_INPUT)
    except ValueError:
        raise typer.BadParameter(f"{now!r} is no RFC 3339 time", param_hint="--now") from None
    try:
        if source:
            answer = _from_files(source, wanted, at, conf, names)
        else:
            place = (kubeconfig, context, muster_namespace, deployment)
            answer = _from_cluster(place, wanted, at, _configuration(conf), names)
    except (InputError, ConfigurationError) as error:
        _fail(str(error), status=BAD_INPUT)
    except TargetError as error:
        _fail(str(error))
    for each in answer.pop("leftOut", ()):
        typer.echo(f"muster: left out {each}", err=True)
    _write(answer, output)


def _from_files(
    files: list[str], target: Target, now: float, conf: Path | None, names: tuple[str, ...]
) -> dict[str, Any]:
    from muster.engine.configuration_source import parse_configuration
    from muster.explain.answer import explain as ask
    from muster.explain.from_files import ray_clusters, ray_state
    from muster.scheduler.conf import DEFAULT
    from muster.simulator.command_line import DEFAULT_NAMES
    from muster.simulator.manifests import read_manifests
    from muster.simulator.model import build_model
    from muster.simulator.outside import left_unasked
    from muster.simulator.simulation import Pace, Simulation
    from muster.simulator.sources import read_sources

    sources = read_sources(files)
    configuration = _configuration(conf)
    if configuration is None:
        found = sources.configuration
        configuration = DEFAULT if found is None else parse_configuration(found[1], found[0])
    configuration = sources.command_line.lay_over(configuration)
    names = names or sources.command_line.scheduler_names or DEFAULT_NAMES
    model = build_model(read_manifests(sources.documents), names)
    ray, clusters = ray_state(sources.documents, target), ray_clusters(sources.documents, target.namespace)
    answer = ask(Simulation(model, configuration, Pace(now)), target, ray, clusters)
    left_out = model.left_out + left_unasked(configuration)
    return {**answer, "leftOut": left_out} if left_out else answer


def _from_cluster(
    place: tuple[Path | None, str | None, str, str],
    target: Target,
    now: float,
    configuration: SchedulerConfiguration | None,
    names: tuple[str, ...],
) -> dict[str, Any]:
    import asyncio

    from muster.explain.from_cluster import explain_cluster
    from muster.kube.client import ApiClient
    from muster.kube.config import ConnectionConfigError, load_connection
    from muster.kube.errors import ApiError

    kubeconfig, context, namespace, deployment = place

    async def ask() -> dict[str, Any]:
        async with ApiClient(load_connection(kubeconfig, context), user_agent="muster-explain") as client:
            return await explain_cluster(
                client,
                target,
                now,
                namespace=namespace,
                deployment=deployment,
                configuration=configuration,
                scheduler_names=names,
            )

    try:
        return asyncio.run(ask())
    except ConnectionConfigError as error:
        _fail(f"{kubeconfig}: {error}" if kubeconfig is not None else str(error))
    except ApiError as error:
        _fail(str(error))


def _configuration(path: Path | None) -> SchedulerConfiguration | None:
    from muster.engine.configuration_source import read_configuration
    from muster.scheduler.conf import ConfigurationError

    try:
        return None if path is None else read_configuration(path)
    except OSError as error:
        raise ConfigurationError(str(path), error.strerror or str(error)) from error


def _write(answer: dict[str, Any], output: Output) -> None:
    if output is Output.TEXT:
        from muster.explain.text import as_text

        typer.echo(as_text(answer))
    elif output is Output.JSON:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(answer), indent=2).decode())
    else:
        import yaml

        typer.echo(yaml.safe_dump(answer, sort_keys=False, allow_unicode=True), nl=False)


def _fail(problem: str, *, status: int = 1) -> NoReturn:
    typer.echo(f"muster: {problem}", err=True)
    raise typer.Exit(status)
