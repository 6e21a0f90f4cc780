"""`muster snapshot`: what the scheduler of a running cluster sees, in one file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from muster.cli.cluster_options import DEPLOYMENT, MUSTER_NAMESPACE, Context, Deployment, Kubeconfig, MusterNamespace

if TYPE_CHECKING:
    from muster.kube.config import Connection
    from muster.simulator.collecting import Collection


def snapshot(
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The zip to write; - for stdout. [muster-snapshot-TIME.zip]"
        ),
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    conf: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The scheduler's configuration, or its ConfigMap's manifest; without it that of Muster's Deployment.",
            show_default=False,
        ),
    ] = None,
    muster_namespace: MusterNamespace = MUSTER_NAMESPACE,
    # Its name before `muster explain` had one too; there --namespace is another.
    namespace: Annotated[str | None, typer.Option("--namespace", "-n", hidden=True)] = None,
    deployment: Deployment = DEPLOYMENT,
) -> None:
    """Write everything that a scheduling cycle reads into a zip, for `muster simulate` and `muster explain --from`.

    Secrets, ConfigMaps, environments, commands and most annotations of pods are left out. Exit status: 0 written;
    1 the cluster can't be read, or the file not be written; 2 bad usage.
    """
    import asyncio
    import time

    from muster.kube.config import ConnectionConfigError, load_connection
    from muster.kube.errors import ApiError
    from muster.simulator.snapshot import snapshot_zip

    taken = time.time()
    configuration = _configuration(conf) if conf is not None else None
    try:
        found = asyncio.run(_collect(load_connection(kubeconfig, context), namespace or muster_namespace, deployment))
    except ConnectionConfigError as error:
        _fail(f"{kubeconfig}: {error}" if kubeconfig is not None else str(error))
    except ApiError as error:
        _fail(str(error))
    for each in found.left_out:
        if configuration is None or not each.startswith("the configuration"):
            typer.echo(f"muster: left out {each}", err=True)
    content = snapshot_zip(found.objects, configuration or found.configuration, taken, found.command_line)
    _write(output or time.strftime("muster-snapshot-%Y%m%dT%H%M%SZ.zip", time.gmtime(taken)), content)


def _configuration(path: Path) -> bytes:
    """The text of the configuration; of a ConfigMap nothing else goes into the snapshot."""
    from muster.engine.configuration_text import find_configuration
    from muster.scheduler.conf import ConfigurationError

    try:
        return find_configuration(path.read_bytes(), str(path)).content
    except OSError as error:
        _fail(f"{path}: {error.strerror}", status=2)
    except ConfigurationError as error:
        _fail(str(error), status=2)


async def _collect(connection: Connection, namespace: str, deployment: str) -> Collection:
    from muster.kube.client import ApiClient
    from muster.simulator.collecting import collect

    async with ApiClient(connection, user_agent="muster-snapshot") as client:
        return await collect(client, namespace=namespace, deployment=deployment)


def _write(output: str, content: bytes) -> None:
    if output == "-":
        sys.stdout.buffer.write(content)
        return
    try:
        Path(output).write_bytes(content)
    except OSError as error:
        _fail(f"can't write to {output}: {error.strerror}")
    typer.echo(output)


def _fail(problem: str, *, status: int = 1) -> NoReturn:
    typer.echo(f"muster: {problem}", err=True)
    raise typer.Exit(status)
