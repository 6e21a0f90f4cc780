"""`muster crds`: the CustomResourceDefinitions, for `kubectl apply`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Output = Annotated[
    Path | None,
    typer.Option("--output", metavar="DIR", file_okay=False, help="Write one file a kind into DIR instead of stdout."),
]


def crds(output: Output = None) -> None:
    """Print the CustomResourceDefinitions that Muster needs, or write them into a directory.

    Without --output they go to stdout as one stream: muster crds | kubectl apply -f -
    """
    from muster.api.crds import generate  # here, so that the other commands don't pay for the models

    files = generate()
    if output is None:
        typer.echo("---\n".join(files.values()), nl=False)
        return
    try:
        _write(output, files)
    except OSError as error:
        typer.echo(f"can't write to {output}: {error.strerror}", err=True)
        raise typer.Exit(1) from None


def _write(directory: Path, files: dict[str, str]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (directory / name).write_text(text, encoding="utf-8")
        typer.echo(directory / name)
