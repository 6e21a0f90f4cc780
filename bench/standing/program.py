"""Muster as one process, and what it needs of its cluster before it starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

from bench.controllers.systems import MUSTER_COMMAND, Program, System
from tests.cluster.control_plane import ControlPlane

WHOLE: Final = "controllers,scheduler,admission"
"""All components."""
_ADMISSION: Final = Path(__file__).parents[2] / "manifests" / "base" / "admission.yaml"
_CONFIGURATIONS: Final = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
_LOCAL: Final = "127.0.0.1"
_NAMESPACE: Final = "muster-system"


def muster(components: str, *, admission_port: int, leader_election: bool) -> System:
    """`muster run` of these components, with a Lease or without one."""
    flags = ["--components", components, "--submitter-image", "muster", "--health-port", "0", "--metrics-port", "0"]
    flags += ["--namespace", _NAMESPACE, "--admission-port", str(admission_port), "--admission-host", _LOCAL]
    flags += ["--leader-election" if leader_election else "--no-leader-election"]

    def command(kubeconfig: Path) -> list[str]:
        return [*MUSTER_COMMAND, "run", "--kubeconfig", str(kubeconfig), *flags]

    return System("muster", (Program("muster", command),), has_muster_crds=True)


def install(plane: ControlPlane, admission_port: int) -> None:
    """Make Muster's namespace, and have the API server ask it at this port about what is applied."""
    plane.api.apply(
        f"/api/v1/namespaces/{_NAMESPACE}",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}},
    )
    configuration = _webhooks(admission_port)
    plane.api.apply(f"{_CONFIGURATIONS}/{configuration['metadata']['name']}", configuration)


def _webhooks(port: int) -> dict[str, Any]:
    """The configuration as it is shipped, but for where the webhook is."""
    documents: list[dict[str, Any]] = list(yaml.safe_load_all(_ADMISSION.read_text()))
    (configuration,) = (one for one in documents if one["kind"] == "ValidatingWebhookConfiguration")
    for webhook in configuration["webhooks"]:
        path = webhook["clientConfig"].pop("service")["path"]
        webhook["clientConfig"]["url"] = f"https://{_LOCAL}:{port}{path}"
    return configuration
