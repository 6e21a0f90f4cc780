"""Installs Muster as a user does: kubectl, the CRDs and the kustomize base, with this cluster's image."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import yaml

from tests.e2e.target import Target
from tests.e2e.workloads import REPOSITORY

NAMESPACE = "muster-system"


class InstallError(Exception):
    """kubectl refused; the message has its words."""


def install(target: Target) -> None:
    """Applies CRDs and manifests and waits until the operator is ready. Raises InstallError with kubectl's words."""
    kubectl(target, "apply", "--filename", str(REPOSITORY / "crds"))
    kubectl(
        target,
        "wait",
        "--for=condition=Established",
        "crd",
        "--all",
        "--timeout=60s",
    )
    with tempfile.TemporaryDirectory() as folder:
        overlay(Path(folder), target.muster_image)
        kubectl(target, "apply", "--kustomize", folder)
    kubectl(target, "--namespace", NAMESPACE, "rollout", "status", "deployment/muster", "--timeout=180s")


def overlay(folder: Path, image: str) -> None:
    """Writes a kustomization that is the local overlay with another image."""
    name, _, tag = image.rpartition(":")
    content = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [os.path.relpath(REPOSITORY / "manifests" / "base", folder)],
        "images": [{"name": "muster", "newName": name, "newTag": tag}],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(content))


def kubectl(target: Target, *arguments: str, attempts: int = 3) -> str:
    """Runs kubectl against the target and returns what it printed. Raises InstallError."""
    command = [str(target.kubectl), f"--kubeconfig={target.kubeconfig}", *arguments]
    for attempt in range(attempts):
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        if result.returncode == 0:
            return result.stdout
        # A CRD that was made a moment ago may not have conditions yet; kubectl gives up on that at once.
        if attempt + 1 < attempts and "condition" not in result.stderr and "refused" not in result.stderr:
            break
    raise InstallError(f"{' '.join(command)}\n{result.stderr.strip() or result.stdout.strip()}")
