"""Muster: gang scheduling for Ray on Kubernetes, in one operator.

The layers, from the edge inwards: `api` (the custom resources), `kube` (the API server seen from here), `ray` (what a
Ray cluster is made of), `scheduler` (decides; pure), `engine` (carries decisions out), `controllers` (level-triggered
reconcilers), `cli` (the commands) and `app` (the composition root). Imports go one way; `pyproject.toml` has the
contracts and docs/architecture.md the reasons.
"""

__version__ = "0.1.0"
