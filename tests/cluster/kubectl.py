"""kubectl, as users have it, on a control plane."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from tests.cluster.control_plane import ControlPlane
from tests.cluster.gobuild import go_binaries

Answer = subprocess.CompletedProcess[str]


def run_kubectl(plane: ControlPlane, *arguments: str, obj: dict[str, Any] | None = None) -> Answer:
    """What kubectl answers to an administrator; `obj` goes to its standard input."""
    program = go_binaries(["kubectl"])["kubectl"]
    return subprocess.run(
        [program, *arguments],
        input=None if obj is None else json.dumps(obj),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"KUBECONFIG": str(plane.kubeconfig), "HOME": os.environ.get("HOME", "/")},
    )
