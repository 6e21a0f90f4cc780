"""The commands, one file each. Status 0: done; 1: the thing asked for did not happen; 2: bad usage."""

from __future__ import annotations

import typer

from muster import __version__
from muster.cli.crds import crds
from muster.cli.explain import explain
from muster.cli.run import run
from muster.cli.simulate import simulate
from muster.cli.snapshot import snapshot
from muster.cli.submit import submit

# Each command imports what it needs when it runs: the submitter's pod has 64 MiB, and pays only for its own.
app = typer.Typer(
    name="muster",
    help="Gang scheduling for Ray on Kubernetes: one operator in place of KubeRay and Volcano.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command()(run)
app.command()(submit)
app.command()(crds)
app.command()(simulate)
app.command()(snapshot)
app.command()(explain)


@app.callback(invoke_without_command=True)
def version(show: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    """Gang scheduling for Ray on Kubernetes."""
    if show:
        typer.echo(f"muster {__version__}")
        raise typer.Exit


def main() -> None:
    """The entry point of `muster` and of `kubectl muster`."""
    app()
