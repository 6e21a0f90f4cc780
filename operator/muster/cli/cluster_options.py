"""The options by which `muster explain` and `muster snapshot` find a cluster, and the scheduler in it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

Kubeconfig = Annotated[Path | None, typer.Option(metavar="FILE", help="A kubeconfig file.", show_default=False)]
Context = Annotated[str | None, typer.Option(metavar="NAME", help="A context of the kubeconfig.", show_default=False)]
MusterNamespace = Annotated[str, typer.Option(metavar="NAMESPACE", help="Where Muster's Deployment and Lease are.")]
Deployment = Annotated[str, typer.Option(metavar="NAME", help="The Deployment's name.")]

MUSTER_NAMESPACE: Final = "muster-system"
DEPLOYMENT: Final = "muster"
